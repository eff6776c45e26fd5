package local

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// BenchmarkDurableLogins has 64 callers log new users in, each waiting for the
// sync. It also reports the processor time of a login, which other work on the
// machine changes less than the rate.
func BenchmarkDurableLogins(b *testing.B) {
	eng, err := Open(b.TempDir(), Options{})
	require.NoError(b, err)
	roll, err := rollcall.New(eng, rollcall.Options{})
	require.NoError(b, err)
	var next atomic.Int64
	var all sync.WaitGroup
	before := processorTime(b)
	b.ResetTimer()
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := roll.Login(b.Context(), rollcall.Login{User: fmt.Sprint("user", i), App: "shop", Device: "ios"}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric((processorTime(b)-before)/float64(b.N), "cpu-µs/op")
	require.NoError(b, errors.Join(roll.Close(), eng.Close()))
}

// TestALoginAllocatesLittle bounds what a first login leaves to the garbage collector, in
// memory: what the tables allocate in the background is counted too.
func TestALoginAllocatesLittle(t *testing.T) {
	eng, err := Open("", Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(eng, rollcall.Options{})
	require.NoError(t, err)
	users := make([]rollcall.Login, 2001)
	for i := range users {
		users[i] = rollcall.Login{
			User: fmt.Sprint("user", i), App: "shop", Device: "ios", Name: fmt.Sprint("Name ", i), DeviceID: fmt.Sprint("phone", i),
			UserAgent: "Browser/1.0", IP: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}),
			Attrs: map[string]string{"city": fmt.Sprint("city ", i%50), "plan": "free", "trace": fmt.Sprint("trace", i)},
		}
	}
	allocations := testing.AllocsPerRun(len(users)-1, func() {
		_, err := roll.Login(t.Context(), users[0])
		require.NoError(t, err)
		users = users[1:]
	})
	t.Logf("%.0f allocations a login", allocations)
	require.Less(t, allocations, 20.0)
	require.NoError(t, errors.Join(roll.Close(), eng.Close()))
}

// processorTime returns what the process has taken, in microseconds.
func processorTime(tb testing.TB) float64 {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Sec+u.Stime.Sec)*1e6 + float64(u.Utime.Usec+u.Stime.Usec)
}

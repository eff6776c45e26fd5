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
// machine changes less than the rate. The logins of bare say an app and a device, those of full
// all that they can.
func BenchmarkDurableLogins(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		benchmarkLogins(b, func(i int) rollcall.Login {
			return rollcall.Login{User: fmt.Sprint("user", i), App: "shop", Device: "ios"}
		})
	})
	b.Run("full", func(b *testing.B) { benchmarkLogins(b, fullLogin) })
}

// fullLogin is the i-th user's login with all fields: some have a value of their own, others one
// of a thousand, of ten, or the only one.
func fullLogin(i int) rollcall.Login {
	return rollcall.Login{
		User: fmt.Sprint("user", i), App: fmt.Sprint("app", i%10), Device: "ios", Name: fmt.Sprint("Name ", i%1000),
		DeviceID: fmt.Sprint("phone", i), UserAgent: fmt.Sprint("Browser/", i%200),
		IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}),
		Attrs: map[string]string{
			"city": fmt.Sprint("city ", i%1000), "plan": fmt.Sprint("plan ", i%10), "ref": fmt.Sprint("campaign ", i*7%1000),
			"ver": fmt.Sprint("2.", i%100), "req": fmt.Sprintf("%08x", i), "trace": fmt.Sprintf("%08x", ^i),
		},
	}
}

// benchmarkLogins has 64 callers make logins, which are ready before it begins.
func benchmarkLogins(b *testing.B, login func(i int) rollcall.Login) {
	logins := make([]rollcall.Login, b.N)
	for i := range logins {
		logins[i] = login(i)
	}
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
				if _, err := roll.Login(b.Context(), logins[i-1]); err != nil {
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
		users[i] = fullLogin(i)
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

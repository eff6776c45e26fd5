package transfer_test

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// processors returns the time of processors this process has spent.
func processors() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func inOrder(byUser map[string]rollcall.Friend) []rollcall.Friend {
	var out []rollcall.Friend
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		out = append(out, byUser[user])
	}
	return out
}

// open opens an embedded engine in a directory, in memory if that is "".
func open(t testing.TB, dir string) *rollcall.Roll {
	t.Helper()
	engine, err := local.Open(dir, local.Options{InMemory: dir == ""})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(now), Secret: []byte("the secret of the tests of transfer")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return roll
}

func fill(t testing.TB, roll *rollcall.Roll, n int) {
	t.Helper()
	for c := newCrowd(n); ; {
		some := c.next(rollcall.MaxSnapshots)
		if len(some) == 0 {
			return
		}
		require.NoError(t, roll.Import(t.Context(), some...))
	}
}

// digest is a sum over everything that is known, in whatever order it comes.
func digest(t testing.TB, roll *rollcall.Roll) (sum uint64, n int) {
	t.Helper()
	require.NoError(t, roll.Export(t.Context(), func(d rollcall.UserSnapshot) error {
		h := fnv.New64a()
		err := json.NewEncoder(h).Encode(d)
		sum += h.Sum64()
		n++
		return err
	}))
	return sum, n
}

// TestManyUsers moves many users to a file and from there to another engine, and
// says how fast; a long run moves a million.
func TestManyUsers(t *testing.T) {
	users := 20_000
	if testbudget.Long() {
		users = 1_000_000
	}
	dir := t.TempDir()
	var spent time.Duration // of processors
	rate := func(what string, began time.Time) {
		took, cpu := time.Since(began), processors()-spent
		t.Logf("%s: %d users in %v, %.0f users/s; %v of processors, %.1f µs a user",
			what, users, took.Round(time.Millisecond), float64(users)/took.Seconds(), cpu.Round(time.Millisecond), float64(cpu.Microseconds())/float64(users))
		spent += cpu
	}
	from, to := open(t, filepath.Join(dir, "from")), open(t, filepath.Join(dir, "to"))
	began := time.Now()
	fill(t, from, users)
	rate("entered without a file", began)

	path := filepath.Join(dir, "export")
	f, err := os.Create(path)
	require.NoError(t, err)
	began = time.Now()
	wrote, err := transfer.Export(t.Context(), from, f, nil)
	require.NoError(t, err)
	rate("exported", began)
	size, err := f.Seek(0, io.SeekCurrent)
	require.NoError(t, err)
	t.Logf("%d bytes a user", size/int64(users))

	began = time.Now()
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	in, err := transfer.Open(f)
	require.NoError(t, err)
	found, err := in.Verify()
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.Equal(t, wrote, found)
	rate("verified", began)

	began = time.Now()
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	in, err = transfer.Open(f)
	require.NoError(t, err)
	summary, err := in.Import(t.Context(), to, transfer.Options{})
	require.NoError(t, err)
	rate("imported", began)
	require.True(t, summary.Complete)
	require.Equal(t, wrote, summary.Counts)
	require.NoError(t, in.Close())
	require.NoError(t, f.Close())

	want, n := digest(t, from)
	require.Equal(t, users, n)
	got, m := digest(t, to)
	require.Equal(t, n, m)
	require.Equal(t, want, got)
}

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

const dir = "journal"

// soon is how long a test waits for what a slow machine may take long for.
const soon = 30 * time.Second

func record(n uint64) []byte { return fmt.Appendf(nil, "record %d of %d bytes or so", n, n%97) }

// contents reads a journal and holds it to record.
func contents(t testing.TB, fs vfs.FS, after uint64) (Report, error) {
	next := after + 1
	r, err := Read(fs, dir, after, func(n uint64, b []byte) error {
		require.Equal(t, next, n, "no record may be skipped")
		require.Equal(t, string(record(n)), string(b))
		next++
		return nil
	})
	return r, err
}

func start(t testing.TB, o Options) *Journal {
	o.Dir = dir
	require.NoError(t, o.FS.MkdirAll(dir, 0o700))
	require.NoError(t, syncDir(o.FS, ""))
	r, err := contents(t, o.FS, 0)
	require.NoError(t, err)
	j, err := Start(o, r, r.End+1)
	require.NoError(t, err)
	return j
}

// add appends the record that belongs to the next number; one goroutine may.
func (j *Journal) add(t testing.TB) Ticket {
	ticket, err := j.Append(record(j.Last() + 1))
	require.NoError(t, err)
	return ticket
}

func TestWhoeverComesAgainDoesNotWaitForTheDistance(t *testing.T) {
	j := start(t, Options{FS: vfs.NewMem(), Distance: time.Hour})
	for range 3 {
		done := make(chan error, 1)
		ticket := j.add(t)
		go func() { done <- ticket.Wait() }()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(soon):
			t.Fatal("the only caller waits for others to share its sync")
		}
	}
	require.NoError(t, j.Close())
}

func TestTheDistanceLetsCallersShareASync(t *testing.T) {
	var syncs atomic.Int64
	j := start(t, Options{FS: vfs.NewMem(), Distance: time.Hour, Durable: func(uint64) { syncs.Add(1) }})
	j.mu.Lock()
	j.synced, j.crowd = time.Now(), 3 // as if three had waited when the last sync ended
	j.mu.Unlock()
	tickets := []Ticket{j.add(t), j.add(t), j.add(t)}
	for _, ticket := range tickets {
		require.NoError(t, ticket.Wait())
	}
	require.Equal(t, int64(1), syncs.Load())
	require.NoError(t, j.Close())
}

func TestRecordsAreReadInOrderAfterRestarts(t *testing.T) {
	fs := vfs.NewMem()
	for range 5 {
		j := start(t, Options{FS: fs, SegmentBytes: 16 << 10})
		for range 200 {
			require.NoError(t, j.add(t).Wait())
		}
		require.NoError(t, j.Close())
	}
	r, err := contents(t, fs, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1000, r.End)
	require.Nil(t, r.Torn)
	r, err = contents(t, fs, 777)
	require.NoError(t, err)
	require.Equal(t, 223, r.Read)
}

func TestReleasedSegmentsAreWrittenOverAndNothingElseIsLost(t *testing.T) {
	fs := vfs.NewMem()
	j := start(t, Options{FS: fs, SegmentBytes: 16 << 10})
	for i := range uint64(2000) {
		require.NoError(t, j.add(t).Wait())
		if i%100 == 0 {
			require.NoError(t, j.Release(i))
		}
	}
	require.Less(t, j.Bytes(), int64(5*16<<10))
	require.NoError(t, j.Close())
	r, err := contents(t, fs, 1901)
	require.NoError(t, err)
	require.EqualValues(t, 2000, r.End)
	_, err = contents(t, fs, 5)
	require.ErrorAs(t, err, new(*Damage), "what was released is missing, and nothing behind it may be read")
}

func TestAfterReplaceReleaseAndPurgeARecordIsInNoFile(t *testing.T) {
	fs := vfs.NewMem()
	j := start(t, Options{FS: fs, SegmentBytes: 16 << 10})
	for range 1000 {
		require.NoError(t, j.add(t).Wait())
		require.NoError(t, j.Release(j.Durable()))
	}
	require.NoError(t, j.Replace())
	require.NoError(t, j.Release(j.Durable()))
	require.NoError(t, j.Purge())
	require.NoError(t, j.Replace())
	require.NoError(t, j.Release(j.Durable()))
	require.NoError(t, j.Purge())
	names, err := fs.List(dir)
	require.NoError(t, err)
	require.Len(t, names, 1)
	b, err := readAll(fs, path.Join(dir, names[0]))
	require.NoError(t, err)
	require.NotContains(t, string(b), "record")
	require.NoError(t, j.add(t).Wait())
	require.NoError(t, j.Close())
}

func TestSyncWaitsForWhatALazyJournalHolds(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j := start(t, Options{FS: fs, Lazy: true})
	for range 10 {
		j.add(t)
	}
	require.NoError(t, j.Sync())
	r, err := contents(t, fs.CrashClone(vfs.CrashCloneCfg{}), 0)
	require.NoError(t, err)
	require.EqualValues(t, 10, r.End)
	require.NoError(t, j.Close())
}

func TestSyncFromManySidesEnds(t *testing.T) {
	j := start(t, Options{FS: vfs.NewMem()})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if _, err := j.Append([]byte("x")); err != nil {
					t.Error(err)
				}
				if err := j.Sync(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 4000, j.Durable())
	require.NoError(t, j.Close())
}

func TestWhatWasConfirmedIsThereAfterACrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // chance, not secrets
	fs := vfs.NewCrashableMem()
	for round := range 30 {
		j := start(t, Options{FS: fs, SegmentBytes: 16 << 10})
		var all sync.WaitGroup
		var confirmed atomic.Uint64
		enough := make(chan struct{})
		all.Go(func() {
			for i := range 300 {
				ticket := j.add(t)
				if i%5 != 0 {
					continue
				}
				if ticket.Wait() == nil {
					confirmed.Store(ticket.Number)
				}
				if i == 100 {
					close(enough)
				}
			}
		})
		<-enough
		least := confirmed.Load()
		clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: round % 3 * 50, RNG: rng})
		all.Wait()
		require.NoError(t, j.Close())
		r, err := contents(t, clone, 0)
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.End, least)
		fs = clone
	}
}

// isWrite also holds for what errorfs counts among neither.
func isWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

func TestAJournalGoesOnAfterAFaultWithoutLosingARecord(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for name, hits := range map[string]func(errorfs.Op) bool{"write": isWrite, "sync": isSync} {
			t.Run(fmt.Sprint(cause, name), func(t *testing.T) {
				mem := vfs.NewCrashableMem()
				var failing atomic.Bool
				fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
					if failing.Load() && hits(op) {
						return cause
					}
					return nil
				}))
				faults := make(chan error, 100)
				j := start(t, Options{FS: fs, SegmentBytes: 16 << 10, Fault: func(err error) { faults <- err }})
				for range 5 {
					goThroughFault(t, j, mem, cause, faults, &failing)
				}
				require.NoError(t, j.Close())
				r, err := contents(t, mem.CrashClone(vfs.CrashCloneCfg{}), 0)
				require.NoError(t, err)
				require.EqualValues(t, 255, r.End)
			})
		}
	}
}

func goThroughFault(t *testing.T, j *Journal, mem *vfs.MemFS, cause error, faults chan error, failing *atomic.Bool) {
	var acknowledged uint64
	for range 50 {
		ticket := j.add(t)
		require.NoError(t, ticket.Wait())
		acknowledged = ticket.Number
	}
	failing.Store(true)
	ticket := j.add(t)
	require.ErrorIs(t, ticket.Wait(), cause)
	require.ErrorIs(t, <-faults, cause)
	_, err := j.Append(record(0))
	require.ErrorIs(t, err, cause, "records are refused while the disk fails")
	require.ErrorIs(t, j.Sync(), cause)
	half := vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 1))} //nolint:gosec // chance, not secrets
	r, err := contents(t, mem.CrashClone(half), 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, r.End, acknowledged)
	failing.Store(false)
	select {
	case err := <-faults:
		require.NoError(t, err)
	case <-time.After(soon):
		t.Fatal("waited for the journal to take records again")
	}
	require.Equal(t, ticket.Number, j.Durable(), "what memory held is written")
}

func TestCloseEndsWhileTheDiskFails(t *testing.T) {
	var failing atomic.Bool
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && isWrite(op) {
			return syscall.EIO
		}
		return nil
	}))
	j := start(t, Options{FS: fs})
	failing.Store(true)
	require.ErrorIs(t, j.add(t).Wait(), syscall.EIO)
	require.ErrorIs(t, j.Close(), syscall.EIO)
	_, err := j.Append(nil)
	require.ErrorIs(t, err, ErrClosed)
}

// TestEveryByteFlippedOrCut shows that a damaged journal is read rightly up to
// where it was confirmed, or refused with file and offset.
func TestEveryByteFlippedOrCut(t *testing.T) {
	source := vfs.NewMem()
	for range 3 { // three segments, the last of which nothing confirms the end of
		j := start(t, Options{FS: source, SegmentBytes: headerLen + 600})
		for range 4 {
			require.NoError(t, j.add(t).Wait())
		}
		require.NoError(t, j.Close())
	}
	names, err := source.List(dir)
	require.NoError(t, err)
	whole := make(map[string][]byte)
	for _, name := range names {
		whole[name], err = readAll(source, path.Join(dir, name))
		require.NoError(t, err)
	}
	try := func(name string, content []byte, what string) {
		fs := vfs.NewMem()
		for other, b := range whole {
			if other == name {
				b = content
			}
			put(t, fs, other, b)
		}
		r, err := contents(t, fs, 0)
		damage := new(Damage)
		if errors.As(err, &damage) {
			require.NotEmpty(t, damage.File, what)
			return
		}
		require.NoError(t, err, what)
		if r.End != 12 {
			require.EqualValues(t, 11, r.End, "%s: only what nothing confirms may be missing", what)
			require.NotNil(t, r.Torn, "%s: and that is reported", what)
		}
	}
	for _, name := range names {
		b := whole[name]
		for at := range b {
			if at > 200 && at < headerLen-100 && at%97 != 0 {
				continue // zeros of the header's block
			}
			bad := append([]byte(nil), b...)
			bad[at] ^= 1 << (at % 8)
			try(name, bad, fmt.Sprintf("%s: byte %d flipped", name, at))
			try(name, b[:at], fmt.Sprintf("%s cut at %d", name, at))
		}
	}
}

func put(t testing.TB, fs vfs.FS, name string, b []byte) {
	require.NoError(t, fs.MkdirAll(dir, 0o700))
	f, err := fs.Create(path.Join(dir, name), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(append([]byte(nil), b...))
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestADirectoryWithoutAJournalHasAnEmptyOne(t *testing.T) {
	r, err := Read(vfs.Default, t.TempDir(), 0, nil)
	require.NoError(t, err)
	require.Zero(t, r)
	_, err = Read(vfs.Default, path.Join(t.TempDir(), "none"), 0, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzReadOfASegment(f *testing.F) {
	fs := vfs.NewMem()
	j := start(f, Options{FS: fs, SegmentBytes: headerLen + 600})
	for range 4 {
		require.NoError(f, j.add(f).Wait())
	}
	require.NoError(f, j.Close())
	b, err := readAll(fs, path.Join(dir, segmentName(1)))
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		fs := vfs.NewMem()
		put(t, fs, segmentName(1), b)
		next := uint64(0)
		_, _ = Read(fs, dir, 0, func(n uint64, _ []byte) error {
			require.True(t, next == 0 || n == next)
			next = n + 1
			return nil
		})
	})
}

func BenchmarkAppendAndWait(b *testing.B) {
	name := b.TempDir()
	j, err := Start(Options{FS: vfs.Default, Dir: name, Distance: 200 * time.Microsecond}, Report{}, 1)
	require.NoError(b, err)
	one := make([]byte, 300)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			ticket, err := j.Append(one)
			if err == nil {
				err = ticket.Wait()
			}
			if err == nil && ticket.Number%50_000 == 0 {
				err = j.Release(ticket.Number)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	require.NoError(b, j.Close())
}

func TestRecordsThatAreOnlyNumberedAreDurableAtOnce(t *testing.T) {
	j := Numbers(7)
	require.EqualValues(t, 6, j.Durable())
	for n := uint64(7); n < 10; n++ {
		ticket, err := j.Append(record(n))
		require.NoError(t, err)
		require.Equal(t, n, ticket.Number)
		require.NoError(t, ticket.Wait())
		require.Equal(t, n, j.Durable())
	}
	require.EqualValues(t, 9, j.Last())
	require.NoError(t, errors.Join(j.Sync(), j.Release(9), j.Replace(), j.Purge()))
	require.Zero(t, j.Bytes())
	require.NoError(t, j.Close())
	_, err := j.Append(record(10))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, j.Close(), ErrClosed)
}

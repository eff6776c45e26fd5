package journal

import (
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// fillHalf adds records until the file of the next segment is made, and waits for it.
func fillHalf(t *testing.T, j *Journal) *readyFile {
	for range 10_000 {
		require.NoError(t, j.add(t).Wait())
		j.files.Lock()
		r, segments := j.ready, len(j.segments)
		j.files.Unlock()
		require.Equal(t, 1, segments, "the segment is full, and no file was made for the next")
		if r == nil {
			continue
		}
		select {
		case <-r.made:
			return r
		case <-time.After(soon):
			t.Fatal("waited for the file of the next segment")
		}
	}
	t.Fatal("no file was made for the next segment")
	return nil
}

// addSegments adds records until so many segments are there.
func addSegments(t *testing.T, j *Journal, want int) {
	for range 100_000 {
		require.NoError(t, j.add(t).Wait())
		j.files.Lock()
		n := len(j.segments)
		j.files.Unlock()
		if n >= want {
			return
		}
	}
	t.Fatal("no segment began")
}

func TestTheFileOfTheNextSegmentIsThereBeforeItIsNeeded(t *testing.T) {
	var failing atomic.Bool
	mem := vfs.NewMem()
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if failing.Load() && op.Kind == errorfs.OpCreate {
			return syscall.EIO
		}
		return nil
	}))
	j := start(t, Options{FS: fs, SegmentBytes: 16 << 10})
	r := fillHalf(t, j)
	require.NoError(t, r.err)
	failing.Store(true)
	addSegments(t, j, 2)
	failing.Store(false)
	addSegments(t, j, 5)
	last := j.Last()
	require.NoError(t, j.Close())
	report, err := contents(t, mem, 0)
	require.NoError(t, err)
	require.Equal(t, last, report.End)
}

func TestAFileThatCannotBeMadeAheadIsMadeWhenItIsNeeded(t *testing.T) {
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, readySuffix) {
			return syscall.ENOSPC
		}
		return nil
	}))
	j := start(t, Options{FS: fs, SegmentBytes: 16 << 10, Fault: func(err error) { t.Errorf("a fault: %v", err) }})
	require.ErrorIs(t, fillHalf(t, j).err, syscall.ENOSPC)
	addSegments(t, j, 4)
	require.NoError(t, j.Close())
	requireNoReadyFile(t, j)
}

// TestAFileThatCannotBeMadeAheadTakesNoRoom fills the disk while the file of the next segment is
// made: what others have to write then needs the room.
func TestAFileThatCannotBeMadeAheadTakesNoRoom(t *testing.T) {
	mem := vfs.NewMem()
	var begun atomic.Bool
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, readySuffix) && begun.Swap(true) {
			return syscall.ENOSPC
		}
		return nil
	}))
	j := start(t, Options{FS: fs, SegmentBytes: 512 << 10})
	require.ErrorIs(t, fillHalf(t, j).err, syscall.ENOSPC)
	requireNoReadyFile(t, j)
	require.NoError(t, j.Close())
}

// growing is a journal with segments that grow, and counts the files that are not made ahead.
type growing struct {
	*Journal
	t    *testing.T
	mem  vfs.FS
	made atomic.Int64
}

func newGrowing(t *testing.T) *growing {
	g := &growing{t: t, mem: vfs.NewMem()}
	fs := errorfs.Wrap(g.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && !strings.HasSuffix(op.Path, readySuffix) {
			g.made.Add(1)
		}
		return nil
	}))
	g.Journal = start(t, Options{FS: fs, SegmentBytes: 4 * firstSegment})
	g.made.Store(0)
	return g
}

// release keeps a file to be written over, as if a segment had been released.
func (g *growing) release() {
	g.files.Lock()
	defer g.files.Unlock()
	name := "0000000000.journal" + freeSuffix
	require.NoError(g.t, fill(g.mem, path.Join(dir, name), g.o.SegmentBytes, nil))
	g.free = append(g.free, name)
}

// until adds records until something holds of the journal.
func (g *growing) until(what func() bool) {
	for range 10_000 {
		ticket, err := g.Append(make([]byte, 32<<10))
		require.NoError(g.t, err)
		require.NoError(g.t, ticket.Wait())
		g.files.Lock()
		done := what()
		g.files.Unlock()
		if done {
			return
		}
	}
	g.t.Fatal("waited for the journal")
}

// halfFull adds records until the next file has been looked after, and waits for it.
func (g *growing) halfFull() *readyFile {
	g.until(func() bool { return g.readied })
	g.files.Lock()
	defer g.files.Unlock()
	if g.ready != nil {
		<-g.ready.made
	}
	return g.ready
}

func (g *growing) next() {
	n := len(g.segments)
	g.until(func() bool { return len(g.segments) > n })
}

func TestNobodyWaitsForAFileWhenTheOneMadeAheadWasNotNeededAndIsTooSmall(t *testing.T) {
	g := newGrowing(t)
	require.NotNil(t, g.halfFull())
	g.release() // it comes first
	g.next()
	require.NotNil(t, g.halfFull())
	g.next()
	require.Zero(t, g.made.Load(), "a file was made while callers waited")
	require.NoError(t, g.Close())
	requireNoReadyFile(t, g.Journal)
}

func TestNoFileIsMadeAheadWhileThereIsOneToWriteOver(t *testing.T) {
	g := newGrowing(t)
	g.release()
	require.Nil(t, g.halfFull())
	g.next()
	require.Zero(t, g.made.Load())
	require.NoError(t, g.Close())
}

func TestCloseLeavesNoFileThatWasMadeAhead(t *testing.T) {
	j := start(t, Options{FS: vfs.NewMem(), SegmentBytes: 16 << 10})
	require.NoError(t, fillHalf(t, j).err)
	require.NoError(t, j.Close())
	requireNoReadyFile(t, j)
}

// TestCloseDoesNotWaitForAFileThatNobodyWillNeed closes a journal while the file of the next segment
// is made.
func TestCloseDoesNotWaitForAFileThatNobodyWillNeed(t *testing.T) {
	var writes atomic.Int64
	begun, goOn := make(chan struct{}), make(chan struct{})
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, readySuffix) {
			if writes.Add(1) == 1 {
				close(begun)
			}
			<-goOn
		}
		return nil
	}))
	j := start(t, Options{FS: fs, SegmentBytes: 4 * firstSegment})
	(&growing{Journal: j, t: t}).until(func() bool { return j.ready != nil })
	<-begun
	closed := make(chan error)
	go func() { closed <- j.Close() }()
	<-j.stop
	close(goOn)
	require.NoError(t, <-closed)
	require.EqualValues(t, 1, writes.Load())
	requireNoReadyFile(t, j)
}

func requireNoReadyFile(t *testing.T, j *Journal) {
	names, err := j.o.FS.List(j.o.Dir)
	require.NoError(t, err)
	for _, name := range names {
		require.NotContains(t, path.Base(name), readySuffix)
	}
}

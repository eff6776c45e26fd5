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
	for range 1000 {
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

func TestCloseLeavesNoFileThatWasMadeAhead(t *testing.T) {
	j := start(t, Options{FS: vfs.NewMem(), SegmentBytes: 16 << 10})
	require.NoError(t, fillHalf(t, j).err)
	require.NoError(t, j.Close())
	requireNoReadyFile(t, j)
}

func requireNoReadyFile(t *testing.T, j *Journal) {
	names, err := j.o.FS.List(j.o.Dir)
	require.NoError(t, err)
	for _, name := range names {
		require.NotContains(t, path.Base(name), readySuffix)
	}
}

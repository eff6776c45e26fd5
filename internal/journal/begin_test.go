package journal

import (
	"bytes"
	"fmt"
	"path"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

// TestAfterASegmentThatCouldNotBeginPurgeLeavesNoRecordInAnyFile has a segment begin in a file that
// is written over, and fail at each step of that.
func TestAfterASegmentThatCouldNotBeginPurgeLeavesNoRecordInAnyFile(t *testing.T) {
	for _, step := range []errorfs.OpKind{errorfs.OpOpen, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpOpenDir} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			mem := vfs.NewMem()
			var failing atomic.Bool
			fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if failing.Load() && op.Kind == step {
					failing.Store(false)
					return syscall.EIO
				}
				return nil
			}))
			well := make(chan error, 2)
			j := start(t, Options{FS: fs, SegmentBytes: 16 << 10, Fault: func(err error) { well <- err }})
			for {
				require.NoError(t, j.add(t).Wait())
				require.NoError(t, j.Release(j.Durable()))
				j.files.Lock()
				free := len(j.free)
				j.files.Unlock()
				if free > 0 {
					break
				}
			}
			failing.Store(true)
			require.ErrorIs(t, j.Replace(), syscall.EIO)
			require.Error(t, <-well)
			require.NoError(t, <-well)
			for range 2 {
				require.NoError(t, j.Replace())
				require.NoError(t, j.Release(j.Durable()))
				require.NoError(t, j.Purge())
			}
			names, err := mem.List(dir)
			require.NoError(t, err)
			for _, name := range names {
				b, err := readAll(mem, path.Join(dir, name))
				require.NoError(t, err)
				require.False(t, bytes.Contains(b, []byte("record")), name)
			}
			require.NoError(t, j.Close())
		})
	}
}

func TestWhileNoSegmentCanBeginTheJournalTakesNoMoreRoom(t *testing.T) {
	mem := vfs.NewMem()
	var failing atomic.Bool
	tries := make(chan struct{}, 1)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !failing.Load() || op.Kind != errorfs.OpRename {
			return nil
		}
		tries <- struct{}{}
		return syscall.EIO
	}))
	well := make(chan struct{})
	j := start(t, Options{FS: fs, SegmentBytes: 16 << 10, Fault: func(err error) {
		if err == nil {
			close(well)
		}
	}})
	failing.Store(true)
	go func() { _ = j.Replace() }()
	for range 4 { // at the last one, what the one before it made is gone
		<-tries
	}
	failing.Store(false)
	names, err := mem.List(dir)
	require.NoError(t, err)
	require.LessOrEqual(t, len(names), 2, names)
	<-well
	require.NoError(t, j.Close())
}

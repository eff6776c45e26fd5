package local

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// slowFS is a file system whose syncs of logs wait while the gate is held.
type slowFS struct {
	vfs.FS
	gate    sync.RWMutex
	waiting chan struct{} // told of each sync that begins
}

func (f *slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return &slowFile{file, f}, err
}

func (f *slowFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, to, c)
	return &slowFile{file, f}, err
}

func (f *slowFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.OpenReadWrite(name, c, o...)
	return &slowFile{file, f}, err
}

// hold keeps a sync until the gate opens.
func (f *slowFS) hold() (release func()) {
	select {
	case f.waiting <- struct{}{}:
	default:
	}
	f.gate.RLock()
	return f.gate.RUnlock
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

func (f *slowFile) Sync() error {
	defer f.fs.hold()()
	return f.File.Sync()
}

func (f *slowFile) SyncData() error {
	defer f.fs.hold()()
	return f.File.SyncData()
}

func (f *slowFile) SyncTo(n int64) (bool, error) {
	defer f.fs.hold()()
	return f.File.SyncTo(n)
}

func TestAnAnswerThatNothingChangedWaitsForWhatItRestsOn(t *testing.T) {
	slow := &slowFS{FS: vfs.NewMem(), waiting: make(chan struct{}, 1)}
	eng, err := Open("data", Options{fs: slow, ReserveBytes: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(eng, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	in, err := roll.Login(t.Context(), rollcall.Login{User: "alice"})
	require.NoError(t, err)

	for name, repeated := range map[string]func() error{
		"kick": func() error {
			_, err := roll.Kick(t.Context(), rollcall.Kick{Session: in.Session.ID})
			return err
		},
		"login with a retry key": func() error {
			_, err := roll.Login(t.Context(), rollcall.Login{User: "bob", RetryKey: "once"})
			return err
		},
		"mark": func() error {
			_, _, err := roll.Mark(t.Context(), rollcall.Mark{User: "carol", Day: roll.Today()})
			return err
		},
		"user": func() error {
			kind := "guest"
			_, err := roll.PutUser(t.Context(), "dave", rollcall.UserPatch{Kind: &kind})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			select {
			case <-slow.waiting:
			default:
			}
			slow.gate.Lock()
			first, second := make(chan error, 1), make(chan error, 1)
			go func() { first <- repeated() }()
			<-slow.waiting
			go func() { second <- repeated() }()
			assert.Never(t, func() bool { return len(second) > 0 }, neverWithin, neverWithin/10,
				"answered before what it repeats was durable")
			slow.gate.Unlock()
			require.NoError(t, <-first)
			require.NoError(t, <-second)
		})
	}
}

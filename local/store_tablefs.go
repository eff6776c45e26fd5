package local

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tableFS stands between Pebble and the disk.
//
// Pebble ends the process when it cannot write its manifest, and repeats other failed work without
// a pause. But nothing that it writes is needed, as the journal has what its tables lack. So:
//
//  1. When a change of the disk fails, the file system freezes. That change and every later one
//     wait, and Pebble notices nothing. Reads go on; the store refuses writes.
//  2. The upkeep opens another Pebble from the disk and the journal.
//  3. This one dies: its changes return success, and none reaches the disk.
//
// To what is on disk this is a power cut at the instant of the fault.
type tableFS struct {
	vfs.FS
	before func()      // called before a table is made
	fault  func(error) // called when it freezes

	changing sync.RWMutex // held for reading during a change of the disk
	state    atomic.Int32
	frozen   chan struct{} // closed when a fault has frozen it
	dead     chan struct{} // closed when it has died

	mu    sync.Mutex
	keep  bool     // files are removed later: another Pebble still reads them
	later []string // those files
}

// The states of a tableFS.
const (
	fsLive    int32 = iota // an error freezes
	fsClosing              // an error kills
	fsFrozen
	fsDead
)

func newTableFS(fs vfs.FS, keep bool) *tableFS {
	return &tableFS{FS: fs, keep: keep, frozen: make(chan struct{}), dead: make(chan struct{})}
}

// close makes later faults kill it, as nobody is left to wake what waits. It kills it if it is
// frozen.
func (f *tableFS) close() {
	if !f.state.CompareAndSwap(fsLive, fsClosing) {
		f.die()
	}
}

// die ends every wait; nothing reaches the disk any more.
func (f *tableFS) die() {
	f.changing.Lock()
	defer f.changing.Unlock()
	if f.state.Swap(fsDead) != fsDead {
		close(f.dead)
	}
}

// freeze stops every change of the disk after a fault.
func (f *tableFS) freeze(err error) {
	if f.state.Load() == fsClosing {
		f.die()
		return
	}
	f.changing.Lock()
	first := f.state.CompareAndSwap(fsLive, fsFrozen)
	f.changing.Unlock()
	if first {
		f.fault(err)
		close(f.frozen)
	}
}

// change carries out an operation that changes the disk. If the file system has died, it does
// nothing: done is false, and the caller pretends success.
func (f *tableFS) change(op func() error) (done bool, err error) {
	for {
		f.changing.RLock()
		switch f.state.Load() {
		case fsDead:
			f.changing.RUnlock()
			return false, nil
		case fsFrozen:
			f.changing.RUnlock()
			<-f.dead
			return false, nil
		}
		err := op()
		f.changing.RUnlock()
		if err == nil {
			return true, nil
		}
		f.freeze(err)
	}
}

// file opens a file for writing.
func (f *tableFS) file(open func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	done, err := f.change(func() (err error) {
		file, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	if !done {
		return &tableFile{lostFile{}, f}, nil
	}
	return &tableFile{file, f}, nil
}

// Create implements vfs.FS.
func (f *tableFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.before()
	return f.file(func() (vfs.File, error) { return f.FS.Create(name, c) })
}

// OpenReadWrite implements vfs.FS.
func (f *tableFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.OpenReadWrite(name, c, o...) })
}

// ReuseForWrite implements vfs.FS.
func (f *tableFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.ReuseForWrite(from, to, c) })
}

// OpenDir implements vfs.FS: a directory is opened to be synced.
func (f *tableFS) OpenDir(name string) (vfs.File, error) {
	return f.file(func() (vfs.File, error) { return f.FS.OpenDir(name) })
}

// Link implements vfs.FS.
func (f *tableFS) Link(from, to string) error {
	_, err := f.change(func() error { return f.FS.Link(from, to) })
	return err
}

// Rename implements vfs.FS.
func (f *tableFS) Rename(from, to string) error {
	_, err := f.change(func() error { return f.FS.Rename(from, to) })
	return err
}

// MkdirAll implements vfs.FS.
func (f *tableFS) MkdirAll(dir string, perm os.FileMode) error {
	_, err := f.change(func() error { return f.FS.MkdirAll(dir, perm) })
	return err
}

// Remove implements vfs.FS. That a file cannot be removed is no fault.
func (f *tableFS) Remove(name string) error {
	f.mu.Lock()
	if f.keep {
		f.later = append(f.later, name)
		f.mu.Unlock()
		return nil
	}
	f.mu.Unlock()
	var failed error
	_, _ = f.change(func() error {
		failed = f.FS.Remove(name)
		return nil
	})
	return failed
}

// release removes the files that were kept, now that nobody reads them.
func (f *tableFS) release() {
	f.mu.Lock()
	later := f.later
	f.keep, f.later = false, nil
	f.mu.Unlock()
	for _, name := range later {
		_ = f.Remove(name) // else the next opening does it
	}
}

// The attempts to open a file when no descriptor is left.
const (
	openAttempts = 6
	openWait     = 10 * time.Millisecond
)

// Open implements vfs.FS. It waits a little for a free descriptor, as Pebble
// repeats compactions that fail without a pause.
func (f *tableFS) Open(name string, o ...vfs.OpenOption) (vfs.File, error) {
	for try := 0; ; try++ {
		file, err := f.FS.Open(name, o...)
		if try == openAttempts || !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			return file, err
		}
		t := time.NewTimer(openWait << try)
		select {
		case <-t.C:
		case <-f.dead:
			t.Stop()
		}
	}
}

// Lock implements vfs.FS: the store has the directory locked.
func (*tableFS) Lock(string) (io.Closer, error) { return lostFile{}, nil }

// Unwrap implements vfs.FS.
func (f *tableFS) Unwrap() vfs.FS { return f.FS }

// tableFile is a file that Pebble writes.
type tableFile struct {
	vfs.File
	fs *tableFS
}

// write carries out a write. Of a dead file system all bytes count as written.
func (f *tableFile) write(b []byte, write func() (int, error)) (n int, err error) {
	done, err := f.fs.change(func() (err error) {
		n, err = write()
		return err
	})
	if !done {
		return len(b), nil
	}
	return n, err
}

func (f *tableFile) Write(b []byte) (int, error) {
	return f.write(b, func() (int, error) { return f.File.Write(b) })
}

func (f *tableFile) WriteAt(b []byte, at int64) (int, error) {
	return f.write(b, func() (int, error) { return f.File.WriteAt(b, at) })
}

func (f *tableFile) Preallocate(at, n int64) error {
	_, err := f.fs.change(func() error { return f.File.Preallocate(at, n) })
	return err
}

func (f *tableFile) Sync() error {
	_, err := f.fs.change(f.File.Sync)
	return err
}

func (f *tableFile) SyncData() error {
	_, err := f.fs.change(f.File.SyncData)
	return err
}

func (f *tableFile) SyncTo(n int64) (full bool, err error) {
	_, err = f.fs.change(func() (err error) {
		full, err = f.File.SyncTo(n)
		return err
	})
	return full, err
}

// Close implements vfs.File. Everything that matters has been synced before.
func (f *tableFile) Close() error {
	_ = f.File.Close()
	return nil
}

// lostFile is a file of a dead file system: writes succeed and go nowhere.
type lostFile struct{}

func (lostFile) Close() error                           { return nil }
func (lostFile) Read([]byte) (int, error)               { return 0, io.EOF }
func (lostFile) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (lostFile) Write(b []byte) (int, error)            { return len(b), nil }
func (lostFile) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (lostFile) Preallocate(int64, int64) error         { return nil }
func (lostFile) Stat() (vfs.FileInfo, error)            { return nil, os.ErrNotExist }
func (lostFile) Sync() error                            { return nil }
func (lostFile) SyncTo(int64) (bool, error)             { return true, nil }
func (lostFile) SyncData() error                        { return nil }
func (lostFile) Prefetch(int64, int64) error            { return nil }
func (lostFile) Fd() uintptr                            { return vfs.InvalidFd }

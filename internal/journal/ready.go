package journal

import (
	"fmt"
	"path"
)

// readyFile is a file of zeros for the next segment, made while the one in use is written: a
// caller of a durable change would have to wait for it otherwise.
type readyFile struct {
	name string
	size int64
	made chan struct{} // closed when err is set
	err  error
}

// readySuffix ends the name of such a file. It also is that of a free file, which the next
// opening removes.
const readySuffix = ".next" + freeSuffix

// isMade reports whether nobody is at work on the file any more.
func (r *readyFile) isMade() bool {
	select {
	case <-r.made:
		return true
	default:
		return false
	}
}

// fits reports whether the file, which is made, has room for so much.
func (r *readyFile) fits(size int64) bool { return r.err == nil && r.size >= size }

// makeReady begins to make the file of the next segment once the one in use is half full, unless
// there is a file for it. It waits for nobody: the next group tries again.
func (j *Journal) makeReady() {
	if j.readied || j.offset < j.size/2 || !j.files.TryLock() {
		return
	}
	defer j.files.Unlock()
	if old := j.ready; len(j.free) == 0 && old != nil { // a released file came before it
		if !old.isMade() {
			return
		}
		if !old.fits(j.grow) { // segments have grown since
			j.ready = nil
			j.discard(old.name)
		}
	}
	j.readied = true
	if j.ready != nil || len(j.free) > 0 {
		return
	}
	r := &readyFile{name: fmt.Sprintf("%010d", j.nextID) + readySuffix, size: j.grow, made: make(chan struct{})}
	j.ready = r
	go func() {
		defer close(r.made)
		if r.err = fill(j.o.FS, path.Join(j.o.Dir, r.name), r.size, j.stop); r.err != nil {
			_ = j.remove(r.name) // what it has may be the last room of the disk
		}
	}()
}

// takeReady returns the file that was made ready, once it is made. Its name is "" if there is none,
// or it is too small, or could not be made: whoever makes the file again finds out why. files
// must be held.
func (j *Journal) takeReady(least int64) (name string, size int64) {
	r := j.ready
	if r == nil {
		return "", 0
	}
	<-r.made
	j.ready = nil
	if r.fits(least) {
		return r.name, r.size
	}
	j.discard(r.name)
	return "", 0
}

// dropReady removes a file that was made ready and not taken. Nobody makes it any more after
// that: another process may open the directory.
func (j *Journal) dropReady() {
	j.files.Lock()
	defer j.files.Unlock()
	if name, _ := j.takeReady(0); name != "" {
		_ = j.remove(name) // the next opening removes it otherwise
	}
}

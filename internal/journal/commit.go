package journal

import (
	"cmp"
	"errors"
	"path"
	"time"
)

// run is the committer: it writes what is queued, group by group, until the journal is closed.
func (j *Journal) run() {
	defer close(j.ended)
	for {
		var asked chan error
		select {
		case <-j.wake:
			j.keepDistance()
		case asked = <-j.replace:
		case <-j.stop:
		}
		p, closing := j.takeQueue(asked != nil)
		if p == nil && closing {
			return
		}
		if p == nil {
			continue
		}

		// Everybody who appended since the last group shares this write and sync.
		err := j.write(p, asked != nil)
		if asked != nil {
			asked <- err
		}
		if err != nil && !j.recover(p, err) {
			return
		}
	}
}

// keepDistance waits until the next sync may begin.
func (j *Journal) keepDistance() {
	d := j.o.Distance - time.Since(j.synced)
	if d <= 0 || j.o.Distance == 0 || j.allAreBack() {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-j.back:
	case <-j.stop:
	}
}

// allAreBack reports whether as many records wait as when the last sync ended: then hardly
// anybody is left to wait for. If not, back tells when they do.
func (j *Journal) allAreBack() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.back: // of an earlier group
	default:
	}
	return j.queue.count >= j.crowd
}

// takeQueue takes the queue to be written. It returns nil if nothing is to be written now; with
// anyway it returns the queue even if that is empty.
func (j *Journal) takeQueue(anyway bool) (p *pending, closing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	idle := j.queue.count == 0 || (j.o.Lazy && !j.asked && !j.closing && len(j.queue.buf) <= lazyBytes)
	if idle && !anyway {
		return nil, j.closing
	}
	j.writing, j.asked = j.queue, false
	j.queue = j.newPending()
	return j.writing, j.closing
}

// write writes and syncs a group, and wakes those who wait for it. It begins a new segment first
// if the old one has no room, or if anew says so.
func (j *Journal) write(p *pending, anew bool) error {
	if anew || (j.offset+int64(len(p.buf))+tailLen > j.size && j.offset > headerLen) {
		if err := j.rotate(int64(len(p.buf))); err != nil {
			return err
		}
		if j.o.Rotated != nil {
			j.o.Rotated()
		}
	}
	if err := j.put(p); err != nil {
		return err
	}
	j.confirm(p)
	j.makeReady()
	return nil
}

// put writes a group at the end of the segment, and syncs it.
func (j *Journal) put(p *pending) error {
	n := len(p.buf)
	seal(p.buf, j.id(), j.offset, p.first, p.count, j.durable.Load())
	p.buf = append(p.buf, make([]byte, tailLen)...)
	_, err := j.file.WriteAt(p.buf, j.offset)
	p.buf = p.buf[:n]
	if err != nil {
		return err
	}
	if err := j.file.SyncData(); err != nil {
		return err
	}
	j.synced = time.Now()
	j.offset += int64(n)
	return nil
}

func (j *Journal) id() uint64 { return j.nextID - 1 }

// confirm makes known that a group is durable. It calls Durable first, so a caller that waited
// finds its work done.
func (j *Journal) confirm(p *pending) {
	n := p.first + uint64(p.count) - 1
	if j.o.Durable != nil {
		j.o.Durable(n)
	}
	j.mu.Lock()
	j.durable.Store(n)
	j.crowd = p.count + j.queue.count
	if j.writing = nil; cap(p.buf) <= lazyBytes {
		j.spare = p.buf
	}
	j.mu.Unlock()
	close(p.done)
}

// recover is called after a failed write of a group. It refuses records, gives the error to all who
// wait, and tries to write what memory holds into a new segment, until that succeeds or the
// journal is closed. It returns false if it is closed.
func (j *Journal) recover(p *pending, cause error) bool {
	// From here on no record is taken, so what memory holds does not grow.
	j.mu.Lock()
	j.fault, j.writing = cause, nil
	later := j.queue
	j.queue = j.newPending() // stays empty: records are refused
	j.mu.Unlock()
	if j.o.Fault != nil {
		j.o.Fault(cause)
	}

	// The failed group and what was queued behind it become one group. Their callers get the
	// error now, though the records may become durable later.
	held := &pending{buf: p.buf, first: p.first, count: p.count + later.count, done: make(chan struct{})}
	held.buf = append(held.buf, later.buf[groupHead:]...)
	for _, x := range []*pending{p, later} {
		x.err = cause
		close(x.done)
	}

	// Try again and again, more and more slowly.
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case asked := <-j.replace:
			asked <- cause
			continue
		case <-j.stop:
			t.Stop()
			return false
		}
		if j.writeAgain(held) == nil {
			break
		}
	}

	// Disk and memory are equal again: take records.
	j.mu.Lock()
	j.fault = nil
	j.mu.Unlock()
	if j.o.Fault != nil {
		j.o.Fault(nil)
	}
	return true
}

// writeAgain tries to write what memory holds into a new segment.
func (j *Journal) writeAgain(held *pending) error {
	if err := j.rotate(int64(len(held.buf))); err != nil {
		return err
	}
	if err := j.put(held); err != nil {
		return err
	}
	j.confirm(held)
	return nil
}

// rotate begins a new segment, with room for a group of a size.
func (j *Journal) rotate(room int64) error {
	j.files.Lock()
	defer j.files.Unlock()
	h := header{id: j.nextID, first: j.durable.Load() + 1, size: max(j.grow, headerLen+room+tailLen)}

	// A file that was released is written over, if it has the right size.
	free := ""
	if len(j.free) > 0 && j.o.SegmentBytes >= h.size {
		free, h.size = j.free[len(j.free)-1], j.o.SegmentBytes
		j.free = j.free[:len(j.free)-1]
	} else if name, size := j.takeReady(h.size); name != "" {
		free, h.size = name, size
	}
	j.nextID++ // also if it fails: its file may be there
	f, err := makeSegment(j.o.FS, j.o.Dir, h, free)
	if err != nil {
		j.discard(cmp.Or(free, freeName(h.id)), segmentName(h.id))
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // everything in it is synced, or written again
	}
	j.file, j.size, j.offset, j.readied = f, h.size, headerLen, false
	j.grow = min(2*j.grow, j.o.SegmentBytes)
	j.segments = append(j.segments, segment{h, segmentName(h.id)})
	j.bytes.Add(h.size)
	return nil
}

// Release is called when records up to a number are not needed any more. It removes segments that
// hold no others, or keeps their files to be written over.
func (j *Journal) Release(n uint64) error {
	j.files.Lock()
	defer j.files.Unlock()
	var free []string
	for len(j.segments) > 1 && j.segments[1].first <= n+1 {
		s := j.segments[0]
		name := path.Join(j.o.Dir, s.name)
		var err error
		if s.size == j.o.SegmentBytes && len(j.free)+len(free) < keptFree {
			free = append(free, s.name+freeSuffix)
			err = j.o.FS.Rename(name, path.Join(j.o.Dir, s.name+freeSuffix))
		} else {
			err = ignoreMissing(j.o.FS.Remove(name))
		}
		if err != nil {
			return err
		}
		j.segments = j.segments[1:]
		j.bytes.Add(-s.size)
	}
	if len(free) == 0 {
		return nil
	}

	// A file may be written over only once its new name is durable: under the old one it would
	// be a damaged segment.
	if err := syncDir(j.o.FS, j.o.Dir); err != nil {
		return err
	}
	j.free = append(j.free, free...)
	return nil
}

// Replace begins a new segment, so that Release can release the one in use.
func (j *Journal) Replace() error {
	if j.numbers {
		return nil
	}
	asked := make(chan error, 1)
	select {
	case j.replace <- asked:
		return <-asked
	case <-j.ended:
		return ErrClosed
	}
}

// Purge removes every file that is kept to be written over, so that what was
// released is nowhere.
func (j *Journal) Purge() error {
	j.files.Lock()
	defer j.files.Unlock()
	var err error
	for _, name := range append(j.free, j.left...) {
		err = errors.Join(err, j.remove(name))
	}
	j.free, j.left = nil, nil
	return err
}

// discard removes files of a segment that could not begin: they take room, and may hold records
// that were released. Those that cannot be removed are left to Purge. files must be held.
func (j *Journal) discard(names ...string) {
	for _, name := range names {
		if j.remove(name) != nil {
			j.left = append(j.left, name)
		}
	}
}

func (j *Journal) remove(name string) error {
	return ignoreMissing(j.o.FS.Remove(path.Join(j.o.Dir, name)))
}

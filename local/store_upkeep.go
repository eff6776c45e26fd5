package local

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// maxJournal bounds the journal: past it writes are refused until the tables
// have caught up.
const maxJournal = 1 << 30

// The least and the longest wait between two attempts to open the tables again.
const (
	firstReopen = 10 * time.Millisecond
	lastReopen  = time.Second
)

// signal wakes the upkeep.
func (s *store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// upkeep takes a checkpoint when the journal has grown by a segment, and opens the tables again when
// the disk has failed under them.
func (s *store) upkeep() {
	retry := firstReopen
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}

		// The tables are well: write them. A fault meanwhile wakes this again.
		if s.faults[tablesFault].Load() == nil {
			if err := s.checkpoint(); err != nil && s.faults[tablesFault].Load() == nil {
				s.o.Logger.Warn("the tables could not be written: trying again", "error", err)
				timer.Reset(lastReopen)
			}
			retry = firstReopen
			continue
		}

		// The disk has failed under them: try again, more and more slowly.
		if err := s.reopen(); err != nil {
			s.o.Logger.Debug("store: the tables cannot be opened again yet", "error", err)
			timer.Reset(retry)
			retry = min(2*retry, lastReopen)
		}
	}
}

// checkpoint writes to disk what the tables have in memory, and then releases the segments of the
// journal that are not needed any more.
func (s *store) checkpoint() error {
	if s.o.InMemory {
		return nil // there is no journal to shorten, and no later opening to read tables
	}
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	t := s.tables.Load()
	t.using.RLock()
	defer t.using.RUnlock()
	n, done, err := s.cutTables(t)
	if err != nil {
		return err
	}
	if done == nil {
		return s.journal.Release(n)
	}
	if err := t.flushed(done); err != nil {
		return err
	}
	t.noted = n
	return s.journal.Release(n)
}

// cutTables begins to write what the tables have in memory. No record is between journal and tables
// at that instant, so what is written has every record up to n, and no later one. done is nil
// if the disk has them all already.
func (s *store) cutTables(t *tables) (n uint64, done <-chan struct{}, err error) {
	s.appending.Lock()
	defer s.appending.Unlock()
	if err := s.applyBacklog(); err != nil {
		return 0, nil, err
	}
	if n = s.journal.Last(); n == t.noted {
		return n, nil, nil
	}
	if err := t.note(n); err != nil {
		return n, nil, err
	}
	done, err = t.db.AsyncFlush()
	return n, done, err
}

// beforeTable is called before Pebble makes a table. It waits until the journal has on disk all that
// may get into the table. It gives up if the tables do. While the store opens there is nothing to
// wait for: what the tables are given then comes from the journal.
func (s *store) beforeTable(f *tableFS) {
	if !s.journaling.Load() {
		return
	}
	for wait := firstReopen; ; wait = min(2*wait, lastReopen) {
		if s.journal.Sync() == nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			continue
		case <-f.frozen:
		case <-f.dead:
		case <-s.stop:
			f.close() // the journal cannot be written, and the store closes
			f.die()
		}
		timer.Stop()
		return
	}
}

// reopen replaces tables that the disk has failed under. Reads go on with the old ones until the new
// ones have everything.
func (s *store) reopen() error {
	if err := s.journal.Err(); err != nil {
		return err // what the tables lack is read from the journal
	}
	t, err := s.openTables(forTakeover)
	if err != nil {
		return err
	}

	// Most of the journal is applied before any command has to wait.
	if _, err = t.replay(s); err == nil {
		err = s.swap(t)
	}
	if err != nil {
		t.fs.die()
		_ = t.close() // nothing of it is needed
		return err
	}
	return nil
}

// swap applies the last records to new tables and puts them into use.
func (s *store) swap(t *tables) error {
	old := s.tables.Load()

	// No command comes between, so all that is in the journal is in the new tables. The backlog
	// goes into the old ones, which are read until then.
	s.appending.Lock()
	err := cmp.Or(s.applyBacklog(), s.journal.Sync())
	if err == nil {
		_, err = t.replay(s)
	}
	if last := s.journal.Last(); err == nil && t.reached < last {
		err = fmt.Errorf("the journal ends with record %d, not %d", t.reached, last)
	}
	if err == nil {
		err = s.install(t)
	}
	s.appending.Unlock()
	if err != nil {
		return err
	}

	// Let go of the old ones, whose changes go nowhere.
	s.o.Logger.Info("the disk can be written again: the tables were opened anew")
	old.fs.die()
	if err := old.close(); err != nil {
		s.o.Logger.Debug("store: closing the old tables", "error", err)
	}
	t.fs.release()
	s.signal()
	return nil
}

// tableFault is called when the disk has failed under tables.
func (s *store) tableFault(t *tables, err error) {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	t.cause.Store(faultError(err))
	if s.tables.Load() != t { // they are being opened, which fails with this
		return
	}
	s.faults[tablesFault].Store(t.cause.Load())
	s.o.Logger.Error("writing tables failed: writes are refused until the disk is well", "error", err)
	s.signal()
}

// install puts tables into use, unless the disk has failed under them too.
func (s *store) install(t *tables) error {
	s.swapping.Lock()
	defer s.swapping.Unlock()
	if cause := t.cause.Load(); cause != nil {
		return cause
	}
	s.tables.Store(t)
	s.faults[tablesFault].Store(nil)
	return nil
}

// journalFault is called when the journal fails, and with nil when it is well again.
func (s *store) journalFault(err error) {
	if err == nil {
		s.faults[journalFault].Store(nil)
		s.o.Logger.Info("the journal is written again")
		s.signal()
		return
	}
	s.faults[journalFault].Store(faultError(err))
	s.o.Logger.Error("writing the journal failed: writes are refused until the disk is well", "error", err)
}

// compact removes what was deleted from the tables, from the journal, and from files that are kept to
// be written over.
func (s *store) compact(ctx context.Context) error {
	t := s.tables.Load()
	db, release, err := s.use()
	if err != nil {
		return err
	}
	if err = s.checkpoint(); err == nil {
		err = db.Compact(ctx, []byte{0}, []byte{0xff}, true)
	}
	release()
	if err == nil && s.tables.Load() != t {
		err = errFrozen // another was opened meanwhile, which is not compacted
	}
	if err != nil {
		return faultError(err)
	}

	// The segment in use is replaced, so that it can be released and purged too.
	s.checkpoints.Lock()
	defer s.checkpoints.Unlock()
	for _, step := range []func() error{
		s.journal.Purge, s.journal.Replace, func() error { return s.journal.Release(s.tables.Load().noted) }, s.journal.Purge,
	} {
		if err := step(); err != nil {
			return faultError(err)
		}
	}
	return nil
}

// refusal is why writes are refused.
type refusal struct {
	err   *rollcall.Error
	final bool // only a new start can help
}

// fault returns how the disk fails, or nil.
func (s *store) fault() error {
	for i := range s.faults {
		if err := s.faults[i].Load(); err != nil {
			return err
		}
	}
	return nil
}

var errTablesBehind = &rollcall.Error{
	Code: rollcall.CodeUnavailable, Detail: "the disk is slower than what is to be written: writes are refused until the tables have caught up",
}

// writable returns why writes are refused, or nil.
func (s *store) writable() error {
	if err := s.fault(); err != nil {
		return err
	}
	s.guardSpace()
	if r := s.refusing.Load(); r != nil {
		return r.err
	}
	if s.journal.Bytes() > maxJournal {
		s.signal()
		return errTablesBehind
	}
	return nil
}

// refuse makes every later write fail, until allow is called; with final, for good.
func (s *store) refuse(code rollcall.Code, final bool, detail string, err error) error {
	r := &refusal{err: &rollcall.Error{Code: code, Detail: detail, Err: err}, final: final}
	if old := s.refusing.Load(); old == nil || !old.final {
		s.refusing.Store(r)
	}
	return r.err
}

// allow ends a refusal that was not final.
func (s *store) allow() {
	if r := s.refusing.Load(); r != nil && !r.final {
		s.refusing.CompareAndSwap(r, nil)
	}
}

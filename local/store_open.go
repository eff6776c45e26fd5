package local

import (
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/journal"
)

// minSyncInterval is the least time from one sync of the journal to the next. It lets more callers
// share a sync. One caller alone does not come that often.
const minSyncInterval = 200 * time.Microsecond

// journalName is the directory of the journal in the store's.
const journalName = "journal"

func (s *store) journalDir() string { return path.Join(s.dir, journalName) }

// openStore opens the tables, applies to them what the journal has in addition, and begins a new
// segment. durable is called after each sync.
func openStore(dir string, o *Options, durable func(n uint64)) (*store, error) {
	s := &store{
		dir: dir, o: o, always: o.Durability == Always && !o.InMemory, durable: durable, notices: &notices{},
		stop: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	s.backlog.wake = make(chan struct{}, 1)
	s.batches.New = func() any { return new(pebble.Batch) }

	// A repair may have been cut short just before the new store got its name.
	if finished, err := finishRepair(dir, o.fs); err != nil {
		return nil, err
	} else if finished {
		o.Logger.Warn("a repair that was cut short in its last step has been finished", "store", dir)
	}
	if err := makeDirs(o.fs, dir, s.journalDir()); err != nil {
		return nil, openError("made", err)
	}

	// Only one process at a time.
	var err error
	if s.lock, err = lockDir(dir, o.fs); err != nil {
		return nil, err
	}
	if err := s.removeBackup(); err != nil {
		return nil, errors.Join(openError("opened", err), s.lock.Close())
	}
	s.cache = pebble.NewCache(o.CacheBytes)
	if err := s.start(); err != nil {
		s.cache.Unref()
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// start opens the tables and the journal, and starts the upkeep.
func (s *store) start() error {
	t, err := s.openTables(forUse)
	if err != nil {
		return openError("opened", err)
	}
	next, report, err := s.replayJournal(t)
	switch {
	case err != nil:
	case s.o.InMemory: // there is no later opening to read it
		s.journal = journal.Numbers(next)
	default:
		s.journal, err = journal.Start(s.journalOptions(), report, next)
	}
	if err != nil {
		return errors.Join(openError("opened", err), t.close())
	}
	s.journaling.Store(true)

	// The tables have all of the journal now, so its old segments may go.
	if err := s.journal.Release(t.noted); err != nil {
		return errors.Join(openError("opened", err), s.journal.Close(), t.close())
	}
	if err := s.install(t); err != nil {
		return errors.Join(openError("opened", err), s.journal.Close(), t.close())
	}
	t.fs.release()
	s.work.Go(s.upkeep)
	s.work.Go(s.keepUp)
	return nil
}

// replayJournal applies what the journal has and the tables lack, and makes it durable in the
// tables. What an earlier process wrote and never saw synced may be readable without being on
// the disk. It returns the number of the next record.
func (s *store) replayJournal(t *tables) (next uint64, r journal.Report, err error) {
	if r, err = t.replay(s); err != nil {
		return 0, r, err
	}
	if r.Segments == 0 && t.noted > 0 {
		return 0, r, &journal.Damage{File: s.journalDir(), Reason: "the journal is missing"}
	}

	// The end of the last write may be missing: it was never confirmed.
	if s.torn = r.Torn; s.torn != nil {
		s.o.Logger.Warn("the end of the journal was torn, which nobody was told was written", "file", r.Torn.File, "offset", r.Torn.Offset)
	}
	if t.reached > t.noted {
		if err = t.note(t.reached); err == nil {
			err = t.flush()
		}
		t.noted = t.reached
	}
	return t.noted + 1, r, err
}

func (s *store) journalOptions() journal.Options {
	o := journal.Options{
		FS: s.o.fs, Dir: s.journalDir(), Lazy: !s.always,
		Durable: s.durable, Fault: s.journalFault, Rotated: s.signal,
	}
	if s.o.fs == vfs.Default { // what is in memory syncs in no time
		o.Distance = minSyncInterval
	} else {
		o.SegmentBytes = 256 << 10 // each sync copies the whole of it
	}
	return o
}

// makeDirs makes directories, durably.
func makeDirs(fs vfs.FS, dirs ...string) error {
	for _, dir := range dirs {
		if err := fs.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		parent, err := fs.OpenDir(fs.PathDir(dir))
		if err != nil {
			return err
		}
		if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
			return err
		}
	}
	return nil
}

// lockDir locks a directory for this process.
func lockDir(dir string, fsys vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fsys)
	switch {
	case err == nil:
		return lock, nil
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist):
		return nil, openError("opened", err)
	default:
		return nil, &rollcall.Error{Code: rollcall.CodeConflict, Detail: "the data directory is in use by another process", Err: ErrInUse}
	}
}

// close ends the upkeep, writes the tables if the disk takes them, and closes everything. What the
// tables lack is in the journal.
func (s *store) close() error {
	close(s.stop)
	s.work.Wait()
	if s.fault() == nil && !s.o.InMemory {
		if err := s.checkpoint(); err != nil {
			s.o.Logger.Warn("the tables could not be written on closing: the journal has what they lack", "error", err)
		}
	}
	s.closed.Store(true)
	s.backlog.end(errClosed)
	err := s.journal.Close()
	err = errors.Join(err, s.tables.Load().close(), s.lock.Close())
	s.cache.Unref()
	return err
}

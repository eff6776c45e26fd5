package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/journal"
)

// tables is a Pebble without a log of its own, opened once. Its store opens
// another when the disk failed under it.
type tables struct {
	db      *pebble.DB
	fs      *tableFS
	reading sstable.ReaderOptions
	noted   uint64 // the record of the journal up to which the disk has everything
	reached uint64 // up to which replay has come

	// ceiling is a record above which the tables, also those on disk, hold none.
	ceiling atomic.Uint64
	raising sync.Mutex

	cause atomic.Pointer[rollcall.Error] // of the disk's failure

	using sync.RWMutex // held for reading while db is in use, for writing to close it
	shut  bool
}

// The sizes of what Pebble keeps. Its own stops of writes are out of reach: it
// would make a command wait that holds a partition's lock. The journal's size
// bounds what is in memory only.
const (
	memTableBytes = 64 << 20
	openTables    = 1000
)

// What tables are opened for.
type purpose int

const (
	forUse      purpose = iota
	forTakeover         // while others are in use: their files are kept for now
	forReading          // nothing reaches the disk
	forRepair           // the same, and tables may be missing
)

func (s *store) openTables(what purpose) (*tables, error) {
	// Nothing is removed before it is known that the tables and the journal fit:
	// Pebble takes a damaged list of tables for a short one, and what is not on it
	// for what is not needed.
	t := &tables{fs: newTableFS(s.o.fs, what != forReading)}
	t.fs.before = func() { s.beforeTable(t.fs) }
	t.fs.fault = func(err error) { s.tableFault(t, err) }
	logger := pebbleLogger{s.o.Logger, t.fs, s.notices}
	opts := &pebble.Options{
		FS:                          t.fs,
		Cache:                       s.cache,
		DisableWAL:                  true,
		FormatMajorVersion:          pebble.FormatNewest,
		Merger:                      dayMerger(),
		Logger:                      logger,
		EventListener:               logger.events(),
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 1 << 20,
		L0StopWritesThreshold:       math.MaxInt32,
		MaxOpenFiles:                openTables,
	}
	if what == forReading || what == forRepair {
		t.fs.die()
		// All of the journal stays in memory, as no table can be written.
		opts.MemTableSize, opts.DisableAutomaticCompactions, opts.ErrorIfNotExists = maxJournal, true, true
		opts.DisableConsistencyCheck = what == forRepair
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	var err error
	opts.EnsureDefaults()
	t.reading = opts.MakeReaderOptions()
	if t.db, err = t.open(s.dir, opts); err != nil {
		return nil, err
	}
	if what == forRepair { // it may be what cannot be read
		return t, nil
	}
	if err := t.place(); err != nil {
		return nil, errors.Join(err, t.db.Close())
	}
	return t, nil
}

// place reads which records of the journal the tables on disk have.
func (t *tables) place() error {
	for name, at := range map[string]func(uint64){
		metaApplied: func(n uint64) { t.noted, t.reached = n, n },
		metaCeiling: t.ceiling.Store,
	} {
		v, ok, err := getFrom(t.db, metaKey(name))
		if err == nil && ok && len(v) != 8 {
			err = damaged("place in the journal", metaKey(name), errDamaged)
		}
		if err != nil {
			return err
		}
		if ok {
			at(binary.BigEndian.Uint64(v))
		}
	}
	return nil
}

// open opens Pebble. If the disk fails meanwhile, that is the error: Pebble is
// told that all is well, and closed.
func (t *tables) open(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		err = errFrozen // in case Fatalf ends this goroutine
		db, err = pebble.Open(dir, o)
	}()
	select {
	case <-opened:
	case <-t.fs.frozen:
		t.fs.die()
		<-opened
	}
	if cause := t.cause.Load(); cause != nil {
		if t.fs.die(); err == nil {
			_ = db.Close() // nothing of it is needed
		}
		return nil, cause
	}
	return db, err
}

// replayBytes is how much of the journal is applied at once.
const replayBytes = 1 << 20

// replay applies the journal's records after the last that was applied.
func (t *tables) replay(s *store) (journal.Report, error) {
	joined := new(pebble.Batch)
	var last uint64
	apply := func() error {
		if joined.Empty() {
			return nil
		}
		// With the records goes the number above which there is none.
		if err := joined.Set(metaKey(metaCeiling), binary.BigEndian.AppendUint64(nil, last), nil); err != nil {
			return err
		}
		err := t.db.Apply(joined, pebble.NoSync)
		joined = new(pebble.Batch)
		t.reached = last
		t.ceiling.Store(last)
		return err
	}
	report, err := journal.Read(s.o.fs, s.journalDir(), t.reached, func(n uint64, record []byte) error {
		one := new(pebble.Batch)
		if err := one.SetRepr(append([]byte(nil), record...)); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if err := joined.Apply(one, nil); err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if last = n; joined.Len() < replayBytes {
			return nil
		}
		return apply()
	})
	return report, errors.Join(err, apply())
}

// note puts into the tables that they have every record up to n, and no other.
func (t *tables) note(n uint64) error {
	b := new(pebble.Batch)
	v := binary.BigEndian.AppendUint64(nil, n)
	if err := errors.Join(b.Set(metaKey(metaApplied), v, nil), b.Set(metaKey(metaCeiling), v, nil)); err != nil {
		return err
	}
	t.ceiling.Store(n)
	return t.db.Apply(b, pebble.NoSync)
}

// ceilingStep is how many records one raise of the ceiling is good for.
const ceilingStep = 1024

// raiseCeiling sees to it that the tables say that they may hold a record, before they
// do: Pebble may write them at any moment. A repair has to know which records of
// a journal with a hole are not there yet.
func (t *tables) raiseCeiling(n uint64) error {
	if n <= t.ceiling.Load() {
		return nil
	}
	t.raising.Lock()
	defer t.raising.Unlock()
	if n <= t.ceiling.Load() {
		return nil
	}
	b := new(pebble.Batch)
	if err := b.Set(metaKey(metaCeiling), binary.BigEndian.AppendUint64(nil, n+ceilingStep), nil); err != nil {
		return err
	}
	if err := t.db.Apply(b, pebble.NoSync); err != nil {
		return err
	}
	t.ceiling.Store(n + ceilingStep)
	return nil
}

var errFrozen = errors.New("the disk failed under the tables")

// flush writes what is in memory to disk.
func (t *tables) flush() error {
	done, err := t.db.AsyncFlush()
	if err != nil {
		return err
	}
	return t.flushed(done)
}

// flushed waits for a flush.
func (t *tables) flushed(done <-chan struct{}) error {
	select {
	case <-done:
	case <-t.fs.frozen:
	case <-t.fs.dead:
	}
	return t.well()
}

// well returns an error if the disk failed under the tables.
func (t *tables) well() error {
	if s := t.fs.state.Load(); s != fsFrozen && s != fsDead {
		return nil
	}
	if cause := t.cause.Load(); cause != nil {
		return cause
	}
	return errFrozen
}

// close waits for all that uses the tables and closes them.
func (t *tables) close() error {
	t.fs.close()
	t.using.Lock()
	defer t.using.Unlock()
	if t.shut {
		return nil
	}
	t.shut = true
	return t.db.Close()
}

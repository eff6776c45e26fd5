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

// tables is a Pebble without a log of its own, opened once. The store opens another when the disk
// has failed under it.
type tables struct {
	db      *pebble.DB
	fs      *tableFS
	reading sstable.ReaderOptions
	noted   uint64 // the disk has all records of the journal up to this one
	reached uint64 // replay has applied all records up to this one

	// ceiling is a record above which the tables, also those on disk, hold none.
	ceiling atomic.Uint64
	raising sync.Mutex

	cause atomic.Pointer[rollcall.Error] // how the disk failed, or nil

	using sync.RWMutex // held for reading while db is in use, for writing to close it
	shut  bool
}

// The sizes of what Pebble keeps. Pebble never stops writes by itself, as that would make a command
// wait that holds a partition's lock. The bound of the journal bounds Pebble's memory.
const (
	memTableBytes = 64 << 20
	openTables    = 1000

	// Pebble counts each flush in level 0 twice: six gather before they are merged into the
	// next level, which has one level below it only once it is larger than this.
	gatheredFlushes = 2 * 6
	firstLevelBytes = 256 << 20
)

// What tables are opened for.
type purpose int

const (
	forUse      purpose = iota
	forTakeover         // beside others in use, whose files are kept for now
	forReading          // nothing reaches the disk
	forRepair           // the same, and tables may be missing
)

// openTables opens Pebble.
func (s *store) openTables(what purpose) (*tables, error) {
	// No file is removed before it is known that the tables and the journal fit together. Pebble
	// takes a damaged list of tables for a short one, and tables not on it for useless.
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
		L0CompactionThreshold:       gatheredFlushes,
		L0StopWritesThreshold:       math.MaxInt32,
		LBaseMaxBytes:               firstLevelBytes,
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

// place reads which records of the journal the tables have.
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

// open opens Pebble. If the disk fails meanwhile, that is the error. Pebble is made to believe that
// all is well, and closed.
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

// replay applies the journal's records after the last one applied, many at a time.
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

// note writes into the tables that they have every record up to n, and none above.
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

// raiseCeiling makes the tables say that they may hold a record before they do, as Pebble may write
// them at any moment. A repair of a journal with a hole has to know which records the tables
// cannot hold.
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

// flush writes to disk what is in memory.
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

// close waits until nobody uses the tables, and closes them.
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

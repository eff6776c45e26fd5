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
)

func (s *store) openTables(what purpose) (*tables, error) {
	t := &tables{fs: newTableFS(s.o.fs, what == forTakeover)}
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
	if what == forReading {
		t.fs.die()
		// All of the journal stays in memory, as no table can be written.
		opts.MemTableSize, opts.DisableAutomaticCompactions, opts.ErrorIfNotExists = maxJournal, true, true
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
	v, ok, err := getFrom(t.db, metaKey(metaApplied))
	if err == nil && ok && len(v) != 8 {
		err = damaged("place in the journal", metaKey(metaApplied), errDamaged)
	}
	if err != nil {
		return nil, errors.Join(err, t.db.Close())
	}
	if ok {
		t.noted = binary.BigEndian.Uint64(v)
		t.reached = t.noted
	}
	return t, nil
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
		err := t.db.Apply(joined, pebble.NoSync)
		joined = new(pebble.Batch)
		t.reached = last
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

// note puts into the tables that they have every record up to n.
func (t *tables) note(n uint64) error {
	b := new(pebble.Batch)
	if err := b.Set(metaKey(metaApplied), binary.BigEndian.AppendUint64(nil, n), nil); err != nil {
		return err
	}
	return t.db.Apply(b, pebble.NoSync)
}

var errFrozen = errors.New("the disk failed under the tables")

// flush writes what is in memory to disk.
func (t *tables) flush() error {
	done, err := t.db.AsyncFlush()
	if err != nil {
		return err
	}
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

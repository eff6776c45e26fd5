package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/journal"
)

// store is the part of the engine that remembers. Every change is a Pebble
// batch: it is appended to the journal, applied to Pebble's tables in memory,
// and acknowledged once the journal is synced. Pebble writes its tables to disk
// behind that, without a log of its own. upkeep.go has what goes on meanwhile,
// and what happens when the disk fails.
//
// Tables on disk never hold more than the journal. They say up to which record
// they hold everything, which may be less than they do: applying a record again
// changes nothing, if those after it are applied again too, in their order.
//
//	crash after                       what opening finds
//	append (in memory only)           nothing of the command
//	the journal's write, before sync  nothing, a torn tail that is reported, or the command
//	the journal's sync                the command, from the journal
//	a table, before the manifest      the same; the table is removed
//	the manifest                      the same; what is applied again changes nothing
//	the note of what is applied       the command from the tables, if the note is on disk
//	the release of a segment          the command from the tables: the note was on disk first
type store struct {
	dir     string
	o       *Options
	lock    *pebble.Lock
	cache   *pebble.Cache
	journal *journal.Journal
	tables  atomic.Pointer[tables]
	notices *notices
	always  bool           // commands wait for the sync
	durable func(n uint64) // told of each sync
	torn    *journal.Tail  // what opening found
	closed  atomic.Bool

	// applying is held for reading from a record's number to its being in the
	// tables: who holds it for writing knows which records are.
	applying sync.RWMutex

	refusing atomic.Pointer[refusal]           // by the guard of space
	faults   [2]atomic.Pointer[rollcall.Error] // of the journal, of the tables
	guard    spaceGuard

	batches sync.Pool

	checkpoints sync.Mutex // one at a time
	swapping    sync.Mutex // orders faults of tables and their coming into use

	work sync.WaitGroup
	stop chan struct{}
	wake chan struct{} // a segment has begun, or the tables failed
}

// The places of faults.
const (
	journalFault = iota
	tablesFault
)

var errClosed = &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the engine is closed"}

// use keeps the tables open until release is called.
func (s *store) use() (db *pebble.DB, release func(), err error) {
	for {
		t := s.tables.Load()
		t.using.RLock()
		if !t.shut {
			return t.db, t.using.RUnlock, nil
		}
		t.using.RUnlock()
		if s.closed.Load() {
			return nil, nil, errClosed
		}
	}
}

// minSyncInterval is the least time from one sync of the journal to the next.
// It lets more callers share a sync; one caller alone is slower than that
// anyway.
const minSyncInterval = 200 * time.Microsecond

// journalName is the directory of the journal in the store's.
const journalName = "journal"

func (s *store) journalDir() string { return path.Join(s.dir, journalName) }

// openStore opens the tables, brings them up to the end of the journal, and
// begins a new segment. durable is told of each sync.
func openStore(dir string, o *Options, durable func(n uint64)) (*store, error) {
	s := &store{
		dir: dir, o: o, always: o.Durability == Always && !o.InMemory, durable: durable, notices: &notices{},
		stop: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	s.batches.New = func() any { return new(pebble.Batch) }
	if finished, err := finishRepair(dir, o.fs); err != nil {
		return nil, err
	} else if finished {
		o.Logger.Warn("a repair that was cut short in its last step has been finished", "store", dir)
	}
	if err := makeDirs(o.fs, dir, s.journalDir()); err != nil {
		return nil, openError("made", err)
	}
	var err error
	if s.lock, err = lockDir(dir, o.fs); err != nil {
		return nil, err
	}
	s.cache = pebble.NewCache(o.CacheBytes)
	if err := s.start(); err != nil {
		s.cache.Unref()
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

// start opens tables and journal.
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
	if err := s.journal.Release(t.noted); err != nil {
		return errors.Join(openError("opened", err), s.journal.Close(), t.close())
	}
	if err := s.install(t); err != nil {
		return errors.Join(openError("opened", err), s.journal.Close(), t.close())
	}
	t.fs.release()
	s.work.Go(s.upkeep)
	return nil
}

// replayJournal applies what the journal has and the tables lack, and makes it durable
// in the tables: what an earlier process wrote and never saw synced may be
// readable and yet not on the disk. It returns the number of the next record.
func (s *store) replayJournal(t *tables) (next uint64, r journal.Report, err error) {
	if r, err = t.replay(s); err != nil {
		return 0, r, err
	}
	if r.Segments == 0 && t.noted > 0 {
		return 0, r, &journal.Damage{File: s.journalDir(), Reason: "the journal is missing"}
	}
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
		o.SegmentBytes = 1 << 20
	}
	return o
}

// makeDirs makes directories whose entries are durable.
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

// lockDir takes a directory for this process.
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

// runRepair says what to do about a damaged store.
const runRepair = "\"rollcall check\" names every fault, \"rollcall check --repair\" keeps all that can be read, a backup has the rest"

// openError words a failure to open the store.
func openError(what string, err error) error {
	if wrong := new(journal.Damage); errors.As(err, &wrong) {
		return &rollcall.Error{
			Code: rollcall.CodeInternal, Err: err,
			Detail: "the data is damaged in " + wrong.Error() + ": " + runRepair,
		}
	}
	e := faultError(err)
	detail := "the data directory cannot be " + what
	if pebble.IsCorruptionError(err) || errors.Is(err, errDamaged) {
		detail = "the data is damaged: " + runRepair
	}
	return &rollcall.Error{Code: e.Code, Detail: detail, Err: plainError{err}}
}

// ErrInUse is in the chain of the error that Open and Check return for a
// directory that another process, or this one, has open.
var ErrInUse = errors.New("stop the server first")

// faultError words a failed write.
func faultError(err error) *rollcall.Error {
	var own *rollcall.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, journal.ErrClosed):
		return errClosed
	case errors.Is(err, journal.ErrBehind):
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the disk is slower than what is to be written: try again later", Err: err}
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG):
		return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "the disk has no room: writes are refused until it has", Err: err}
	default:
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the disk cannot be written: writes are refused until it can", Err: err}
	}
}

// close ends the upkeep, lets go of the journal if the disk lets it, and closes
// everything. What is not in the tables is in the journal.
func (s *store) close() error {
	close(s.stop)
	s.work.Wait()
	if s.fault() == nil && !s.o.InMemory {
		if err := s.checkpoint(); err != nil {
			s.o.Logger.Warn("the tables could not be written on closing: the journal has what they lack", "error", err)
		}
	}
	s.closed.Store(true)
	err := s.journal.Close()
	err = errors.Join(err, s.tables.Load().close(), s.lock.Close())
	s.cache.Unref()
	return err
}

// newBatch returns a batch for apply or queue. It belongs to no Pebble, as
// another may be open when it is applied.
func (s *store) newBatch() *pebble.Batch { return s.batches.Get().(*pebble.Batch) } //nolint:forcetypeassert,errcheck // by New

// reuse takes back a batch that was applied.
func (s *store) reuse(b *pebble.Batch) {
	b.Reset()
	s.batches.Put(b)
}

// apply appends the batch to the journal and applies it to the tables, in the
// order of calls. It is called under the lock that orders the change of memory,
// which must be made only if it succeeds. The batch is not durable before wait
// returns.
func (s *store) apply(b *pebble.Batch) (journal.Ticket, error) {
	s.applying.RLock()
	defer s.applying.RUnlock()
	if s.closed.Load() {
		return journal.Ticket{}, errClosed
	}
	ticket, err := s.journal.Append(b.Repr())
	if err != nil {
		return ticket, faultError(err)
	}
	t := s.tables.Load()
	if err = t.raiseCeiling(ticket.Number); err == nil {
		err = t.db.Apply(b, pebble.NoSync)
	}
	if err != nil {
		// The journal has it, the tables do not: no answer is to be trusted.
		return ticket, s.refuse(rollcall.CodeInternal, true, "the tables refused what the journal took: restart", err)
	}
	return ticket, nil
}

// queue applies a batch that nobody waits for: it is durable with the next
// sync.
func (s *store) queue(b *pebble.Batch) error {
	_, err := s.apply(b)
	return err
}

// put is queue for one record.
func (s *store) put(k key, v []byte) error {
	b := s.newBatch()
	if err := b.Set(k, v, nil); err != nil {
		return err
	}
	return s.queue(b)
}

// wait returns once what has the ticket is durable, if commands wait for that.
func (s *store) wait(t journal.Ticket) error {
	if !s.always {
		return nil
	}
	if err := t.Wait(); err != nil {
		return faultError(err)
	}
	return nil
}

// waitFor is wait for a record and all before it.
func (s *store) waitFor(n uint64) error {
	if !s.always || n <= s.journal.Durable() {
		return nil
	}
	if err := s.journal.SyncTo(n); err != nil {
		return faultError(err)
	}
	return nil
}

// write applies a batch and waits for it, where no memory depends on it.
func (s *store) write(b *pebble.Batch) error {
	if err := s.writable(); err != nil {
		return err
	}
	t, err := s.apply(b)
	if err != nil {
		return err
	}
	return s.wait(t)
}

// syncAll makes everything applied so far durable.
func (s *store) syncAll() error {
	if err := s.journal.Sync(); err != nil {
		return faultError(err)
	}
	return nil
}

// get returns a copy of a value; false if the key is not there.
func (s *store) get(k key) ([]byte, bool, error) {
	db, release, err := s.use()
	if err != nil {
		return nil, false, err
	}
	defer release()
	v, ok, err := getFrom(db, k)
	return v, ok, storeError(err)
}

func getFrom(db *pebble.DB, k key) ([]byte, bool, error) {
	v, closer, err := db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return append([]byte(nil), v...), true, closer.Close()
}

// anyOf returns the first of some keys that is there. They must ascend and
// begin with prefix.
func (s *store) anyOf(prefix key, keys []key) (i int, found bool, err error) {
	db, release, err := s.use()
	if err != nil {
		return 0, false, err
	}
	defer release()
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefix.after()})
	if err != nil {
		return 0, false, storeError(err)
	}
	valid := true
	for i = 0; i < len(keys) && valid && !found; i++ {
		if valid = it.SeekGE(keys[i]); valid {
			found = bytes.Equal(it.Key(), keys[i])
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return 0, false, storeError(err)
	}
	return i - 1, found, nil
}

// scan calls fn for every key that begins with prefix, in order, until fn
// fails. The slices are valid during the call only.
func (s *store) scan(ctx context.Context, prefix key, fn func(k, v []byte) error) error {
	return s.scanRange(ctx, prefix, prefix.after(), fn)
}

func (s *store) scanRange(ctx context.Context, from, to key, fn func(k, v []byte) error) error {
	db, release, err := s.use()
	if err != nil {
		return err
	}
	defer release()
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return storeError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = fn(it.Key(), v)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	if err := it.Error(); err != nil {
		return errors.Join(storeError(err), it.Close())
	}
	return storeError(it.Close())
}

// uninterrupted is the context of reading at Open and of checking, which
// nobody can cut short.
type uninterrupted struct{}

func (uninterrupted) Deadline() (time.Time, bool) { return time.Time{}, false }
func (uninterrupted) Done() <-chan struct{}       { return nil }
func (uninterrupted) Err() error                  { return nil }
func (uninterrupted) Value(any) any               { return nil }

// errStop ends a scan early.
var errStop = errors.New("stop")

func storeError(err error) error {
	if err == nil {
		return nil
	}
	detail := "the store cannot be read"
	if pebble.IsCorruptionError(err) {
		detail = "the store is damaged: stop the server; " + runRepair
	}
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: detail, Err: plainError{err}}
}

// plainError is an error in one line, without what only its makers read.
type plainError struct{ error }

func (e plainError) Unwrap() error { return e.error }

func (e plainError) Error() string {
	text, _, _ := strings.Cut(e.error.Error(), "\n")
	return text
}

// damaged names the record a decoder refused.
func damaged(what string, k []byte, err error) error {
	return &rollcall.Error{
		Code:   rollcall.CodeInternal,
		Detail: fmt.Sprintf("damaged %s at key %x: stop the server; %s", what, k, runRepair), Err: err,
	}
}

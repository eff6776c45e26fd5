package local

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/journal"
)

// The journal and the tables.
//
// Pebble's own log would make each command wait under a lock when the disk is slow, and Pebble
// ends the process when the disk fails. So Pebble has no log here. Every change is a batch that
// is appended to a journal of our own (internal/journal) and to the backlog (store_backlog.go),
// which is applied to Pebble's tables in memory, many batches at once. A change is acknowledged
// once the journal is synced. Pebble writes its tables behind that.
//
// Invariants:
//   - Whoever reads the tables applies the backlog first. So a read finds every change that came
//     before it.
//   - Tables on disk never hold more than the journal has on disk: before Pebble makes a table,
//     beforeTable syncs the journal.
//   - The tables say up to which record they hold everything (metaApplied), and that they hold
//     none above another (metaCeiling). The first may be too low: applying a record again
//     changes nothing, if all after it are applied again too, in their order.
//   - A segment of the journal is released only when the note that the tables hold its records
//     is on disk.
//
// | crash after | what opening finds |
// | --- | --- |
// | the append, in memory | nothing of the command |
// | the journal's write, before its sync | nothing, a torn tail that is reported, or the command |
// | the journal's sync | the command, from the journal |
// | a table, before Pebble's manifest | the same; the table is removed |
// | the manifest | the same; what is applied again changes nothing |
// | the note of what is applied | the command, from the tables |
// | the release of a segment | the command, from the tables |
//
// store_upkeep.go writes the tables and opens them anew when the disk has failed under them,
// store_tablefs.go keeps such a failure from Pebble, store_space.go stops writes before the disk
// is full.

// store is the part of the engine that remembers.
type store struct {
	dir     string
	o       *Options
	lock    *pebble.Lock
	cache   *pebble.Cache
	journal *journal.Journal
	// journaling says that journal is there. Pebble makes tables before that, while the store opens.
	journaling atomic.Bool
	tables     atomic.Pointer[tables]
	notices    *notices
	always     bool           // commands wait for the sync
	durable    func(n uint64) // called after each sync with the newest durable record
	torn       *journal.Tail  // the torn end of the journal that opening found, or nil
	closed     atomic.Bool

	// appending is held for reading while a record is in the journal and not in the backlog yet.
	// With it held for writing, tables and backlog have all records of the journal.
	appending sync.RWMutex
	backlog   backlog

	refusing atomic.Pointer[refusal]           // why writes are refused though the disk takes them
	faults   [2]atomic.Pointer[rollcall.Error] // by journalFault and tablesFault
	guard    spaceGuard

	batches sync.Pool

	checkpoints sync.Mutex // one checkpoint at a time; no segment is released without it
	swapping    sync.Mutex // orders faults of tables and their coming into use

	work sync.WaitGroup
	stop chan struct{}
	wake chan struct{} // a segment has begun, or the tables failed
}

// Where faults are kept.
const (
	journalFault = iota
	tablesFault
)

// use returns the tables in use, which stay open until release is called. They have every change
// that came before.
func (s *store) use() (db *pebble.DB, release func(), err error) {
	if err := s.applyBacklog(); err != nil {
		return nil, nil, err
	}
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

// newBatch returns a batch for apply or queue. It belongs to no Pebble, as another one may be
// open by the time it is applied.
func (s *store) newBatch() *pebble.Batch { return s.batches.Get().(*pebble.Batch) } //nolint:forcetypeassert,errcheck // by New

// reuse takes back a batch that was applied.
func (s *store) reuse(b *pebble.Batch) {
	b.Reset()
	s.batches.Put(b)
}

// apply appends the batch to the journal and to the backlog of the tables. The caller holds the
// lock that orders the change of memory, and makes that change only if apply succeeds: after an
// error nothing is left of the batch. It is durable when wait has returned.
func (s *store) apply(b *pebble.Batch) (journal.Ticket, error) {
	s.appending.RLock()
	defer s.appending.RUnlock()
	if s.closed.Load() {
		return journal.Ticket{}, errClosed
	}
	record := b.Repr()
	ticket, err := s.journal.Append(record)
	if err != nil {
		return ticket, faultError(err)
	}
	switch size := s.backlog.add(record, ticket.Number); {
	case size > maxBacklog: // its own goroutine does not keep up
		_ = s.applyBacklog() // a failure refuses every later write
	case size > backlogBytes:
		s.backlog.signal()
	}
	return ticket, nil
}

// queue applies a batch that nobody waits for. It is durable with the next sync.
func (s *store) queue(b *pebble.Batch) error {
	_, err := s.apply(b)
	return err
}

// put is queue for a single record.
func (s *store) put(k key, v []byte) error {
	b := s.newBatch()
	if err := b.Set(k, v, nil); err != nil {
		return err
	}
	return s.queue(b)
}

// wait returns once a record is durable. With Durability Interval it returns at once.
func (s *store) wait(t journal.Ticket) error {
	if !s.always {
		return nil
	}
	if err := t.Wait(); err != nil {
		return faultError(err)
	}
	return nil
}

// waitFor is wait for a record by number, and for all before it.
func (s *store) waitFor(n uint64) error {
	if !s.always || n <= s.journal.Durable() {
		return nil
	}
	if err := s.journal.SyncTo(n); err != nil {
		return faultError(err)
	}
	return nil
}

// write applies a batch that no memory depends on, and waits for it.
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

// anyOf returns the index of the first of some keys that is there. The keys ascend, and all
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

// scan calls fn for every key that begins with prefix, in order, until fn fails. The slices are
// valid during the call only.
func (s *store) scan(ctx context.Context, prefix key, fn func(k, v []byte) error) error {
	return s.scanRange(ctx, prefix, prefix.after(), fn)
}

// scanRange is scan for the keys in [from, to).
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

// scanBack is scanRange from the last key back to the first.
func (s *store) scanBack(ctx context.Context, from, to key, fn func(k, v []byte) error) error {
	db, release, err := s.use()
	if err != nil {
		return err
	}
	defer release()
	it, err := db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return storeError(err)
	}
	for ok := it.Last(); ok; ok = it.Prev() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = fn(it.Key(), v)
		}
		if err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return storeError(errors.Join(it.Error(), it.Close()))
}

// uninterrupted is the context of reading that nobody can cut short: on opening, in a check, and
// in what an erasure has begun.
func uninterrupted() context.Context {
	return context.Background() //nolint:forbidigo // no caller's context applies
}

// errStop ends a scan early.
var errStop = errors.New("stop")

package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
)

// store is the part of the engine that remembers: Pebble, the rule of when a
// command is acknowledged, and the refusal of writes when it cannot be kept.
type store struct {
	db       *pebble.DB
	logs     *logFS
	lock     *pebble.Lock
	sync     *pebble.WriteOptions
	refusing atomic.Pointer[refusal]

	open sync.RWMutex // held for reading while db is in use, for writing to close it
	shut bool
}

var errClosed = &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the engine is closed"}

// use keeps the store open until release is called.
func (s *store) use() (release func(), err error) {
	s.open.RLock()
	if s.shut {
		s.open.RUnlock()
		return nil, errClosed
	}
	return s.open.RUnlock, nil
}

// close waits for all that uses the store and closes it.
func (s *store) close() error {
	s.open.Lock()
	defer s.open.Unlock()
	s.shut = true
	return errors.Join(s.db.Close(), s.lock.Close())
}

// refusal is why writes are refused.
type refusal struct {
	err   *rollcall.Error
	final bool // only a new start can help
}

// minSyncInterval is the least time from one sync of the log to the next. It
// lets more callers share a sync; one caller alone is slower than that anyway.
const minSyncInterval = 200 * time.Microsecond

func openStore(dir string, o *Options) (*store, error) {
	cache := pebble.NewCache(o.CacheBytes)
	defer cache.Unref()
	logs := &logFS{FS: o.fs}
	opts := &pebble.Options{
		FS:                 logs,
		Cache:              cache,
		FormatMajorVersion: pebble.FormatNewest,
		Merger:             dayMerger(),
		Logger:             pebbleLogger{o.Logger},
		EventListener:      pebbleLogger{o.Logger}.events(),
		MemTableSize:       32 << 20,
		MaxOpenFiles:       1000,
	}
	if o.fs == vfs.Default { // what is in memory syncs in no time
		opts.WALMinSyncInterval = func() time.Duration { return minSyncInterval }
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if err := o.fs.MkdirAll(dir, 0o700); err != nil {
		return nil, openError("made", err)
	}
	lock, err := lockDir(dir, o.fs)
	if err != nil {
		return nil, err
	}
	opts.Lock = lock
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return nil, errors.Join(openError("opened", err), lock.Close())
	}
	s := &store{db: db, logs: logs, lock: lock, sync: pebble.Sync}
	if o.Durability == Interval || o.InMemory {
		s.sync = pebble.NoSync
	}
	return s, nil
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

// openError words a failure to open the store.
func openError(what string, err error) error {
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the data directory cannot be " + what, Err: err}
}

// ErrInUse is in the chain of the error that Open and Check return for a
// directory that another process, or this one, has open.
var ErrInUse = errors.New("stop the server first")

// writable returns why writes are refused, if they are.
func (s *store) writable() error {
	if r := s.refusing.Load(); r != nil {
		return r.err
	}
	return nil
}

// refuse makes every later write fail with code, until allow, or for good.
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

// apply queues the batch and applies it to the store, in the order of calls.
// It is called under the lock that orders the change of memory, which must be
// made only if it succeeds. The batch is not durable before wait returns.
func (s *store) apply(b *pebble.Batch) error {
	release, err := s.use()
	if err != nil {
		return err
	}
	defer release()
	if s.sync.Sync {
		err = s.db.ApplyNoSyncWait(b, s.sync)
	} else {
		err = s.db.Apply(b, s.sync)
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

// queue applies a batch that nobody waits for: it is durable with the next
// sync.
func (s *store) queue(b *pebble.Batch) error {
	release, err := s.use()
	if err != nil {
		return err
	}
	defer release()
	if err := s.db.Apply(b, pebble.NoSync); err != nil {
		return s.failed(err)
	}
	return nil
}

// put is queue for one record.
func (s *store) put(k key, v []byte) error {
	b := s.db.NewBatch()
	if err := b.Set(k, v, nil); err != nil {
		return err
	}
	return errors.Join(s.queue(b), b.Close())
}

// failed refuses writes from now on, for good: after a failed write or sync
// nobody can say what is on the disk.
func (s *store) failed(err error) error {
	return s.refuse(rollcall.CodeUnavailable, true, "the store cannot be written: restart when the disk is well", err)
}

// wait returns once the batch is durable, and releases it.
func (s *store) wait(b *pebble.Batch) error {
	if s.sync.Sync {
		if err := b.SyncWait(); err != nil {
			return s.failed(err)
		}
	}
	return b.Close()
}

// write applies a batch and waits for it, where no memory depends on it.
func (s *store) write(b *pebble.Batch) error {
	if err := s.writable(); err != nil {
		return errors.Join(err, b.Close())
	}
	if err := s.apply(b); err != nil {
		return err
	}
	return s.wait(b)
}

// syncAll makes everything applied so far durable.
func (s *store) syncAll() error {
	release, err := s.use()
	if err != nil {
		return err
	}
	defer release()
	if err := s.db.LogData(nil, pebble.Sync); err != nil {
		return s.failed(err)
	}
	return nil
}

// get returns a copy of a value; false if the key is not there.
func (s *store) get(k key) ([]byte, bool, error) {
	release, err := s.use()
	if err != nil {
		return nil, false, err
	}
	defer release()
	v, closer, err := s.db.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, storeError(err)
	}
	out := append([]byte(nil), v...)
	return out, true, storeError(closer.Close())
}

// anyOf returns the first of some keys that is there. They must ascend and
// begin with prefix.
func (s *store) anyOf(prefix key, keys []key) (i int, found bool, err error) {
	release, err := s.use()
	if err != nil {
		return 0, false, err
	}
	defer release()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefix.after()})
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
	release, err := s.use()
	if err != nil {
		return err
	}
	defer release()
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: from, UpperBound: to})
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
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the store cannot be read", Err: err}
}

// damaged names the record a decoder refused.
func damaged(what string, k []byte, err error) error {
	return &rollcall.Error{
		Code:   rollcall.CodeInternal,
		Detail: fmt.Sprintf("damaged %s at key %x: run rollcall check", what, k), Err: err,
	}
}

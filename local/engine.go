package local

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/coldcache"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/recency"
)

// Engine is the embedded engine. It is safe for concurrent use; only one
// process at a time can have its directory open.
type Engine struct {
	attendanceFigures

	opts         Options
	store        *store
	parts        []*partition // by the low bits of the user's hash
	seconds      recency.Seconds
	outages      outages
	events       *eventLog
	kinds        kindTable
	keys         keyTable
	webhooks     webhookTable
	passes       passTable
	audit        auditTrail
	visits       visits
	samples      sampler
	retries      retryLocks // taken before the lock of a partition
	erasures     erasures
	offloaded    offloadedDays
	figureCache  figureCache
	retention    retention
	settings     rollcall.Settings
	offlineAfter time.Duration // silence after which users are announced offline
	scratch      sync.Pool     // *beatScratch
	friendLists  sync.Pool     // *friendList
	logins       sync.Pool     // *loginTx

	state       enginekit.State
	lastTick    atomic.Int64  // time of the latest tick, ms
	reserveUsed atomic.Bool   // what was heard before the disk was full has been flushed
	closing     sync.RWMutex  // held for reading by upkeep, for writing by Close
	flushing    sync.Mutex    // held by a flush, a step of trimming, or a rewrite of events
	sweptParts  atomic.Uint32 // partitions that ticks have swept in all
	backingUp   sync.Mutex    // one backup at a time
}

var (
	_ rollcall.Engine       = (*Engine)(nil)
	_ rollcall.BackupSource = (*Engine)(nil)
)

// partitions is how many partitions new data is spread over. It is stored, and
// must be a power of two of at most 256.
const partitions = 64

// format is the version of the layout of the store.
const format = 13

// The names of the meta table.
const (
	metaFormat     = "format"
	metaPartitions = "partitions"
	metaEpoch      = "epoch"
	metaTimezone   = "timezone"
	metaSecret     = "secret" // its id, not the secret
	metaStamp      = "stamp"
	metaOutages    = "outages"
	metaTrimmed    = "trimmed"
	metaApplied    = "applied"
	metaCeiling    = "ceiling"
)

// Open opens the data in a directory and rebuilds memory from it. If the directory holds
// none, it makes new data.
func Open(dir string, o Options) (*Engine, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	e := &Engine{opts: o}
	e.attendanceFigures.Days = engineDays{e}
	st, err := openStore(dir, &e.opts, e.synced)
	if err != nil {
		return nil, err
	}
	e.store, e.kinds.store, e.visits = st, st, newVisits(st)
	e.offloaded.days = make(map[dayID]bool)
	e.figureCache.figures = make(map[dayID]dayFigures)
	e.scratch.New = func() any { return new(beatScratch) }
	e.friendLists.New = func() any { return new(friendList) }
	e.logins.New = func() any { return &loginTx{tx: new(tx)} }
	if err := e.load(); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return e, nil
}

// synced is called after each sync of the journal with the newest durable record.
func (e *Engine) synced(n uint64) { e.events.synced(n) }

// initMeta reads what was fixed when the data was created, or creates it.
func (e *Engine) initMeta() error {
	v, ok, err := e.store.get(metaKey(metaFormat))
	if err != nil {
		return err
	}
	if !ok {
		return e.create()
	}
	if len(v) != 1 || v[0] != format {
		return &rollcall.Error{Code: rollcall.CodeConflict, Detail: "the data has a format this version does not know"}
	}
	parts, _, err := e.store.get(metaKey(metaPartitions))
	if err != nil {
		return err
	}
	epoch, _, err := e.store.get(metaKey(metaEpoch))
	if err != nil {
		return err
	}
	if len(parts) != 2 || len(epoch) != 4 {
		return damaged("header", metaKey(metaPartitions), errDamaged)
	}
	n := int(binary.BigEndian.Uint16(parts))
	if n < 1 || n > 256 || n&(n-1) != 0 {
		return damaged("header", metaKey(metaPartitions), errDamaged)
	}
	e.setUp(n, binary.BigEndian.Uint32(epoch))
	return nil
}

// create fixes the format, the number of partitions and the epoch of new data.
func (e *Engine) create() error {
	var epoch [4]byte
	_, _ = rand.Read(epoch[:]) // never fails
	b := e.store.newBatch()
	for name, v := range map[string][]byte{
		metaFormat:     {format},
		metaPartitions: binary.BigEndian.AppendUint16(nil, partitions),
		metaEpoch:      epoch[:],
	} {
		if err := b.Set(metaKey(name), v, nil); err != nil {
			return err
		}
	}
	e.setUp(partitions, binary.BigEndian.Uint32(epoch[:]))
	return e.store.write(b)
}

// setUp makes the partitions, empty.
func (e *Engine) setUp(n int, epoch uint32) {
	e.offloaded.months = coldcache.New(n, e.opts.ColdCacheBytes)
	e.events = newEventLog(e.store, epoch)
	e.parts = make([]*partition, n)
	for i := range e.parts {
		e.parts[i] = newPartition(e, uint8(i))
	}
}

// Configure implements [rollcall.Engine].
func (e *Engine) Configure(ctx context.Context, s rollcall.Settings) error {
	v, ok, err := e.store.get(metaKey(metaTimezone))
	if err != nil {
		return err
	}
	if ok && string(v) != s.Timezone {
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "timezone",
			Detail: "the data was created with " + string(v) + ", its days cannot be read as days of " + s.Timezone,
		}
	}

	// Refuse what would read the data wrongly: a clock far behind, another secret.
	latest := max(e.latest(0), e.outages.stamp.Load())
	if err := aheadError(time.UnixMilli(latest), s.Now); err != nil {
		return err
	}
	if err := e.sameSecret(s.SecretID); err != nil {
		return err
	}
	if !ok {
		if err := e.store.put(metaKey(metaTimezone), []byte(s.Timezone)); err != nil {
			return err
		}
		if err := e.store.syncAll(); err != nil {
			return err
		}
	}

	e.settings = s
	if s.Location != nil {
		e.visits.zone = s.Location
	}
	e.offlineAfter = s.Window + s.OfflineGrace
	e.outages.configure(s)
	e.events.keep = s.EventsCount

	// With new data, or without presence events, all users who are silent by now count as
	// announced.
	for _, p := range e.parts {
		if line := onlineSince(p.clock, e.offlineAfter); p.announcements.place.Sec == 0 || !s.PresenceEvents {
			p.announcements.place = recency.Place{Sec: max(p.announcements.place.Sec, line)}
		}
	}
	e.state.Ready.Store(true)

	// An erasure that a crash cut short goes on before any command. If the store cannot
	// be written, the first tick that can takes it up.
	if e.erasures.current.Load() != nil && e.store.writable() == nil {
		return e.finishErasures(ctx, s.Now)
	}
	return nil
}

// aheadError refuses data with a time more than a day later than now, and says what sets
// it right.
func aheadError(latest, now time.Time) error {
	err := rollcall.CheckAhead(latest, now)
	if own := new(rollcall.Error); errors.As(err, &own) {
		own.Detail += "; without one, \"rollcall check --repair\" sets its times back"
	}
	return err
}

// readable returns an error unless the engine is open and configured.
func (e *Engine) readable() error { return e.state.Err() }

// enter begins every command that takes the time. The command is a sign of life.
func (e *Engine) enter(now time.Time) (int64, error) {
	ms := now.UnixMilli()
	if err := e.readable(); err != nil {
		return ms, err
	}
	e.outages.signOfLife(ms, e.store.writable() != nil)
	return ms, nil
}

// writable returns an error unless the engine takes changes.
func (e *Engine) writable() error {
	if err := e.readable(); err != nil {
		return err
	}
	return e.store.writable()
}

// enterWrite begins every command that changes something.
func (e *Engine) enterWrite(now time.Time) (int64, error) {
	ms, err := e.enter(now)
	if err == nil {
		err = e.store.writable()
	}
	return ms, err
}

func (e *Engine) partitionOf(user string) *partition {
	return e.parts[rollcall.HashUser(user)&uint64(len(e.parts)-1)]
}

// rlockAll locks all partitions for reading. What is read then is of one instant.
func (e *Engine) rlockAll() {
	for _, p := range e.parts {
		p.mu.RLock()
	}
}

func (e *Engine) runlockAll() {
	for _, p := range e.parts {
		p.mu.RUnlock()
	}
}

// Close implements [rollcall.Engine].
func (e *Engine) Close() error {
	e.closing.Lock()
	defer e.closing.Unlock()
	if e.state.Closed.Swap(true) {
		return nil
	}

	// What was acknowledged before the disk filled goes into the space kept free.
	var err error
	e.store.guard.off.Store(true)
	e.store.allow()
	if e.store.writable() == nil {
		err = e.flushAll()
	}
	e.events.close()
	return errors.Join(err, e.store.close())
}

// sameSecret refuses another secret than the one the data was made with: bans, cursors and
// retry keys hold under one secret only. An id of "" is a secret of this process alone,
// which is neither compared nor stored.
func (e *Engine) sameSecret(id string) error {
	if id == "" {
		return nil
	}
	stands, ok, err := e.store.get(metaKey(metaSecret))
	switch {
	case err != nil:
		return err
	case !ok:
		if err := e.store.put(metaKey(metaSecret), []byte(id)); err != nil {
			return err
		}
		return e.store.syncAll()
	case string(stands) != id:
		return &rollcall.Error{
			Code: rollcall.CodeConflict, Field: "secret",
			Detail: "is another one than that which the data was made with: put the right one back",
		}
	}
	return nil
}

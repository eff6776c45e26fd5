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
	"github.com/rollcall/rollcall/internal/recency"
)

// Engine is the embedded engine. It is safe for concurrent use; only one
// process at a time can have its directory open.
type Engine struct {
	opts        Options
	store       *store
	parts       []*partition // by the low bits of the user's hash
	seconds     recency.Seconds
	outages     outages
	events      *eventLog
	kinds       kindTable
	keys        keyTable
	visits      visits
	retries     retryLocks // taken before the lock of a partition
	erasing     erasing
	offloaded   offloadedDays
	figureCache figureCache
	retention   retention
	settings    rollcall.Settings
	announced   time.Duration // silence after which a user is announced offline
	scratch     sync.Pool     // *beatScratch

	ready       atomic.Bool // configured
	closed      atomic.Bool
	ticked      atomic.Int64  // time of the latest tick, ms
	reserveUsed atomic.Bool   // what was heard before the disk was full has been flushed
	busy        sync.RWMutex  // held for reading by upkeep, for writing by Close
	flush       sync.Mutex    // one flush at a time
	swept       atomic.Uint32 // how many partitions ticks have swept
}

var _ rollcall.Engine = (*Engine)(nil)

// partitions is how many partitions new data is spread over. It is stored, and
// must be a power of two of at most 256.
const partitions = 64

// format is the version of the layout of the store.
const format = 8

// The names of the meta table.
const (
	metaFormat     = "format"
	metaPartitions = "partitions"
	metaEpoch      = "epoch"
	metaTimezone   = "timezone"
	metaSecret     = "secret" // what stands for it, not the secret
	metaStamp      = "stamp"
	metaOutages    = "outages"
	metaTrimmed    = "trimmed"
	metaApplied    = "applied"
	metaCeiling    = "ceiling"
)

// Open opens the data in a directory, making it if need be, and rebuilds
// memory from it.
func Open(dir string, o Options) (*Engine, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	e := &Engine{opts: o}
	st, err := openStore(dir, &e.opts, e.synced)
	if err != nil {
		return nil, err
	}
	e.store, e.kinds.store, e.visits = st, st, newVisits(st)
	e.offloaded.days = make(map[dayID]bool)
	e.figureCache.figures = make(map[dayID]dayFigures)
	e.scratch.New = func() any { return new(beatScratch) }
	if err := e.load(); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return e, nil
}

// synced is told of each sync of the journal.
func (e *Engine) synced(n uint64) { e.events.synced(n) }

// initMeta reads or makes what is fixed when the data is created.
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
	e.announced = s.Window + s.OfflineGrace
	e.outages.configure(s)
	e.events.keep = s.EventsCount
	for _, p := range e.parts {
		// New data, or nobody is told: all who fell silent before are known to have.
		if line := onlineSince(p.clock, e.announced); p.told.place.Sec == 0 || !s.PresenceEvents {
			p.told.place = recency.Place{Sec: max(p.told.place.Sec, line)}
		}
	}
	e.ready.Store(true)
	if e.erasing.begun.Load() != nil && e.store.writable() == nil { // else the first tick that can
		return e.finishErasures(ctx, s.Now)
	}
	return nil
}

// aheadError refuses data that knows a time more than a day later than now, and
// says what sets it right.
func aheadError(latest, now time.Time) error {
	err := rollcall.CheckAhead(latest, now)
	if own := new(rollcall.Error); errors.As(err, &own) {
		own.Detail += "; without one, \"rollcall check --repair\" sets its times back"
	}
	return err
}

// open returns an error unless the engine can be read.
func (e *Engine) open() error {
	switch {
	case e.closed.Load():
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the engine is closed"}
	case !e.ready.Load():
		return &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the engine is not configured"}
	default:
		return nil
	}
}

// enter begins every command that takes the time.
func (e *Engine) enter(now time.Time) (int64, error) {
	ms := now.UnixMilli()
	if err := e.open(); err != nil {
		return ms, err
	}
	e.outages.note(ms, e.store.writable() != nil)
	return ms, nil
}

// writes returns an error unless the engine can be read and written.
func (e *Engine) writes() error {
	if err := e.open(); err != nil {
		return err
	}
	return e.store.writable()
}

// zone is the zone of the civil day.
func (e *Engine) zone() *time.Location {
	if e.settings.Location == nil {
		return time.UTC
	}
	return e.settings.Location
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

// rlockAll stops all change: what is read then holds at one instant.
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
	e.busy.Lock()
	defer e.busy.Unlock()
	if e.closed.Swap(true) {
		return nil
	}
	var err error
	e.store.guard.off.Store(true) // what was acknowledged before the disk filled goes into the space kept free
	e.store.allow()
	if e.store.writable() == nil {
		err = e.flushAll()
	}
	e.events.close()
	return errors.Join(err, e.store.close())
}

// Tail implements [rollcall.Events].
func (e *Engine) Tail(ctx context.Context, after rollcall.EventID, limit int, v rollcall.Viewer) ([]rollcall.Event, error) {
	if err := e.open(); err != nil {
		return nil, err
	}
	return e.events.tail(ctx, after, max(1, limit), v)
}

// LastEvent implements [rollcall.Events].
func (e *Engine) LastEvent(context.Context) (rollcall.EventID, error) {
	return e.events.last(), e.open()
}

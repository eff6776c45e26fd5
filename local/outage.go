package local

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
)

// Outages: downtime is not absence.
//
// Every command is a sign of life of the engine; the latest is the stamp, which
// each flush makes durable. Two things are outages: a gap of more than 5 s
// between stamps (a stop, a freeze, a crash), and time in which the store
// refuses writes, because nobody can be heard then. A deadline that falls into
// an outage, or into the restart grace behind it, moves to the end of the grace;
// while the grace lasts, windows of presence are measured from the instant at
// which the outage began.
//
// Invariants:
//   - An outage never begins before a deadline that has taken effect, so that
//     it revives nobody: see [outages.noteExpiry] and [Engine.ensureStamp].
//   - Outages whose graces touch are one, so the list holds what does not touch,
//     in the order of time. A later outage begins after the graces of all
//     earlier ones, so an old one no longer decides who is alive, and may go.
//   - An outage keeps the end of its own grace: another restart_grace in the
//     configuration changes no deadline that was told.
//
// The steps of a command that finds a gap: record the outage in memory, move the stamp,
// go on. The next flush, or the next end that is told (ensureStamp), stores both in one
// batch.
//
// | crash after | what opening finds |
// | --- | --- |
// | the outage is recorded in memory | the stamp from before it: the same outage is recorded again, and may be longer |
// | a command behind it is durable | a time later than the stamp by a gap: the outage is recorded by Configure (loaded) |
// | the stamp is stored | the outage, and a stamp behind it |
//
// The stamp on disk is at least as late as any idle end that a caller was told of, and as
// any end that was stored. The gap from the latest time on disk to the next command is
// an outage too.

// maxGap is the longest time between two stamps of life that is no outage.
const maxGap = 5000

// keptOutages bounds the list.
const keptOutages = 16

// outage is a time during which nothing could be heard, from its first instant
// to the end of its grace, in milliseconds.
type outage struct{ from, until int64 }

// outages are the known outages, and what they mean for deadlines. All methods are safe
// for concurrent use.
type outages struct {
	mu           sync.Mutex
	stamp        atomic.Int64 // of the last sign of life; 0 until the first tick
	savedStamp   atomic.Int64 // the stamp that is durable
	latestExpiry atomic.Int64 // the latest idle deadline at which a session was expired
	refusing     atomic.Bool  // the store refused writes at the stamp
	list         atomic.Pointer[[]outage]
	count        atomic.Int64
	refusedSince int64 // when the refusal began; guarded by mu
	grace        int64

	lostInCrash outage // an outage that a crash lost, without its grace; zero for none

	saving sync.Mutex // one call of ensureStamp writes at a time
}

// signOfLife is called by every command first, with whether the store refuses writes. It
// records an outage if the last sign of life lies too far back, and one for as long as
// writes are refused.
func (o *outages) signOfLife(now int64, refusing bool) {
	// Nearly always nothing has happened: move the stamp without the lock.
	stamp, was := o.stamp.Load(), o.refusing.Load()
	if stamp == 0 || (now <= stamp && refusing == was) {
		return
	}
	if !refusing && !was && now-stamp <= maxGap {
		o.stamp.CompareAndSwap(stamp, now)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	stamp, was = o.stamp.Load(), o.refusing.Load()
	now = max(now, stamp)
	switch {
	case refusing && !was:
		// Nobody can say when the store began to fail. What is not durable may never
		// become so, hence the outage begins with the durable stamp.
		o.count.Add(1)
		o.refusedSince = max(o.savedStamp.Load(), o.latestExpiry.Load())
		o.record(o.refusedSince, now, 1)
	case refusing:
		o.record(o.refusedSince, now, 1)
	case was:
		o.record(o.refusedSince, now, 0)
	case now-stamp > maxGap:
		o.count.Add(1)
		o.record(max(stamp, o.latestExpiry.Load()), now, 0)
	}
	o.refusing.Store(refusing)
	o.stamp.Store(now)
}

// record adds an outage from one instant to now, with its grace. If there is no grace,
// least keeps it going beyond now. It becomes one with the outages whose graces it
// touches. The caller holds mu.
func (o *outages) record(from, now, least int64) {
	list := slices.Clone(o.all())
	until := now + max(o.grace, least)
	for n := len(list); n > 0 && from < list[n-1].until; n = len(list) {
		from, until = min(from, list[n-1].from), max(until, list[n-1].until)
		list = list[:n-1]
	}
	if from < until {
		list = append(list, outage{from, until})
	}
	list = list[max(0, len(list)-keptOutages):]
	o.list.Store(&list)
}

// begin makes gaps count as outages: it starts the stamps; later ticks change nothing.
func (o *outages) begin(now int64) { o.stamp.CompareAndSwap(0, now) }

// noteExpiry notes that a session was expired because its idle deadline passed.
func (o *outages) noteExpiry(deadline int64) { storeMax(&o.latestExpiry, deadline) }

// loaded is called on opening with the latest time in the store: the engine lived then,
// whatever the stamp says. If there is a gap between the two, a crash lost an outage: a
// command behind it became durable before the stamp. Configure records it, as it knows
// how long the grace is.
func (o *outages) loaded(latest int64) {
	if stamp := o.stamp.Load(); stamp != 0 {
		if latest-stamp > maxGap {
			o.lostInCrash = outage{stamp, latest}
		}
		storeMax(&o.stamp, latest)
	}
	o.savedStamp.Store(o.stamp.Load())
}

func storeMax(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if to <= old || v.CompareAndSwap(old, to) {
			return
		}
	}
}

func (o *outages) all() []outage {
	if l := o.list.Load(); l != nil {
		return *l
	}
	return nil
}

// effectiveDeadline moves a deadline that falls into an outage, or into the grace behind
// it, to the end of the grace. It keeps the order of deadlines. A deadline that had passed
// when the outage began stays: somebody may have been told of it.
func (o *outages) effectiveDeadline(deadline int64) int64 {
	for _, out := range o.all() {
		if out.from < deadline && deadline < out.until {
			deadline = out.until
		}
	}
	return deadline
}

// effectiveNow is the instant from which windows of presence are measured at now. During
// an outage and its grace it is the instant at which the outage began, so that who was
// online then still is.
func (o *outages) effectiveNow(now int64) int64 {
	list := o.all()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].from <= now && now < list[i].until {
			now = list[i].from
		}
	}
	return now
}

// put puts the outages and the stamp, or a later time, into a batch. Once that is
// durable, the caller calls setDurable with the result.
func (o *outages) put(b *pebble.Batch, least int64) (stamp int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	stamp = o.stamp.Load()
	if stamp == 0 {
		return 0, nil
	}
	stamp = max(stamp, least)
	return stamp, errors.Join(
		b.Set(metaKey(metaStamp), binary.BigEndian.AppendUint64(nil, uint64(stamp)), nil),
		b.Set(metaKey(metaOutages), o.encode(), nil))
}

// setDurable notes the stamp that is on disk.
func (o *outages) setDurable(stamp int64) { storeMax(&o.savedStamp, stamp) }

// ensureStamp returns once a caller may be told that a session has ended: no crash can
// bring it back. An idle end is computed, and after a crash there is an outage that
// begins with the stamp on disk. If that lay before the end, the outage would put the end
// off. Any other end must be on disk itself.
func (e *Engine) ensureStamp(p *partition, end *rollcall.End) error {
	o := &e.outages
	if !e.store.always {
		return nil // with this durability a crash may lose a second
	}
	at := end.At.UnixMilli()
	if end.Cause != rollcall.CauseExpired || o.stamp.Load() == 0 || at <= o.savedStamp.Load() {
		return e.store.waitFor(p.newestRecord.Load())
	}
	o.saving.Lock()
	defer o.saving.Unlock()
	if at <= o.savedStamp.Load() { // another caller has stored it meanwhile
		return nil
	}
	b := e.store.newBatch()
	stamp, err := o.put(b, at)
	if err != nil {
		return errors.Join(err, b.Close())
	}
	if err := e.store.write(b); err != nil {
		return err
	}
	o.setDurable(stamp)
	return nil
}

func (o *outages) encode() []byte {
	w := writer{}
	list := o.all()
	w.uint(uint64(o.count.Load()))
	w.uint(uint64(len(list)))
	for _, out := range list {
		w.int(out.from)
		w.int(out.until)
	}
	return w.b
}

func (o *outages) decode(b []byte) error {
	r := reader{b: b}
	o.count.Store(int64(r.uint()))
	n := r.uint()
	if n > keptOutages {
		return errDamaged
	}
	list := make([]outage, n)
	for i := range list {
		list[i] = outage{r.int(), r.int()}
	}
	o.list.Store(&list)
	return r.done()
}

// configure sets the grace, and records the outage that a crash lost.
func (o *outages) configure(s rollcall.Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grace = s.RestartGrace.Milliseconds()
	if f := o.lostInCrash; f != (outage{}) {
		o.lostInCrash = outage{}
		o.count.Add(1)
		o.record(f.from, f.until, 0)
	}
}

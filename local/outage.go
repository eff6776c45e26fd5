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
//     it revives nobody: see [outages.took] and [Engine.attest].
//   - Outages whose graces touch are one, so the list holds what does not touch,
//     in the order of time. A later outage begins after the graces of all
//     earlier ones, so an old one no longer decides who is alive, and may go.
//   - An outage keeps the end of its own grace: another restart_grace in the
//     configuration changes no deadline that was told.
//
// What opening finds after a crash: the stamp on disk is at least as late as any
// idle end that a caller was told of (attest), as any session, touch or beat on
// disk (loaded), and as any end that was stored. The gap from there to the next
// command is the outage.

// maxGap is the longest time between two stamps of life that is no outage.
const maxGap = 5000

// keptOutages bounds the list.
const keptOutages = 16

// outage is a time during which nothing could be heard, from its first instant
// to the end of its grace, in milliseconds.
type outage struct{ from, until int64 }

// outages are all that is known of them, and what they mean for deadlines. All
// methods are safe for concurrent use.
type outages struct {
	mu       sync.Mutex
	stamp    atomic.Int64 // of the last sign of life; 0 until the first tick
	saved    atomic.Int64 // the stamp that is durable
	taken    atomic.Int64 // latest idle deadline by which a session left the lists
	refusing atomic.Bool  // the store refused writes at the stamp
	list     atomic.Pointer[[]outage]
	count    atomic.Int64
	refused  int64 // when the refusal began; guarded by mu
	grace    int64

	forgotten outage // by a crash, without its grace; zero for none

	saving sync.Mutex // one attest writes at a time
}

// note takes a command for a sign of life, and says whether the store refuses
// writes meanwhile. It records an outage if the last sign lies too far back, and
// for as long as writes are refused. Every command calls it first.
func (o *outages) note(now int64, refusing bool) {
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
		// Nobody can say when the store began to fail: what is not durable
		// may never become so.
		o.count.Add(1)
		o.refused = max(o.saved.Load(), o.taken.Load())
		o.record(o.refused, now, 1)
	case refusing:
		o.record(o.refused, now, 1)
	case was:
		o.record(o.refused, now, 0)
	case now-stamp > maxGap:
		o.count.Add(1)
		o.record(max(stamp, o.taken.Load()), now, 0)
	}
	o.refusing.Store(refusing)
	o.stamp.Store(now)
}

// record adds an outage that began at from and lasts until now, or longer: then
// least keeps it going beyond now if there is no grace. It becomes one with
// those whose graces it touches. The caller holds mu.
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

// tick makes gaps count from now on, if they do not yet.
func (o *outages) tick(now int64) { o.stamp.CompareAndSwap(0, now) }

// noteExpiry notes that a session left the lists because its idle deadline passed.
func (o *outages) noteExpiry(deadline int64) { storeMax(&o.taken, deadline) }

// loaded says how late a time the rest of the store knows: the engine lived then,
// whatever the stamp says. If that is a gap after the stamp, a crash forgot an outage:
// it is stored with the next stamp, and commands after it may be durable before.
// Configure, which says how long graces are, records it.
func (o *outages) loaded(latest int64) {
	if stamp := o.stamp.Load(); stamp != 0 {
		if latest-stamp > maxGap {
			o.forgotten = outage{stamp, latest}
		}
		storeMax(&o.stamp, latest)
	}
	o.saved.Store(o.stamp.Load())
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

// effectiveDeadline moves a deadline that fell into an outage, or the grace behind it, to
// the end of the grace. It keeps the order of deadlines. One that had passed
// when the outage began, and so may have been told of, stays.
func (o *outages) effectiveDeadline(deadline int64) int64 {
	for _, out := range o.all() {
		if out.from < deadline && deadline < out.until {
			deadline = out.until
		}
	}
	return deadline
}

// effectiveNow is the instant from which windows are measured at now: during the
// grace after an outage, the instant the outage began, so that who was online
// then still is.
func (o *outages) effectiveNow(now int64) int64 {
	list := o.all()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].from <= now && now < list[i].until {
			now = list[i].from
		}
	}
	return now
}

// put puts the stamp, at least as late as a time, and the outages into a batch.
// Once that is durable, call durable with what it returns.
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

// durable notes the stamp that is on disk.
func (o *outages) durable(stamp int64) { storeMax(&o.saved, stamp) }

// ensureStamp returns once no crash can bring back a session that a caller is about
// to be told has ended. A crash is followed by an outage that begins with the
// stamp on disk: that must not lie before the end, or the outage would put it
// off. An end by a command must be on disk itself.
func (e *Engine) ensureStamp(p *partition, end *rollcall.End) error {
	o := &e.outages
	if !e.store.always {
		return nil // up to a second is lost by the rules of this store
	}
	at := end.At.UnixMilli()
	if end.Cause != rollcall.CauseExpired || o.stamp.Load() == 0 || at <= o.saved.Load() {
		return e.store.waitFor(p.newest.Load())
	}
	o.saving.Lock()
	defer o.saving.Unlock()
	if at <= o.saved.Load() { // another one has seen to it meanwhile
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
	o.durable(stamp)
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

// configure takes over the grace.
func (o *outages) configure(s rollcall.Settings) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grace = s.RestartGrace.Milliseconds()
	if f := o.forgotten; f != (outage{}) {
		o.forgotten = outage{}
		o.count.Add(1)
		o.record(f.from, f.until, 0)
	}
}

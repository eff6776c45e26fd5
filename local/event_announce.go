package local

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/recency"
)

// Announcing who comes and goes.
//
// A bit for each number says whether the user has been announced online. Who is
// heard while it is not set comes online; whose bit is set goes offline when the
// window has passed since their last second, when they are kicked, or, having
// logged out, when the leave grace is over. An event carries the instant the
// change happened at, whenever it comes to be told; the events of a user are
// told in that order, those of their sessions among them: whatever appends an
// event about a user first appends what is overdue of them (replayJournal).
//
// A command's events are in its batch. Those of beats and touches wait in
// memory for the flush that stores the beats themselves, in the same batch; so a
// crash loses both or neither. A command about a user whose event waits takes
// it along, with a record of their sign of life (tabHeard), which the next flush
// replaces. The going of silent users is told in steps, each with how far it got
// (tabSilent, tabQuiet) in its batch.
//
// Opening finds: online are those seen since the line of tabSilent who are not
// gone, but for those named in tabQuiet as told already; and who logged out and
// whose grace is in tabGone.
type announcing struct {
	online  bitset        // announced online, and not offline since
	stored  uint32        // place.Sec in the store
	place   recency.Place // users last seen before it have been announced offline
	parts   uint32        // records of tabQuiet so far
	leaving endHeap       // by number: when who logged out is to be announced offline

	waiting []waitingEvent // for the next flush
	has     bitset         // numbers of which an event waits
	heard   []uint32       // numbers with a record of tabHeard
}

// waitingEvent is a presence event that waits for the next flush.
type waitingEvent struct {
	at      int64
	n       uint32
	offline bool
	aud     enginekit.Audience
}

// maxWaiting events of a partition wait at most; then it is flushed early.
const maxWaiting = 4096

// silenceStep bounds the log entries that one step looks at for users who fell
// silent.
const silenceStep = 256

// offlineBefore returns when a user last seen in a second goes offline by silence.
func (p *partition) offlineBefore(last uint32) int64 {
	return p.eng.outages.effectiveDeadline((int64(last) + int64(p.eng.announced/time.Second) + 1) * 1000)
}

// offlineAt returns when a user who was announced online goes offline unless they
// are heard: last is when they were last seen.
func (p *partition) offlineAt(n, last uint32) int64 {
	if due, ok := p.told.leaving.of(n); ok {
		return due
	}
	return p.offlineBefore(last)
}

// announceOnline is told of a sign of life outside of a command with a batch of its own,
// by users who may have been offline. prev is when they were seen before, 0 for
// never.
func (p *partition) announceOnline(now int64, n, prev uint32) {
	t := &p.told
	if t.online.has(n) {
		at := p.offlineAt(n, prev)
		t.leaving.remove(n)
		if at > now {
			return // they logged out, and are back in time
		}
		p.queueEvent(waitingEvent{at: at, n: n, offline: true})
	}
	t.online.add(n)
	p.queueEvent(waitingEvent{at: now, n: n})
}

func (p *partition) queueEvent(e waitingEvent) {
	e.aud = p.audience(e.n)
	p.told.waiting = append(p.told.waiting, e)
	p.told.has.add(e.n)
}

// audience says who is told of a user's coming and going.
func (p *partition) audience(n uint32) enginekit.Audience {
	if p.users.invisible.Contains(n) {
		return enginekit.ForAdmin
	}
	return enginekit.ForAll
}

// event makes the event of one that waited.
func (p *partition) event(w waitingEvent) event {
	typ := rollcall.UserOnline
	if w.offline {
		typ = rollcall.UserOffline
	}
	return event{Event: rollcall.Event{Type: typ, At: enginekit.TimeOf(w.at), User: p.dir.ID(w.n)}, aud: w.aud}
}

// presence appends a change of a user to the unit.
func (u *tx) presence(n uint32, at int64, offline bool) {
	if !u.p.eng.settings.PresenceEvents {
		return
	}
	e := waitingEvent{at: at, n: n, offline: offline, aud: u.p.audience(n)}
	u.events = append(u.events, u.p.event(e))
	u.changes = append(u.changes, e)
}

// appendOverdue appends what has happened to a user and was not told yet: what waits,
// sessions that reached their deadline, silence. It returns whether the user is
// announced online then. What it found of sessions is removed by reaped, once
// the unit has been applied and memory changed.
func (u *tx) appendOverdue(n uint32, now int64) (online bool, err error) {
	p, from := u.p, len(u.events)
	if err := u.takeWaiting(n); err != nil {
		return false, err
	}
	s := &p.sessions
	s.eachOverdue(n, now, func(slot uint32) {
		if slices.Contains(u.overdue, slot) {
			return
		}
		at, cause := s.deadline(slot)
		session := s.ended(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
		err = cmp.Or(err, u.end(&session, s.token.Get(slot)))
		u.overdue = append(u.overdue, slot)
	})
	if online = p.told.online.has(n) && !u.announces(n); online {
		if at := p.offlineAt(n, p.presence.seen.Last(n)); at <= now {
			u.presence(n, at, true)
			online = false
			if _, leaving := p.told.leaving.of(n); leaving { // told now, and not again after a crash
				err = cmp.Or(err, u.batch.Set(goneKey(p.index, n), nil, nil))
			}
		}
	}
	slices.SortStableFunc(u.events[from:], func(a, b event) int { return a.At.Compare(b.At) })
	return online, err
}

// announces reports whether the unit has a change of a user.
func (u *tx) announces(n uint32) bool {
	return slices.ContainsFunc(u.changes, func(c waitingEvent) bool { return c.n == n })
}

// takeWaiting takes a user's events that wait along with the unit.
func (u *tx) takeWaiting(n uint32) error {
	p := u.p
	if !p.told.has.has(n) || slices.Contains(u.taken, n) {
		return nil
	}
	for _, w := range p.told.waiting {
		if w.n == n {
			u.events = append(u.events, p.event(w))
		}
	}
	u.taken = append(u.taken, n)
	if !p.onDisk.has(n) {
		if err := u.batch.Set(idKey(p.index, n), []byte(p.dir.ID(n)), nil); err != nil {
			return err
		}
	}
	if err := p.unforget(u.batch, n); err != nil {
		return err
	}
	// What waits ends with their coming: who had gone is back, and stays so if the
	// flush that would take the mark away is lost.
	if err := u.batch.Delete(goneKey(p.index, n), nil); err != nil {
		return err
	}
	last := p.presence.seen.Last(n)
	return u.batch.Set(heardKey(p.index, n), binary.BigEndian.AppendUint32(nil, last), nil)
}

// announcementsApplied is called when a unit has been applied: it notes what it told.
func (p *partition) announcementsApplied(u *tx) {
	t := &p.told
	for _, n := range u.taken {
		t.waiting = slices.DeleteFunc(t.waiting, func(w waitingEvent) bool { return w.n == n })
		t.has.remove(n)
		t.heard = append(t.heard, n)
		p.onDisk.add(n)
	}
	for _, c := range u.changes {
		t.leaving.remove(c.n)
		if c.offline {
			t.online.remove(c.n)
		} else {
			t.online.add(c.n)
		}
	}
	u.taken, u.changes = nil, nil
}

// removeOverdue removes the sessions that replayJournal found past their deadline.
func (p *partition) removeOverdue(u *tx) {
	if len(u.overdue) == 0 {
		return
	}
	s := &p.sessions
	s.dead = slices.DeleteFunc(s.dead, func(slot uint32) bool { return slices.Contains(u.overdue, slot) })
	for _, slot := range u.overdue {
		if at, cause := s.deadline(slot); cause == rollcall.CauseExpired {
			p.eng.outages.noteExpiry(at)
		}
		s.remove(slot)
	}
	u.overdue = nil
}

// goneUser is how a user who loses their last session goes offline.
type goneUser struct {
	n     uint32
	leave int64 // who logged out is announced offline then; 0 for at once, or not at all
}

// announceGone appends that a user who is gone goes offline, at once or, after a
// logout, later.
func (u *tx) announceGone(n uint32, now int64, logout bool) (goneUser, error) {
	d := goneUser{n: n}
	online, err := u.appendOverdue(n, now)
	if grace := ms(u.p.eng.settings.LeaveGrace); online && logout && grace > 0 {
		d.leave = min(now+grace, u.p.offlineAt(n, u.p.presence.seen.Last(n)))
	} else if online {
		u.presence(n, now, true)
	}
	return d, cmp.Or(err, u.batch.Set(goneKey(u.p.index, n), goneRecord(d.leave), nil))
}

// goneRecord is the record of a user who is gone: when that is to be announced,
// if it has not been.
func goneRecord(leave int64) []byte {
	if leave == 0 {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, uint64(leave))
}

// announceOffline tells, in a step, of users who went offline by an instant: who
// logged out, and whose window has passed. It reports whether there are more.
func (p *partition) announceOffline(u *tx, now, until int64) (more bool, err error) {
	t := &p.told
	if more, err = p.announceLogouts(u, until); more || err != nil {
		return more, err
	}
	line := onlineSince(p.eng.outages.effectiveNow(now), p.eng.announced)
	if until < now {
		line = min(line, onlineSince(until, p.eng.announced))
	}
	if line <= t.place.Sec {
		return false, nil
	}
	var quiet []uint32 // of the second the step ends in
	sec := uint32(0)
	place, more := p.presence.seen.Walk(t.place, line, silenceStep, func(at, n uint32) {
		if at != sec {
			sec, quiet = at, quiet[:0]
		}
		if t.online.has(n) {
			t.online.remove(n) // at once: the log may name them twice
			err = cmp.Or(err, u.takeWaiting(n))
			u.presence(n, p.offlineBefore(at), true)
			quiet = append(quiet, n)
		}
	})
	u.place = &place
	if len(u.changes) == 0 {
		return more, err
	}
	return more, cmp.Or(err, p.putPlace(u.batch, place, sec, quiet))
}

// putPlace stores how far silence has been told: all before a second, and of
// that second some numbers.
func (p *partition) putPlace(b *pebble.Batch, place recency.Place, sec uint32, quiet []uint32) error {
	err := b.Set(silentKey(p.index), binary.BigEndian.AppendUint32(nil, place.Sec), nil)
	if err == nil && p.told.parts > 0 {
		err = b.DeleteRange(quietKey(p.index, 0, 0), quietKey(p.index, place.Sec, 0), nil)
	}
	if err == nil && sec == place.Sec && len(quiet) > 0 {
		slices.Sort(quiet)
		p.told.parts++
		err = b.Set(quietKey(p.index, sec, p.told.parts), beatRecord(quiet), nil)
	}
	return err
}

// announceLogouts tells of users who logged out and were not heard since.
func (p *partition) announceLogouts(u *tx, until int64) (more bool, err error) {
	for range silenceStep {
		next, ok := p.told.leaving.first()
		if !ok || next.at > until {
			return false, err
		}
		// Taken out here, and put back if the unit is not applied.
		p.told.leaving.remove(next.of)
		u.left = append(u.left, next)
		err = cmp.Or(err, u.takeWaiting(next.of), u.batch.Set(goneKey(p.index, next.of), nil, nil))
		u.presence(next.of, next.at, true)
		p.mayRelease(next.of)
	}
	return true, err
}

// undoAnnouncements takes back what announceOffline did, when its unit cannot be applied.
func (p *partition) undoAnnouncements(u *tx) {
	for _, l := range u.left {
		p.told.leaving.set(l.of, l.at)
	}
	for _, c := range u.changes {
		p.told.online.add(c.n)
	}
}

// nextSilence returns when the next user may go offline; false for nobody.
func (p *partition) nextSilence() (int64, bool) {
	if !p.eng.settings.PresenceEvents {
		return 0, false
	}
	next, ok := p.told.leaving.first()
	at := next.at
	if sec, any := p.presence.seen.AtOrAfter(p.told.place.Sec); any {
		if silent := p.offlineBefore(sec); !ok || silent < at {
			at, ok = silent, true
		}
	}
	return at, ok
}

// flushAnnounced puts what waits, and how far silence has been told, into the
// batch of a flush.
func (p *partition) flushAnnounced(b *pebble.Batch) (first uint64, err error) {
	t := &p.told
	for _, n := range t.heard {
		if err := b.Delete(heardKey(p.index, n), nil); err != nil {
			return 0, err
		}
	}
	if t.place.Sec > p.told.stored {
		if err := b.Set(silentKey(p.index), binary.BigEndian.AppendUint32(nil, t.place.Sec), nil); err != nil {
			return 0, err
		}
	}
	events := make([]event, len(t.waiting))
	for i, w := range t.waiting {
		events[i] = p.event(w)
	}
	return p.eng.events.append(b, events)
}

// flushedAnnounced is called once that batch has been applied.
func (p *partition) flushedAnnounced() {
	t := &p.told
	for _, w := range t.waiting {
		t.has.remove(w.n)
	}
	t.waiting, t.heard = t.waiting[:0], t.heard[:0]
	p.told.stored = t.place.Sec
}

// holds reports whether something of a number is still to be told.
func (t *announcing) holds(n uint32) bool {
	_, leaving := t.leaving.of(n)
	return leaving || t.has.has(n)
}

// bytes is the memory held.
func (t *announcing) bytes() int {
	return 24*cap(t.waiting) + t.online.words.Bytes() + t.has.words.Bytes() + t.leaving.bytes()
}

// forgetTold makes a number that is about to be another's as new.
func (p *partition) forgetTold(n uint32) {
	t := &p.told
	t.online.remove(n)
	t.leaving.remove(n)
	if t.has.has(n) {
		t.waiting = slices.DeleteFunc(t.waiting, func(w waitingEvent) bool { return w.n == n })
		t.has.remove(n)
	}
}

// loadTold finds out who has been announced online; see announcing.
func (p *partition) loadTold() error {
	t := &p.told
	v, ok, err := p.eng.store.get(silentKey(p.index))
	if err != nil {
		return err
	}
	if ok && len(v) != 4 {
		return damaged("line of silence", silentKey(p.index), errDamaged)
	}
	if ok {
		t.place.Sec = binary.BigEndian.Uint32(v)
		p.told.stored = t.place.Sec
	}
	for n := range p.dir.Limit() {
		if last := p.presence.seen.Last(n); last != 0 && last >= t.place.Sec && !p.presence.seen.Hidden(n) {
			t.online.add(n)
		}
	}
	err = p.scan(tabQuiet, func(k, v []byte) error {
		if len(k) != 10 {
			return damaged("silent users", k, errDamaged)
		}
		t.parts = max(t.parts, binary.BigEndian.Uint32(k[6:]))
		n := uint32(0)
		for r := (reader{b: v}); len(r.b) > 0; {
			if n += uint32(r.uint()); r.err != nil {
				return damaged("silent users", k, r.err)
			}
			if p.presence.seen.Last(n) == binary.BigEndian.Uint32(k[2:]) {
				t.online.remove(n)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.scan(tabGone, func(k, v []byte) error {
		if n := number24(k); len(v) == 8 && p.dir.Has(n) && !p.loggedInSince(n) {
			t.online.add(n)
			t.leaving.set(n, int64(binary.BigEndian.Uint64(v)))
		}
		return nil
	})
}

package local

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/recency"
)

// Announcing who comes online and goes offline.
//
// Each change must be told exactly once, also across a crash, although beats are not
// written one by one and nobody acts when a user falls silent.
//
// A bit for each number says whether the user has been announced online. A user who
// is heard while the bit is not set comes online. A user whose bit is set goes offline
//   - when the window has passed since they were last heard (announceOffline),
//   - when they are kicked or banned,
//   - after a logout, when the leave grace is over (announceLogouts).
//
// Invariants:
//   - An event carries the instant of the change, whenever it is told.
//   - The events of a user are told in that order, those of the user's sessions among
//     them. So a command that appends an event about a user first appends what is overdue
//     of that user (appendOverdue).
//   - An event is in the same batch as what proves it: the command, the beats, or how
//     far silence has been announced.
//
// Where the events go:
//   - Those of a command go into its batch.
//   - Those of beats and touches wait in memory for the flush that stores the beats.
//   - A command about a user takes the user's waiting events along, with the latest
//     sign of life (tabHeard). The next flush stores that as a beat, and removes the
//     record.
//   - Those of silent users go into a batch of a sweep, with the second up to which all
//     have been announced (tabSilent), and who has been of that second (tabQuiet).
//
// | crash after | what opening finds |
// | --- | --- |
// | a beat | neither the beat nor its event |
// | a flush, or a command that took a waiting event along | both |
// | a step of silence | the rest of the silent users, who are announced then |
//
// Opening takes for online: users last seen since the second of tabSilent who are not
// gone and not in tabQuiet, and users whose leave grace is in tabGone.
type announcements struct {
	online       bitset        // announced online, and not offline since
	storedSec    uint32        // the second of place that the store has
	place        recency.Place // all users last seen before it have been announced offline
	quietRecords uint32        // records of tabQuiet so far
	logoutGraces deadlineHeap  // by number: when a logged out user is to be announced offline

	waiting      []waitingEvent // for the next flush
	waits        bitset         // numbers that have a waiting event
	heardRecords []uint32       // numbers with a record of tabHeard
}

// waitingEvent is a presence event that waits for the next flush.
type waitingEvent struct {
	at       int64
	n        uint32
	offline  bool
	audience enginekit.Audience
}

// maxWaiting bounds the events of a partition that wait. At that number the partition
// is flushed at once.
const maxWaiting = 4096

// announceOnline queues the events of a beat or touch by a user who may have been
// offline. prev is the second in which they were seen before, 0 for never.
func (p *partition) announceOnline(now int64, n, prev uint32) {
	t := &p.announcements
	if t.online.has(n) {
		at := p.offlineAt(n, prev)
		t.logoutGraces.remove(n)
		if at > now {
			return // they logged out, and are back within the grace
		}

		// They went offline before this beat, and no sweep has told it yet.
		p.queueEvent(waitingEvent{at: at, n: n, offline: true})
	}
	t.online.add(n)
	p.queueEvent(waitingEvent{at: now, n: n})
}

func (p *partition) queueEvent(e waitingEvent) {
	e.audience = p.audienceOf(e.n)
	p.announcements.waiting = append(p.announcements.waiting, e)
	p.announcements.waits.add(e.n)
}

// audienceOf says who is told that a user comes and goes.
func (p *partition) audienceOf(n uint32) enginekit.Audience {
	if p.users.invisible.Contains(n) {
		return enginekit.ForAdmin
	}
	return enginekit.ForAll
}

// eventOf makes an event for the log.
func (p *partition) eventOf(w waitingEvent) event {
	typ := rollcall.UserOnline
	if w.offline {
		typ = rollcall.UserOffline
	}
	return event{Event: rollcall.Event{Type: typ, At: enginekit.TimeOf(w.at), User: p.dir.ID(w.n)}, audience: w.audience}
}

// appendPresence appends that a user comes online or goes offline.
func (tx *tx) appendPresence(n uint32, at int64, offline bool) {
	if !tx.p.eng.settings.PresenceEvents {
		return
	}
	e := waitingEvent{at: at, n: n, offline: offline, audience: tx.p.audienceOf(n)}
	tx.events = append(tx.events, tx.p.eventOf(e))
	tx.presenceChanges = append(tx.presenceChanges, e)
}

// appendOverdue appends what has happened to a user and was not told yet: waiting
// events, ends of sessions past their deadline, silence. It returns whether the user
// is announced online after that. Once the transaction has been applied, the caller
// calls removeOverdue for the sessions.
func (tx *tx) appendOverdue(n uint32, now int64) (online bool, err error) {
	p, from := tx.p, len(tx.events)
	if err := tx.takeWaiting(n); err != nil {
		return false, err
	}

	// Sessions past their deadline, each once, even if the command asks again.
	s := &p.sessions
	s.eachOverdue(n, now, func(slot uint32) {
		if slices.Contains(tx.overdue, slot) {
			return
		}
		at, cause := s.deadline(slot)
		session := s.endedSession(slot, rollcall.End{At: enginekit.TimeOf(at), Cause: cause})
		err = cmp.Or(err, tx.appendEnd(&session, s.token.Get(slot)))
		tx.overdue = append(tx.overdue, slot)
	})

	// Silence, or the end of the grace after a logout. The record of the grace is
	// replaced, so that a crash does not tell it again.
	if online = p.announcements.online.has(n) && !tx.announces(n); online {
		if at := p.offlineAt(n, p.presence.seen.Last(n)); at <= now {
			tx.appendPresence(n, at, true)
			online = false
			if _, leaving := p.announcements.logoutGraces.of(n); leaving {
				err = cmp.Or(err, tx.batch.Set(goneKey(p.index, n), nil, nil))
			}
		}
	}

	// These were found by kind; readers get them in the order of time.
	slices.SortStableFunc(tx.events[from:], func(a, b event) int { return a.At.Compare(b.At) })
	return online, err
}

// announces reports whether the transaction tells of a user coming or going.
func (tx *tx) announces(n uint32) bool {
	return slices.ContainsFunc(tx.presenceChanges, func(c waitingEvent) bool { return c.n == n })
}

// takeWaiting takes a user's waiting events along, and stores what proves them: the
// user's id and latest sign of life.
func (tx *tx) takeWaiting(n uint32) error {
	p := tx.p
	if !p.announcements.waits.has(n) || slices.Contains(tx.takenUsers, n) {
		return nil
	}
	for _, w := range p.announcements.waiting {
		if w.n == n {
			tx.events = append(tx.events, p.eventOf(w))
		}
	}
	tx.takenUsers = append(tx.takenUsers, n)
	if !p.onDisk.has(n) {
		if err := tx.batch.Set(idKey(p.index, n), []byte(p.dir.ID(n)), nil); err != nil {
			return err
		}
	}
	if err := p.unforget(tx.batch, n); err != nil {
		return err
	}

	// The last waiting event is that the user came online. If they were gone, they are
	// back, even if a crash loses the flush that would say so.
	if err := tx.batch.Delete(goneKey(p.index, n), nil); err != nil {
		return err
	}
	last := p.presence.seen.Last(n)
	return tx.batch.Set(heardKey(p.index, n), binary.BigEndian.AppendUint32(nil, last), nil)
}

// announcementsApplied notes in memory what an applied transaction has announced.
func (p *partition) announcementsApplied(tx *tx) {
	t := &p.announcements
	for _, n := range tx.takenUsers {
		t.waiting = slices.DeleteFunc(t.waiting, func(w waitingEvent) bool { return w.n == n })
		t.waits.remove(n)
		t.heardRecords = append(t.heardRecords, n)
		p.onDisk.add(n)
	}
	for _, c := range tx.presenceChanges {
		t.logoutGraces.remove(c.n)
		if c.offline {
			t.online.remove(c.n)
		} else {
			t.online.add(c.n)
		}
	}
	tx.takenUsers, tx.presenceChanges = nil, tx.presenceChanges[:0]
}

// removeOverdue removes the sessions that appendOverdue found past their deadline. It
// is called once the transaction has been applied.
func (p *partition) removeOverdue(tx *tx) {
	if len(tx.overdue) == 0 {
		return
	}
	s := &p.sessions
	s.expired = slices.DeleteFunc(s.expired, func(slot uint32) bool { return slices.Contains(tx.overdue, slot) })
	for _, slot := range tx.overdue {
		if at, cause := s.deadline(slot); cause == rollcall.CauseExpired {
			p.eng.outages.noteExpiry(at)
		}
		s.remove(slot)
	}
	tx.overdue = nil
}

// flushAnnounced puts the waiting events, and how far silence has been announced, into
// the batch of a flush. It returns the number of the first event.
func (p *partition) flushAnnounced(b *pebble.Batch) (first uint64, err error) {
	t := &p.announcements
	for _, n := range t.heardRecords {
		if err := b.Delete(heardKey(p.index, n), nil); err != nil {
			return 0, err
		}
	}
	if t.place.Sec > p.announcements.storedSec {
		if err := b.Set(silentKey(p.index), binary.BigEndian.AppendUint32(nil, t.place.Sec), nil); err != nil {
			return 0, err
		}
	}
	events := make([]event, len(t.waiting))
	for i, w := range t.waiting {
		events[i] = p.eventOf(w)
	}
	return p.eng.events.putEvents(b, events)
}

// flushedAnnounced is called once the batch of flushAnnounced has been applied.
func (p *partition) flushedAnnounced() {
	t := &p.announcements
	for _, w := range t.waiting {
		t.waits.remove(w.n)
	}
	t.waiting, t.heardRecords = t.waiting[:0], t.heardRecords[:0]
	p.announcements.storedSec = t.place.Sec
}

// pending reports whether something about a number is still to be told.
func (t *announcements) pending(n uint32) bool {
	_, leaving := t.logoutGraces.of(n)
	return leaving || t.waits.has(n)
}

// bytes returns the memory held.
func (t *announcements) bytes() int {
	return 24*cap(t.waiting) + t.online.words.Bytes() + t.waits.words.Bytes() + t.logoutGraces.bytes()
}

// forgetAnnouncements forgets what was announced of a number that is freed.
func (p *partition) forgetAnnouncements(n uint32) {
	t := &p.announcements
	t.online.remove(n)
	t.logoutGraces.remove(n)
	if t.waits.has(n) {
		t.waiting = slices.DeleteFunc(t.waiting, func(w waitingEvent) bool { return w.n == n })
		t.waits.remove(n)
	}
}

// loadAnnouncements finds out on opening who has been announced online, as the head of
// this file says.
func (p *partition) loadAnnouncements() error {
	t := &p.announcements

	// Up to where silence was announced: who was seen since is online, unless gone.
	v, ok, err := p.eng.store.get(silentKey(p.index))
	if err != nil {
		return err
	}
	if ok && len(v) != 4 {
		return damaged("line of silence", silentKey(p.index), errDamaged)
	}
	if ok {
		t.place.Sec = binary.BigEndian.Uint32(v)
		p.announcements.storedSec = t.place.Sec
	}
	for n := range p.dir.Limit() {
		if last := p.presence.seen.Last(n); last != 0 && last >= t.place.Sec && !p.presence.seen.Hidden(n) {
			t.online.add(n)
		}
	}

	// Of the second in which the last step ended, some were announced offline.
	err = p.scan(tabQuiet, func(k, v []byte) error {
		if len(k) != 10 {
			return damaged("silent users", k, errDamaged)
		}
		t.quietRecords = max(t.quietRecords, binary.BigEndian.Uint32(k[6:]))
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

	// A logged out user whose grace is not over is still announced online.
	return p.scan(tabGone, func(k, v []byte) error {
		if n := number24(k); len(v) == 8 && p.dir.Has(n) {
			t.online.add(n)
			t.logoutGraces.set(n, int64(binary.BigEndian.Uint64(v)))
		}
		return nil
	})
}

package local

import (
	"cmp"
	"encoding/binary"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/recency"
)

// silenceStep bounds the entries of the log of seconds, and the logouts, that one step
// of announceOffline looks at.
const silenceStep = 256

// offlineBefore returns when a user last seen in a second goes offline by silence. A
// user last seen earlier has gone offline before that.
func (p *partition) offlineBefore(last uint32) int64 {
	return p.eng.outages.effectiveDeadline((int64(last) + int64(p.eng.offlineAfter/time.Second) + 1) * 1000)
}

// offlineAt returns when a user who was announced online, and last seen in a second,
// goes offline unless they are heard again.
func (p *partition) offlineAt(n, last uint32) int64 {
	if due, ok := p.announcements.logoutGraces.of(n); ok {
		return due
	}
	return p.offlineBefore(last)
}

// goneUser is how a user who loses their last session goes offline.
type goneUser struct {
	n     uint32
	leave int64 // after a logout: when they are announced offline; else 0
}

// announceGone appends that a user who loses the last session goes offline: at once,
// or after a logout when the grace is over. The record of the user says so too.
func (tx *tx) announceGone(n uint32, now int64, logout bool) (goneUser, error) {
	d := goneUser{n: n}
	online, err := tx.appendOverdue(n, now)
	if grace := ms(tx.p.eng.settings.LeaveGrace); online && logout && grace > 0 {
		d.leave = min(now+grace, tx.p.offlineAt(n, tx.p.presence.seen.Last(n)))
	} else if online {
		tx.appendPresence(n, now, true)
	}
	return d, cmp.Or(err, tx.batch.Set(goneKey(tx.p.index, n), goneRecord(d.leave), nil))
}

// goneRecord is the record of a user who is gone: when they are to be announced
// offline, empty if they have been.
func goneRecord(leave int64) []byte {
	if leave == 0 {
		return nil
	}
	return binary.BigEndian.AppendUint64(nil, uint64(leave))
}

// announceOffline is a step of telling which users went offline up to an instant: who
// logged out, and who fell silent. It reports whether there may be more.
func (p *partition) announceOffline(tx *tx, now, until int64) (more bool, err error) {
	t := &p.announcements
	if more, err = p.announceLogouts(tx, until); more || err != nil {
		return more, err
	}

	// During the grace after an outage, the window ends where the outage began.
	line := onlineSince(p.eng.outages.effectiveNow(now), p.eng.offlineAfter)
	if until < now {
		line = min(line, onlineSince(until, p.eng.offlineAfter))
	}
	if line <= t.place.Sec {
		return false, nil
	}

	// Walk the log of seconds on from where the last step stopped.
	var quiet []uint32 // announced offline, of the second the step ends in
	sec := uint32(0)
	place, more := p.presence.seen.Walk(t.place, line, silenceStep, func(at, n uint32) {
		if at != sec {
			sec, quiet = at, quiet[:0]
		}
		if t.online.has(n) {
			t.online.remove(n) // at once, as the log may name a user twice
			err = cmp.Or(err, tx.takeWaiting(n))
			tx.appendPresence(n, p.offlineBefore(at), true)
			quiet = append(quiet, n)
		}
	})
	tx.announcedTo = &place
	if len(tx.presenceChanges) == 0 {
		return more, err
	}
	return more, cmp.Or(err, p.putPlace(tx.batch, place, sec, quiet))
}

// putPlace stores how far silence has been announced: of all users last seen before a
// second, and of some last seen in it.
func (p *partition) putPlace(b *pebble.Batch, place recency.Place, sec uint32, quiet []uint32) error {
	err := b.Set(silentKey(p.index), binary.BigEndian.AppendUint32(nil, place.Sec), nil)
	if err == nil && p.announcements.quietRecords > 0 {
		err = b.DeleteRange(quietKey(p.index, 0, 0), quietKey(p.index, place.Sec, 0), nil)
	}
	if err == nil && sec == place.Sec && len(quiet) > 0 {
		slices.Sort(quiet)
		p.announcements.quietRecords++
		err = b.Set(quietKey(p.index, sec, p.announcements.quietRecords), beatRecord(quiet), nil)
	}
	return err
}

// announceLogouts appends that users go offline whose grace after a logout is over.
func (p *partition) announceLogouts(tx *tx, until int64) (more bool, err error) {
	for range silenceStep {
		next, ok := p.announcements.logoutGraces.first()
		if !ok || next.at > until {
			return false, err
		}
		// If the transaction is not applied, undoAnnouncements puts it back.
		p.announcements.logoutGraces.remove(next.of)
		tx.endedGraces = append(tx.endedGraces, next)
		err = cmp.Or(err, tx.takeWaiting(next.of), tx.batch.Set(goneKey(p.index, next.of), nil, nil))
		tx.appendPresence(next.of, next.at, true)
		p.mayRelease(next.of)
	}
	return true, err
}

// undoAnnouncements takes back in memory what announceOffline did, if the transaction
// could not be applied.
func (p *partition) undoAnnouncements(tx *tx) {
	for _, l := range tx.endedGraces {
		p.announcements.logoutGraces.set(l.of, l.at)
	}
	for _, c := range tx.presenceChanges {
		p.announcements.online.add(c.n)
	}
}

// nextSilence returns when the next user may go offline; false if none will.
func (p *partition) nextSilence() (int64, bool) {
	if !p.eng.settings.PresenceEvents {
		return 0, false
	}
	next, ok := p.announcements.logoutGraces.first()
	at := next.at
	if sec, any := p.presence.seen.AtOrAfter(p.announcements.place.Sec); any {
		if silent := p.offlineBefore(sec); !ok || silent < at {
			at, ok = silent, true
		}
	}
	return at, ok
}

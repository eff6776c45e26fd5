package local

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// setBack sets back what lies in the future, if the store has a time more than a day later than now. A
// wrong clock wrote it, and nobody can tell when it was. Instants become now. Days and hours in
// the future are removed. So are sessions that began in the future, as their ids hold the time
// and cannot be changed.
func (r *repair) setBack() error {
	if err := r.mend.flush(); err != nil {
		return err
	}
	c := newChecker(r.target, Report{})
	c.run()
	if rollcall.CheckAhead(time.UnixMilli(c.latest), r.ro.Now) == nil {
		return nil
	}
	b := &backSetter{r: r, m: r.mend, now: r.mend.now, counts: make(map[string]int)}
	b.sec = secOf(b.now)
	b.today = b.todayIs()
	for _, info := range tableInfos() {
		err := r.target.scan(r.ctx, newKey(info.table, 1), func(k, v []byte) error {
			if info.keyLen > 0 && len(k) != info.keyLen {
				return nil // the check that follows takes it out
			}
			b.record(slices.Clone(k), v)
			return r.mend.err
		})
		if err != nil {
			return err
		}
	}
	if err := b.beats(); err != nil {
		return err
	}
	r.reportAhead(b, enginekit.TimeOf(c.latest))
	return r.mend.flush()
}

// backSetter sets back record after record.
type backSetter struct {
	r      *repair
	m      *mender
	now    int64  // ms
	sec    uint32 // now in seconds
	today  int32
	moved  map[uint8]*roaring.Bitmap // numbers last seen in the future, by partition
	counts map[string]int            // removed records, by what they are
	set    int                       // records that were set back
}

// todayIs returns the day it is in the zone of the store.
func (b *backSetter) todayIs() int32 {
	zone := time.UTC
	if v, ok, err := b.r.target.get(metaKey(metaTimezone)); err == nil && ok {
		if loaded, err := time.LoadLocation(string(v)); err == nil {
			zone = loaded
		}
	}
	return int32(rollcall.DayOf(enginekit.TimeOf(b.now), zone))
}

func (b *backSetter) put(k key, v []byte) {
	b.set++
	b.m.do(setting(k, v))
}

// move puts a record under another key.
func (b *backSetter) move(from []byte, to key, v []byte) {
	b.set++
	b.m.do(func(w *pebble.Batch) error { return errors.Join(w.Delete(from, nil), w.Set(to, v, nil)) })
}

// dropRecord removes a record that cannot be set back.
func (b *backSetter) dropRecord(k []byte, what string, n int) {
	b.counts[what] += n
	b.m.do(removing(k))
}

// record sets back one record, if it has to be.
func (b *backSetter) record(k, v []byte) {
	switch k[0] {
	case tabMeta:
		b.meta(k, v)
	case tabSession, tabEnded:
		b.session(k, v)
	case tabTouch, tabTouched:
		b.touches(k, v)
	case tabEndedDue, tabRetryDue:
		if ms := int64(be64(k[1:])); ms > b.now && k[0] == tabRetryDue {
			b.move(k, retryDueKey(b.now, [32]byte(k[9:])), nil)
		} else if ms > b.now {
			b.m.do(removing(k)) // made anew from the ended session
		}
	case tabBeat, tabSeen, tabForgot, tabHeard, tabSilent, tabQuiet, tabGone, tabUser:
		b.presence(k, v)
	case tabBan, tabKey, tabRetry, tabErasure, tabFriend, tabEvent, tabPresEvent:
		b.instant(k, v)
	case tabSample:
		b.sample(k)
	case tabWebhook:
		b.webhook(k, v)
	case tabHookState:
		b.webhookState(k, v)
	case tabDay, tabFirst, tabDirty, tabOffloaded, tabFigures, tabLost, tabVisit:
		b.day(k, v)
	}
}

func (b *backSetter) meta(k, v []byte) {
	switch string(k[1:]) {
	case metaStamp:
		if len(v) == 8 && int64(be64(v)) > b.now {
			b.put(k, stampRecord(b.now))
		}
	case metaOutages:
		var o outages
		if o.decode(v) != nil {
			return
		}
		list := slices.DeleteFunc(slices.Clone(o.all()), func(x outage) bool { return x.from >= b.now })
		for i := range list {
			list[i].until = min(list[i].until, b.now)
		}
		o.list.Store(&list)
		b.put(k, o.encode())
	}
}

func (b *backSetter) session(k, v []byte) {
	id := rollcall.SessionID(k[2:])
	st, err := decodeSession(id, v)
	if err != nil {
		return
	}
	switch {
	case id.Time().UnixMilli() > b.now && k[0] == tabSession:
		b.dropRecord(k, "live sessions that began in the future", 1)
	case id.Time().UnixMilli() > b.now:
		b.dropRecord(k, "ended sessions that began in the future", 1)
	case st.SeenAt.UnixMilli() > b.now || st.importedDeadline > b.now+st.idle || st.End != nil && st.End.At.UnixMilli() > b.now:
		st.SeenAt = enginekit.TimeOf(min(st.SeenAt.UnixMilli(), b.now))
		st.importedDeadline = min(st.importedDeadline, b.now+st.idle)
		if st.End != nil {
			st.End.At = enginekit.TimeOf(min(st.End.At.UnixMilli(), b.now))
		}
		b.put(k, st.encode(nil))
	}
}

func (b *backSetter) touches(k, v []byte) {
	w, changed := writer{}, false
	for r := (reader{b: v}); len(r.b) > 0; {
		slot, at := r.uint(), r.int()
		if r.err != nil {
			return
		}
		changed = changed || at > b.now
		w.uint(slot)
		w.int(min(at, b.now))
	}
	if changed {
		b.put(k, w.b)
	}
}

// presence sets back seconds.
func (b *backSetter) presence(k, v []byte) {
	switch k[0] {
	case tabBeat:
		if be32(k[2:]) > b.sec {
			b.lateBeat(k, v)
		}
	case tabQuiet:
		if be32(k[2:]) > b.sec {
			b.m.do(removing(k))
		}
	case tabSeen:
		if len(v) != 4*seenLen {
			return
		}
		out, changed := slices.Clone(v), false
		for i := 0; i < len(out); i += 4 {
			if be32(out[i:]) > b.sec {
				binary.BigEndian.PutUint32(out[i:], b.sec)
				changed = true
			}
		}
		if changed {
			b.put(k, out)
		}
	case tabGone:
		if len(v) == 8 && int64(be64(v)) > b.now {
			b.put(k, stampRecord(b.now))
		}
	case tabUser:
		if u, err := decodeUser(v); err == nil && u.frozen > b.sec {
			u.frozen = b.sec
			b.put(k, u.encode())
		}
	default:
		if len(v) == 4 && be32(v) > b.sec {
			b.put(k, binary.BigEndian.AppendUint32(nil, b.sec))
		}
	}
}

// lateBeat notes who was last seen in the future.
func (b *backSetter) lateBeat(k, v []byte) {
	if b.moved == nil {
		b.moved = make(map[uint8]*roaring.Bitmap)
	}
	set := b.moved[k[1]]
	if set == nil {
		set = roaring.New()
		b.moved[k[1]] = set
	}
	n := uint32(0)
	for r := (reader{b: v}); len(r.b) > 0; {
		if n += uint32(r.uint()); r.err == nil {
			set.Add(n)
		}
	}
	b.set++
	b.m.do(removing(k))
}

// beats stores that who was last seen in the future was seen now.
func (b *backSetter) beats() error {
	for p, set := range b.moved {
		k := beatKey(p, b.sec)
		v, ok, err := b.r.target.get(k)
		if err != nil {
			return err
		}
		n := uint32(0)
		for r := (reader{b: v}); ok && len(r.b) > 0; {
			if n += uint32(r.uint()); r.err == nil {
				set.Add(n)
			}
		}
		if !set.IsEmpty() {
			b.m.do(setting(k, beatRecord(set.ToArray())))
		}
	}
	return b.m.err
}

// instant sets back a record with an instant. What lasts for some time from then lasts as long from now.
func (b *backSetter) instant(k, v []byte) {
	later := func(t time.Time) bool { return t.UnixMilli() > b.now }
	now := enginekit.TimeOf(b.now)
	switch k[0] {
	case tabBan:
		if ban, err := decodeBan(rollcall.BanKey(k[2:]), v); err == nil && later(ban.At) {
			ban.Until, ban.At = now.Add(ban.Until.Sub(ban.At)), now
			b.put(k, encodeBan(ban))
		}
	case tabKey:
		one, err := decodeAPIKey(string(k[1:]), v)
		if err != nil || !later(one.CreatedAt) && !later(one.RevokedAt) {
			return
		}
		if later(one.CreatedAt) {
			if !one.ExpiresAt.IsZero() {
				one.ExpiresAt = now.Add(one.ExpiresAt.Sub(one.CreatedAt))
			}
			one.CreatedAt = now
		}
		if later(one.RevokedAt) {
			one.RevokedAt = now
		}
		b.put(k, encodeAPIKey(one))
	case tabRetry:
		if at, err := decodeRetry(v); err == nil && at > b.now {
			r := reader{b: v}
			r.int()
			w := writer{}
			w.int(b.now)
			b.put(k, append(w.b, r.b...))
		}
	case tabErasure:
		if x, err := decodeErasure(k, v); err == nil && x.at > b.now {
			x.at = b.now
			b.put(k, x.encode())
		}
	case tabFriend:
		if len(v) == 8 && int64(be64(v)) > b.now {
			b.put(k, stampRecord(b.now))
		}
	default:
		b.events(k, v)
	}
}

func (b *backSetter) events(k, v []byte) {
	family := sessionFamily
	if k[0] == tabPresEvent {
		family = presenceFamily
	}
	events, err := decodeEvents(family, k, v)
	if err != nil || !slices.ContainsFunc(events, func(e event) bool { return e.At.UnixMilli() > b.now }) {
		return
	}
	w := writer{}
	for i := range events {
		e := &events[i]
		e.At = enginekit.TimeOf(min(e.At.UnixMilli(), b.now))
		if family == sessionFamily {
			w.b = encodeEvent(w.b, e)
		} else {
			w.bytes(encodeEvent(nil, e))
		}
	}
	b.put(k, w.b)
	b.m.do(func(w *pebble.Batch) error { return putLines(w, family, events[0].seq, events) })
}

// day removes days, months and hours that are not yet.
// sample removes the samples of the future: a minute has one sample.
func (b *backSetter) sample(k []byte) {
	if len(k) == 6 && binary.BigEndian.Uint32(k[2:]) > enginekit.MinuteOf(b.now) {
		b.dropRecord(k, "samples of minutes and hours in the future", 1)
	}
}

func (b *backSetter) day(k, v []byte) {
	switch k[0] {
	case tabDay:
		if id := dayOfKey(k); id.day > b.today {
			set := roaring.New()
			_ = dayset.Decode(v, uint32(k[7]), set) // what cannot be read goes too
			b.dropRecord(k, "marks of days in the future", int(set.GetCardinality()))
		}
	case tabFirst:
		if dayOfKey(k).day > b.today {
			b.m.do(removing(k))
		}
	case tabDirty:
		if rollcall.Month(dayOfKey(k).day) > rollcall.MonthOf(rollcall.Day(b.today)) {
			b.m.do(removing(k))
		}
	case tabOffloaded, tabFigures, tabLost:
		if offloadedOfKey(k).day >= b.today {
			b.m.do(removing(k))
		}
	case tabVisit:
		if name, hour, ok := visitOfKey(k); ok && hour > b.now/1000 {
			b.dropRecord(k, fmt.Sprintf("hours of visits in the future of %q", name), 1)
		}
	}
}

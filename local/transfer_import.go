package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/journal"
)

// importWeight bounds the records of one step of an import: it is one batch,
// made under the locks of all partitions it touches.
const importWeight = 1 << 15

// Import implements [rollcall.Transfer]. Dossiers go in steps, each of which is
// entered whole or not at all.
func (e *Engine) Import(ctx context.Context, at time.Time, dossiers []rollcall.UserSnapshot) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	for len(dossiers) > 0 {
		if err := ctx.Err(); err != nil {
			return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "cut short", Err: err}
		}
		n := stepOf(dossiers)
		if err := e.importStep(now, dossiers[:n]); err != nil {
			return err
		}
		dossiers = dossiers[n:]
	}
	return nil
}

// stepOf returns how many dossiers make a step.
func stepOf(dossiers []rollcall.UserSnapshot) int {
	weight := 0
	for i := range dossiers {
		d := &dossiers[i]
		weight += len(d.Friends) + len(d.Sessions) + len(d.Ended) + len(d.Bans)
		for _, days := range d.Days {
			weight += len(days)
		}
		if weight > importWeight {
			return max(1, i)
		}
	}
	return len(dossiers)
}

func (e *Engine) importStep(now int64, dossiers []rollcall.UserSnapshot) error {
	m := &importing{eng: e, now: now, dossiers: dossiers}
	for i := range dossiers {
		m.kinds = append(m.kinds, dossiers[i].Kinds()...)
	}
	leave, err := e.kinds.reserve(m.kinds...)
	if err != nil {
		return err
	}
	defer leave()
	if err := m.sort(); err != nil {
		return err
	}
	for _, w := range m.locked {
		w.p.mu.Lock()
	}
	err = m.run()
	for _, w := range m.locked {
		if err != nil && w.flushed != nil {
			w.p.presence.seenLog = *w.flushed
		}
		w.p.mu.Unlock()
	}
	if err != nil {
		return err
	}
	return e.store.wait(m.ticket)
}

// importing is a step of an import.
type importing struct {
	eng      *Engine
	now      int64
	dossiers []rollcall.UserSnapshot
	kinds    []string // that the dossiers name
	b        *pebble.Batch
	ticket   journal.Ticket
	of       []*incoming // by partition; nil if it has no part in the step
	locked   []*incoming
	links    []link
}

// link is a list of friends on its way in.
type link struct {
	user  ref
	edges []edge
}

// noNumber marks a dossier whose user needs no number.
const noNumber = ref(1<<32 - 1)

// incoming is what a step enters in one partition.
type incoming struct {
	p       *partition
	share   markBatch // users who need a number: those of the dossiers, and friends
	numbers []uint32
	fresh   []uint32
	flushed *seenLog // as it was before the step, once it has changed
	records []incomingRecord
	seen    []incomingSeen
	unseen  []uint32 // users with sessions and without a last-seen time
	checked []*rollcall.SessionSnapshot
	live    []*newcomer
	steps   []packedMark
	bans    []rollcall.Ban
	ended   []rollcall.SessionID
	latest  int64 // of all times, ms
}

type incomingRecord struct {
	n   uint32
	rec userRecord
}

func (m *importing) in(p *partition) *incoming {
	if m.of[p.index] == nil {
		m.of[p.index] = &incoming{p: p}
	}
	return m.of[p.index]
}

// sort finds out which partitions have a part in the step, and who needs a
// number there.
func (m *importing) sort() error {
	m.of = make([]*incoming, len(m.eng.parts))
	want := func(user string) {
		hash := rollcall.HashUser(user)
		w := m.in(m.eng.parts[hash&uint64(len(m.eng.parts)-1)])
		w.share.users, w.share.hashes = append(w.share.users, user), append(w.share.hashes, hash)
	}
	for i := range m.dossiers {
		d := &m.dossiers[i]
		if needsNumber(d) {
			want(d.User)
		}
		for _, f := range d.Friends {
			want(f.User)
		}
		for j := range d.Ended {
			m.in(m.eng.home(rollcall.Ref{ID: d.Ended[j].ID}))
		}
		for j := range d.Bans {
			for _, p := range m.eng.homes(&d.Bans[j]) {
				m.in(p)
			}
		}
	}
	for _, w := range m.of {
		if w != nil {
			m.locked = append(m.locked, w)
		}
	}
	return nil
}

// needsNumber reports whether anything is known of the user for which a number
// is needed: all but what was left behind.
func needsNumber(d *rollcall.UserSnapshot) bool {
	return d.HasRecord() || !d.LastSeen.IsZero() || len(d.Friends)+len(d.Days)+len(d.Sessions) > 0
}

// homes returns the partitions in which the user of a ban may be.
func (e *Engine) homes(b *rollcall.BanSnapshot) []*partition {
	mask := uint16(1)<<b.Bits - 1 // all ones from 16 bits on
	var out []*partition
	for i, p := range e.parts {
		if (uint16(i)^b.Home)&mask&uint16(len(e.parts)-1) == 0 {
			out = append(out, p)
		}
	}
	return out
}

// run makes the step, with all its partitions locked.
func (m *importing) run() error {
	if err := m.refuse(); err != nil {
		return err
	}
	for _, w := range m.locked {
		w.p.advance(m.now)
	}
	m.b = m.eng.store.newBatch()
	if err := m.putWaiting(); err != nil {
		return err
	}
	if err := m.giveNumbers(); err != nil {
		return err
	}
	if err := m.gather(); err != nil {
		return err
	}
	for _, w := range m.locked {
		if err := w.put(m.b); err != nil {
			return err
		}
	}
	var err error
	if m.ticket, err = m.eng.store.apply(m.b); err != nil {
		return err
	}
	for _, w := range m.locked {
		w.p.newest.Store(m.ticket.Number)
		w.p.flushedIDs()
		w.p.presence.flushedSeen()
		w.commit()
	}
	for _, l := range m.links {
		m.eng.parts[l.user.part()].friends.set(l.user.number(), l.edges)
		for _, x := range l.edges {
			m.eng.named(x.friend, 1)
		}
	}
	return nil
}

// putWaiting puts the ids and beats into the batch that wait for the next flush.
// The import writes records of whole seconds, of all who were last seen in them:
// they must not name a number whose id a crash would lose, nor leave out one
// whose later beat it would lose.
func (m *importing) putWaiting() error {
	for _, w := range m.locked {
		before := w.p.presence.seenLog
		w.flushed = &before
		if err := w.p.flushIDs(m.b); err != nil {
			return err
		}
		if _, err := w.p.flushBeats(m.b); err != nil {
			return err
		}
	}
	return nil
}

// giveNumbers gives all users a number who need one, and all kinds.
func (m *importing) giveNumbers() (err error) {
	for _, w := range m.locked {
		var made []ref
		if w.numbers, w.fresh, err = w.p.numbers(m.b, w.share, true, &made); err != nil {
			return err
		}
	}
	for _, kind := range m.kinds {
		if _, err := m.eng.kinds.index(kind); err != nil {
			return err
		}
	}
	return nil
}

// gather sorts what the dossiers say by partition, in the order in which sort
// went through them.
func (m *importing) gather() error {
	given := func(user string) ref {
		w := m.of[m.eng.partitionOf(user).index]
		n := w.numbers[0]
		w.numbers = w.numbers[1:]
		return w.p.ref(n)
	}
	for i := range m.dossiers {
		d := &m.dossiers[i]
		user := noNumber
		if needsNumber(d) {
			user = given(d.User)
			if err := m.gatherUser(d, user); err != nil {
				return err
			}
		}
		if len(d.Friends) > 0 {
			l := link{user, make([]edge, len(d.Friends))}
			for j, f := range d.Friends {
				l.edges[j] = edge{given(f.User), f.Since.UnixMilli()}
			}
			if _, _, err := diffEdges(m.b, user, nil, l.edges); err != nil {
				return err
			}
			m.links = append(m.links, l)
		}
		if err := m.gatherTraces(d); err != nil {
			return err
		}
	}
	return nil
}

func (m *importing) gatherUser(d *rollcall.UserSnapshot, user ref) error {
	w, n := m.of[user.part()], user.number()
	if d.HasRecord() {
		rec := userRecord{kind: d.Kind, name: d.Name, invisible: d.Invisible, frozen: secOf(enginekit.Milliseconds(d.Frozen))}
		w.records = append(w.records, incomingRecord{n, rec})
	}
	if !d.LastSeen.IsZero() {
		w.seen = append(w.seen, incomingSeen{N: n, Sec: uint32(d.LastSeen.Unix()), Hidden: d.Gone})
		w.latest = max(w.latest, d.LastSeen.UnixMilli())
	} else if len(d.Sessions) > 0 {
		w.unseen = append(w.unseen, n)
	}
	for kind, days := range d.Days {
		index, err := m.eng.kinds.index(kind)
		if err != nil {
			return err
		}
		for _, day := range days {
			w.steps = append(w.steps, newPackedMark(index, day, n))
		}
	}
	for i := range d.Sessions {
		s := &d.Sessions[i]
		st := stored{Session: s.Session, token: tokenKey(s.Token), idle: ms(s.Idle), lifetime: ms(s.Lifetime)}
		// What put the deadline off is an outage of another engine: it holds for
		// this session alone, and for no longer than an outage here would.
		latest := m.now + m.eng.outages.grace
		if due := s.SeenAt.UnixMilli() + st.idle; due < s.ExpiresAt.UnixMilli() && due < latest {
			st.putOff = min(s.ExpiresAt.UnixMilli(), latest)
		}
		w.live = append(w.live, &newcomer{st, n})
		w.latest = max(w.latest, s.SeenAt.UnixMilli())
	}
	return nil
}

// gatherTraces takes bans and ended sessions.
func (m *importing) gatherTraces(d *rollcall.UserSnapshot) error {
	keep := ms(m.eng.settings.EndedKeep)
	for i := range d.Ended {
		s := &d.Ended[i]
		w := m.of[m.eng.home(rollcall.Ref{ID: s.ID}).index]
		if s.End.At.UnixMilli()+keep <= m.now {
			continue
		}
		if err := putEnded(m.b, w.p.index, &s.Session, tokenKey(s.Token)); err != nil {
			return err
		}
		w.ended = append(w.ended, s.ID)
		w.latest = max(w.latest, s.SeenAt.UnixMilli())
	}
	for i := range d.Bans {
		b := &d.Bans[i]
		for _, p := range m.eng.homes(b) {
			if err := m.b.Set(banKey(p.index, b.Key), encodeBan(b.Ban), nil); err != nil {
				return err
			}
			m.of[p.index].bans = append(m.of[p.index].bans, b.Ban)
		}
	}
	return nil
}

// put puts what a partition takes in into the batch.
func (w *incoming) put(b *pebble.Batch) error {
	p := w.p
	for i := range w.records {
		if err := b.Set(userKey(p.index, w.records[i].n), w.records[i].rec.encode(), nil); err != nil {
			return err
		}
	}
	if err := errors.Join(p.putSeen(b, w.seen), p.putUnseen(b, w.unseen)); err != nil {
		return err
	}
	slots := p.sessions.slots(len(w.live))
	for i := range w.live {
		st := &w.live[i].stored
		st.slot = slots[i]
		if err := b.Set(sessionKey(p.index, st.ID), st.encode(nil), nil); err != nil {
			return err
		}
	}
	slices.Sort(w.steps)
	steps, err := p.days.putAll(b, slices.Compact(w.steps), marking)
	w.steps = steps
	return err
}

// commit makes the change of memory.
func (w *incoming) commit() {
	p := w.p
	p.advance(w.latest)
	for _, n := range w.fresh {
		p.stored(n)
	}
	for _, r := range w.records {
		p.users.set(r.n, r.rec)
	}
	p.enterSeen(w.seen)
	for _, n := range w.unseen {
		p.presence.forgotten(n)
	}
	p.sessions.insertBulk(w.live)
	p.sessions.haveEnded(w.ended...)
	for _, ban := range w.bans {
		p.users.setBan(ban)
	}
	p.days.change(w.steps, marking)
}

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

// How users come from another engine.
//
// An import brings users with all that is known of them, into an engine in use. A step of it is
// entered whole or not at all. Its users, friends and bans are of many partitions, so all of
// these are locked at once; what a step holds is bounded, and so is the time.
//
// Its times are older than those here. Login order, deadline queues and the log of seconds are
// in the order of time, so a step is merged with them (insertBulk, recency.Enter).
//
// The steps:
//
//  1. Sort out which partitions have a part, and who needs a number there. Lock them, in
//     order.
//  2. Refuse the step if anything of it is known here (refuse).
//  3. Put the waiting ids and beats into the batch, as a flush does: the import writes
//     records of whole seconds, which hold them too.
//  4. Give numbers to users and kinds. Collect what the snapshots say, by partition.
//  5. Put the records into the batch, apply it, and follow in memory. Unlock and wait.
//
// | crash after | what opening finds |
// | --- | --- |
// | step 4 | nothing of the step |
// | step 5, before it is durable | nothing of it, or all; nobody was told |
// | step 5 | all of it |

// importWeight bounds the records of one step of an import.
const importWeight = 1 << 15

// Import implements [rollcall.Transfer].
func (e *Engine) Import(ctx context.Context, at time.Time, snapshots []rollcall.UserSnapshot) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	for len(snapshots) > 0 {
		if err := ctx.Err(); err != nil {
			return enginekit.CutShort(err)
		}
		n := stepOf(snapshots)
		if err := e.importStep(now, snapshots[:n]); err != nil {
			return err
		}
		snapshots = snapshots[n:]
	}
	return nil
}

// stepOf returns how many snapshots make a step.
func stepOf(snapshots []rollcall.UserSnapshot) int {
	weight := 0
	for i := range snapshots {
		d := &snapshots[i]
		weight += len(d.Friends) + len(d.Sessions) + len(d.Ended) + len(d.Bans)
		for _, days := range d.Days {
			weight += len(days)
		}
		if weight > importWeight {
			return max(1, i)
		}
	}
	return len(snapshots)
}

// importStep enters one step.
func (e *Engine) importStep(now int64, snapshots []rollcall.UserSnapshot) error {
	m := &importRun{eng: e, now: now, snapshots: snapshots}
	for i := range snapshots {
		m.kinds = append(m.kinds, snapshots[i].Kinds()...)
	}
	release, err := e.kinds.reserve(m.kinds...)
	if err != nil {
		return err
	}
	defer release()
	m.splitByPartition()
	for _, w := range m.locked {
		w.p.mu.Lock()
	}
	err = m.run()
	// If it failed, its users have no numbers any more, and the beats that it would have
	// flushed wait for the next flush.
	if err != nil {
		e.freeNewNumbers(m.newNumbers)
	}
	for _, w := range m.locked {
		if err != nil && w.flushed != nil {
			w.p.presence.seenFlush = *w.flushed
		}
		w.p.mu.Unlock()
	}
	if err != nil {
		return err
	}
	return e.store.wait(m.ticket)
}

// importRun is a step of an import.
type importRun struct {
	eng       *Engine
	now       int64
	snapshots []rollcall.UserSnapshot
	kinds     []string // the kinds that they name
	b         *pebble.Batch
	ticket    journal.Ticket
	shares    []*importShare // by partition; nil if it has no part in the step
	locked    []*importShare // those that have, in order
	// newNumbers are users who got a number, in the order in which they got it.
	newNumbers []ref
	lists      []incomingList
}

// incomingList is the friend list of a user of the step.
type incomingList struct {
	user  ref
	edges []edge
}

// noRef stands for a user who needs no number.
const noRef = ref(1<<32 - 1)

// importShare is the part of a step that is of one partition.
type importShare struct {
	p       *partition
	share   markBatch  // who needs a number here: users of the step, and their friends
	numbers []uint32   // their numbers, in the same order
	newIDs  []uint32   // those whose id goes into the batch
	flushed *seenFlush // as it was before the step, once it has changed
	records []importedUser
	seen    []importedSeen
	unseen  []uint32 // users with sessions and without a last-seen time
	checked []*rollcall.SessionSnapshot
	live    []*importedSession
	marks   []packedMark
	bans    []rollcall.Ban
	ended   []rollcall.SessionID
	latest  int64 // the latest of all times, ms
}

// importedUser is the settings of a user of the step.
type importedUser struct {
	n   uint32
	rec userRecord
}

// shareOf returns a partition's part of the step, made if need be.
func (m *importRun) shareOf(p *partition) *importShare {
	if m.shares[p.index] == nil {
		m.shares[p.index] = &importShare{p: p}
	}
	return m.shares[p.index]
}

// splitByPartition finds out which partitions have a part in the step, and who needs a number there.
// collect goes through the snapshots in the same order.
func (m *importRun) splitByPartition() {
	m.shares = make([]*importShare, len(m.eng.parts))
	want := func(user string) {
		hash := rollcall.HashUser(user)
		w := m.shareOf(m.eng.parts[hash&uint64(len(m.eng.parts)-1)])
		w.share.users, w.share.hashes = append(w.share.users, user), append(w.share.hashes, hash)
	}
	for i := range m.snapshots {
		d := &m.snapshots[i]
		if needsNumber(d) {
			want(d.User)
		}
		for _, f := range d.Friends {
			want(f.User)
		}
		for j := range d.Ended {
			m.shareOf(m.eng.home(rollcall.Ref{ID: d.Ended[j].ID}))
		}
		for j := range d.Bans {
			for _, p := range m.eng.homes(&d.Bans[j]) {
				m.shareOf(p)
			}
		}
	}
	for _, w := range m.shares {
		if w != nil {
			m.locked = append(m.locked, w)
		}
	}
}

// needsNumber reports whether anything is known of the user besides bans and ended sessions,
// which need no number.
func needsNumber(d *rollcall.UserSnapshot) bool {
	return d.HasRecord() || !d.LastSeen.IsZero() || len(d.Friends)+len(d.Days)+len(d.Sessions) > 0
}

// homes returns the partitions in which the user of a ban may be: one, unless the user was
// erased.
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
func (m *importRun) run() error {
	if err := m.refuse(); err != nil {
		return err
	}

	// Everything goes into one batch.
	for _, w := range m.locked {
		w.p.advance(m.now)
	}
	m.b = m.eng.store.newBatch()
	if err := m.putWaiting(); err != nil {
		return err
	}
	if err := m.assignNumbers(); err != nil {
		return err
	}
	if err := m.collect(); err != nil {
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

	// From here on nothing can fail: follow in memory.
	for _, w := range m.locked {
		w.p.newestRecord.Store(m.ticket.Number)
		w.p.flushedIDs()
		w.p.presence.flushedSeen()
		w.commit()
	}
	for _, l := range m.lists {
		m.eng.parts[l.user.part()].friends.set(l.user.number(), l.edges)
		for _, x := range l.edges {
			m.eng.countFriendRef(x.friend, 1)
		}
	}
	return nil
}

// putWaiting puts into the batch the ids and beats that wait for the next flush. The import
// writes records of whole seconds, of all who were last seen in them. Such a record must not
// name a number whose id a crash would lose. Nor may it leave out a user because of a later
// beat that a crash would lose.
func (m *importRun) putWaiting() error {
	for _, w := range m.locked {
		before := w.p.presence.seenFlush
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

// assignNumbers gives numbers to all users who need one, and to all kinds.
func (m *importRun) assignNumbers() (err error) {
	for _, w := range m.locked {
		if w.numbers, w.newIDs, err = w.p.numbers(m.b, w.share, true, &m.newNumbers); err != nil {
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

// put puts a partition's part into the batch.
func (w *importShare) put(b *pebble.Batch) error {
	p := w.p
	for i := range w.records {
		if err := b.Set(userKey(p.index, w.records[i].n), w.records[i].rec.encode(), nil); err != nil {
			return err
		}
	}
	if err := errors.Join(p.putSeen(b, w.seen), p.putUnseen(b, w.unseen)); err != nil {
		return err
	}
	slots := p.sessions.slotsForImport(len(w.live))
	for i := range w.live {
		st := &w.live[i].sessionRecord
		st.slot = slots[i]
		if err := b.Set(sessionKey(p.index, st.ID), st.encode(nil), nil); err != nil {
			return err
		}
	}
	slices.Sort(w.marks)
	steps, err := p.days.putMarks(b, slices.Compact(w.marks), opMark)
	w.marks = steps
	return err
}

// commit makes the change of memory in a partition.
func (w *importShare) commit() {
	p := w.p
	p.advance(w.latest)
	for _, n := range w.newIDs {
		p.idStored(n)
	}
	for _, r := range w.records {
		p.users.set(r.n, r.rec)
	}
	p.enterSeen(w.seen)
	for _, n := range w.unseen {
		p.presence.noteForgotten(n)
	}
	p.sessions.insertBulk(w.live)
	p.sessions.noteEnded(w.ended...)
	for _, ban := range w.bans {
		p.users.setBan(ban)
	}
	p.days.applyMarks(w.marks, opMark)
}

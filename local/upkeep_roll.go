package local

import (
	"encoding/binary"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
)

// Rolling snapshots.
//
// A flush stores what has changed since the last one in delta records: who was last seen
// in which second (tabBeat), which slots were touched when (tabTouch). Most entries are
// stale after a while, and opening would have to read ever more of them. A snapshot of
// all users at once would hold the lock for long.
//
// So a snapshot rolls. Once the delta records hold more entries than there are users (or
// sessions), a roll begins. It writes the last-seen times (or touches) of all in blocks
// by number (or slot), a few blocks a flush.
//
// Invariant: at any time the later of a number's block and its delta entries is the
// number's last-seen time, as of the last flush, unless a note says that this time was
// forgotten.
//
// The steps:
//
//  1. A flush begins the roll. It will replace the delta records in the store up to then.
//  2. Each flush writes the next blocks, as they are then. A block of nobody is deleted.
//  3. The batch with the last block deletes the delta records to be replaced. Each of
//     their entries is in a block that was written later, or has become void.
//  4. A roll of last-seen times then goes through the notes of who was forgotten
//     (tabForgot), a fixed number a flush. A note is removed if nothing older in the
//     store speaks of the user. Two kinds stay: users forgotten since the roll began,
//     of whom a block may speak, and users with sessions.
//
// A roll keeps up with what comes: a flush writes blocks for rollPace times as many
// numbers as it wrote delta entries. So the delta records hold at most 1.5 times as many
// entries as there are users, unless more come each second than seenRollMost allows.
//
// | crash after | what opening finds |
// | --- | --- |
// | step 1 or 2 | all delta records, and some blocks that say nothing else than they do; the next roll begins anew |
// | step 3 | the blocks, and the delta records since the roll began |
// | step 4 | the same; no record in the store speaks of the users whose notes are gone |
const (
	rollPace      = 2
	seenRollMost  = 16   // blocks of last-seen times that one flush writes at most
	touchRollMost = 8    // blocks of touches that one flush writes at most
	noteStep      = 4096 // notes that one flush looks at
)

// roll is a rolling snapshot under way. The zero roll is none.
type roll struct {
	stage rollStage
	next  uint32 // the next block to write; in rollNotes the next number to look at
	until uint64 // the delta records before this second, or sequence, are replaced
	old   int    // entries in those
}

type rollStage uint8

const (
	rollNone rollStage = iota
	rollBlocks
	rollNotes
)

// share returns the blocks that one flush writes, for the entries that it has put into
// delta records: those of [from, to).
func (r *roll) share(came, blockLen, most int, blocks uint32) (from, to uint32) {
	n := min(most, 1+rollPace*came/blockLen)
	return r.next, min(blocks, r.next+uint32(n))
}

// Last-seen times are stored in blocks of 4,096 numbers, touches in blocks of
// 1,024 slots.
const (
	seenShift  = 12
	seenLen    = 1 << seenShift
	touchShift = 10
	touchLen   = 1 << touchShift
)

// rollSeen takes the next step of the roll of last-seen times, or begins one. came is the
// number of entries that this flush has put into delta records.
func (p *partition) rollSeen(b *pebble.Batch, came int) error {
	pr := &p.presence
	switch pr.roll.stage {
	case rollBlocks:
		return p.rollSeenBlocks(b, came)
	case rollNotes:
		return p.rollForgot(b)
	default:
		if pr.deltaEntries > max(p.eng.opts.minDelta, pr.seen.CountKnown()) {
			return p.beginSeenRoll(b, came)
		}
		return nil
	}
}

// beginSeenRoll begins a roll that replaces the records of all seconds but the newest,
// which may still grow.
func (p *partition) beginSeenRoll(b *pebble.Batch, came int) error {
	pr := &p.presence
	pr.roll = roll{stage: rollBlocks, until: uint64(pr.flushedTo), old: pr.deltaEntries}
	pr.forgottenInRoll = roaring.New()

	// The records that stay must not name a user who was forgotten, as the note may be
	// removed. The record of the newest second has just been written anew, unless nobody
	// is left in it. Records of later seconds came by imports, of users who have been
	// forgotten since: remove them.
	stale := pr.flushedTo
	if came > 0 {
		stale++
	}
	return b.DeleteRange(beatKey(p.index, stale), newKey(tabBeat, 2).u8(p.index).after(), nil)
}

// rollSeenBlocks writes the next blocks. With the last one it deletes the delta records
// that the roll replaces.
func (p *partition) rollSeenBlocks(b *pebble.Batch, came int) error {
	pr := &p.presence
	blocks := (p.dir.Limit() + seenLen - 1) >> seenShift
	from, to := pr.roll.share(came, seenLen, seenRollMost, blocks)
	for block := from; block < to; block++ {
		if err := p.putSeenBlock(b, block, nil); err != nil {
			return err
		}
	}
	if pr.roll.next = to; to < blocks {
		return nil
	}
	pr.deltaEntries -= pr.roll.old
	err := errors.Join(
		b.DeleteRange(seenKey(p.index, to), newKey(tabSeen, 2).u8(p.index).after(), nil),
		b.DeleteRange(beatKey(p.index, 0), beatKey(p.index, uint32(pr.roll.until)), nil))
	pr.roll = roll{stage: rollNotes}
	return err
}

// putSeenBlock puts the last-seen times of a block of numbers into a batch. The given
// entries take the place of what memory has.
func (p *partition) putSeenBlock(b *pebble.Batch, block uint32, some []importedSeen) error {
	v := make([]byte, 4*seenLen)
	used := uint32(0)
	for i := range uint32(seenLen) {
		last := p.presence.seen.Last(block<<seenShift | i)
		used |= last
		binary.BigEndian.PutUint32(v[4*i:], last)
	}
	for _, x := range some {
		used |= x.Sec
		binary.BigEndian.PutUint32(v[4*(x.N&(seenLen-1)):], x.Sec)
	}
	if used == 0 {
		return b.Delete(seenKey(p.index, block), nil)
	}
	return b.Set(seenKey(p.index, block), v, nil)
}

// rollForgot looks at some of the notes of who was forgotten, and removes those that
// nothing in the store needs any more.
func (p *partition) rollForgot(b *pebble.Batch) error {
	pr := &p.presence
	it := pr.forgotNotes.Iterator()
	it.AdvanceIfNeeded(pr.roll.next)
	for range noteStep {
		if !it.HasNext() {
			pr.roll, pr.forgottenInRoll = roll{}, nil
			return nil
		}
		n := it.Next()
		pr.roll.next = n + 1
		if pr.forgottenInRoll.Contains(n) || pr.seen.Last(n) != 0 || p.sessions.ofUser.has(n) {
			continue
		}
		if err := b.Delete(forgetKey(p.index, n), nil); err != nil {
			return err
		}
		pr.removedNotes = append(pr.removedNotes, n)
	}
	return nil
}

// rollTouches takes the next step of the roll of touches, or begins one.
func (p *partition) rollTouches(b *pebble.Batch, came int) error {
	s := &p.sessions
	if s.roll.stage == rollNone {
		if s.deltaEntries > max(p.eng.opts.minDelta, s.order.Live()) {
			s.roll = roll{stage: rollBlocks, until: s.newestDelta + 1, old: s.deltaEntries}
		}
		return nil
	}
	blocks := (s.limit + touchLen - 1) >> touchShift
	from, to := s.roll.share(came, touchLen, touchRollMost, blocks)
	for block := from; block < to; block++ {
		if err := p.putTouchBlock(b, block); err != nil {
			return err
		}
	}
	if s.roll.next = to; to < blocks {
		return nil
	}
	s.deltaEntries -= s.roll.old
	err := errors.Join(
		b.DeleteRange(touchedKey(p.index, to), newKey(tabTouched, 2).u8(p.index).after(), nil),
		b.DeleteRange(touchKey(p.index, 0), touchKey(p.index, s.roll.until), nil))
	s.roll = roll{}
	return err
}

// putTouchBlock puts into a batch when the sessions of a block of slots were last touched.
// Expired sessions that have not been reaped are among them: their end depends on it.
func (p *partition) putTouchBlock(b *pebble.Batch, block uint32) error {
	s := &p.sessions
	w := writer{}
	for slot := block << touchShift; slot < min(s.limit, (block+1)<<touchShift); slot++ {
		if s.user.Get(slot) == noUser {
			continue
		}
		if at := s.seen.Get(slot); at != s.loginAt(slot) {
			w.uint(uint64(slot))
			w.int(at)
		}
	}
	if len(w.b) == 0 {
		return b.Delete(touchedKey(p.index, block), nil)
	}
	return b.Set(touchedKey(p.index, block), w.b, nil)
}

package local

import (
	"encoding/binary"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
)

// Rolling snapshots.
//
// A flush stores what has changed since the last one: who was last seen in which
// second (tabBeat), which slots were touched when (tabTouch). Most of these delta
// records are stale after a while, and opening would have to read ever more of
// them. So once they hold more entries than there are users (or sessions), a roll
// begins: the last-seen times (or touches) of all are written in blocks by number
// (or slot), a few blocks a flush. No flush writes more than a fixed number of
// them, however many there are.
//
//   - A roll begins in a flush: all delta records in the store up to then are to be
//     replaced. Those that come later are not touched by it.
//   - Each flush writes the next blocks, as they are then. A block of nobody is
//     deleted.
//   - The batch with the last block deletes the delta records to be replaced.
//     Every entry of them is in a block that was written later, or has become void.
//   - A roll of last-seen times then goes through the notes of who was forgotten
//     (tabForgot), a fixed number a flush. A note stays as long as something older
//     in the store speaks of the user: of one who was forgotten since the roll
//     began, a block may; of one who has sessions, these do. All other notes go.
//
// A roll keeps up with what comes: a flush writes blocks for rollPace times as many
// numbers as it wrote entries of deltas. So the delta records hold at most 1.5 times
// as many entries as there are users, until more come each second than blocks can.
//
// | crash after | what opening finds |
// | --- | --- |
// | a flush that began a roll, or wrote blocks | all delta records, and blocks that say no other than they do: of each number the later of both counts. The next roll begins anew |
// | the flush with the last block | blocks, and the delta records since the roll began |
// | a flush that took notes away | the same; of those users no record in the store speaks any more |
const (
	rollPace      = 2
	seenRollMost  = 16   // blocks of last-seen times that one flush writes at most
	touchRollMost = 8    // blocks of touches
	noteStep      = 4096 // notes that one flush looks at
)

// roll is a rolling snapshot that is under way. The zero roll is none.
type roll struct {
	stage rollStage
	next  uint32 // block to be written next; then the note to be looked at next
	until uint64 // the delta records before this second, or sequence, are replaced
	old   int    // entries in them
}

type rollStage uint8

const (
	rollNone rollStage = iota
	rollBlocks
	rollNotes
)

// share returns the blocks that one flush writes: from the next on, up to one.
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

// rollSeen takes the next step of a roll of last-seen times, or begins one. came is
// how many entries this flush has put into delta records.
func (p *partition) rollSeen(b *pebble.Batch, came int) error {
	pr := &p.presence
	switch pr.roll.stage {
	case rollBlocks:
		return p.rollSeenBlocks(b, came)
	case rollNotes:
		return p.rollForgot(b)
	default:
		if pr.written > max(p.eng.opts.minDelta, pr.seen.CountKnown()) {
			return p.beginSeenRoll(b, came)
		}
		return nil
	}
}

// beginSeenRoll begins a roll that replaces the records of all seconds but the
// newest one, which may still grow.
func (p *partition) beginSeenRoll(b *pebble.Batch, came int) error {
	pr := &p.presence
	pr.roll = roll{stage: rollBlocks, until: uint64(pr.flushed), old: pr.written}
	pr.young = roaring.New()
	// What stays must name nobody who was forgotten: their notes may go. The record
	// of the newest second has just been written anew, unless nobody is left in it.
	// Later ones came by imports of users who have been forgotten since.
	stale := pr.flushed
	if came > 0 {
		stale++
	}
	return b.DeleteRange(beatKey(p.index, stale), newKey(tabBeat, 2).u8(p.index).after(), nil)
}

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
	pr.written -= pr.roll.old
	err := errors.Join(
		b.DeleteRange(seenKey(p.index, to), newKey(tabSeen, 2).u8(p.index).after(), nil),
		b.DeleteRange(beatKey(p.index, 0), beatKey(p.index, uint32(pr.roll.until)), nil))
	pr.roll = roll{stage: rollNotes}
	return err
}

// putSeenBlock writes the last-seen times of a block of numbers, with some of them
// set to others than they are.
func (p *partition) putSeenBlock(b *pebble.Batch, block uint32, some []incomingSeen) error {
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

// rollForgot looks at some of the notes of who was forgotten, and takes those away
// that nothing in the store needs any more.
func (p *partition) rollForgot(b *pebble.Batch) error {
	pr := &p.presence
	it := pr.forgot.Iterator()
	it.AdvanceIfNeeded(pr.roll.next)
	for range noteStep {
		if !it.HasNext() {
			pr.roll, pr.young = roll{}, nil
			return nil
		}
		n := it.Next()
		pr.roll.next = n + 1
		if pr.young.Contains(n) || pr.seen.Last(n) != 0 || p.sessions.ofUser.head.Get(n) != 0 {
			continue
		}
		if err := b.Delete(forgetKey(p.index, n), nil); err != nil {
			return err
		}
		pr.dropped = append(pr.dropped, n)
	}
	return nil
}

// rollTouches takes the next step of a roll of touches, or begins one.
func (p *partition) rollTouches(b *pebble.Batch, came int) error {
	s := &p.sessions
	if s.roll.stage == rollNone {
		if s.written > max(p.eng.opts.minDelta, s.order.Live()) {
			s.roll = roll{stage: rollBlocks, until: s.touches + 1, old: s.written}
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
	s.written -= s.roll.old
	err := errors.Join(
		b.DeleteRange(touchedKey(p.index, to), newKey(tabTouched, 2).u8(p.index).after(), nil),
		b.DeleteRange(touchKey(p.index, 0), touchKey(p.index, s.roll.until), nil))
	s.roll = roll{}
	return err
}

// putTouchBlock writes when the sessions of a block of slots were touched last,
// those among them that still have to be reaped: their end depends on it.
func (p *partition) putTouchBlock(b *pebble.Batch, block uint32) error {
	s := &p.sessions
	w := writer{}
	for slot := block << touchShift; slot < min(s.limit, (block+1)<<touchShift); slot++ {
		if s.user.Get(slot) == noUser {
			continue
		}
		if at := s.seen.Get(slot); at != s.login(slot) {
			w.uint(uint64(slot))
			w.int(at)
		}
	}
	if len(w.b) == 0 {
		return b.Delete(touchedKey(p.index, block), nil)
	}
	return b.Set(touchedKey(p.index, block), w.b, nil)
}

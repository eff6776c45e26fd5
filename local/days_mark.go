package local

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/directory"
)

// Mark implements [rollcall.Attendance].
func (e *Engine) Mark(_ context.Context, at time.Time, marks []rollcall.Mark) (marked, already int, err error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return 0, len(marks), err
	}
	leave, err := e.kinds.reserve(kindsOf(marks)...)
	if err != nil {
		return 0, len(marks), err
	}
	defer leave()
	var units []*tx
	for i, some := range e.markBatches(marks) {
		if len(some.marks) == 0 {
			continue
		}
		var u *tx
		var n int
		if u, n, err = e.parts[i].mark(now, some, marking); err != nil {
			break
		}
		marked += n
		units = append(units, u)
	}
	err = waitAll(units, err)
	return marked, len(marks) - marked, err
}

// packedMark is a mark with its kind and user resolved, packed so that steps sort
// by kind, day and number: those of one set stand together, in ascending order.
type packedMark uint64

func newPackedMark(kind uint8, day rollcall.Day, n uint32) packedMark {
	return packedMark(kind)<<56 | packedMark(uint32(day))<<24 | packedMark(n)
}

func (s packedMark) set() dayID   { return dayID{uint8(s >> 56), int32(s >> 24)} }
func (s packedMark) user() uint32 { return uint32(s) & (1<<24 - 1) }

// bySet yields the steps of each set together. They must be sorted.
func bySet(steps []packedMark) iter.Seq2[dayID, []packedMark] {
	return func(yield func(dayID, []packedMark) bool) {
		for len(steps) > 0 {
			n := 1
			for n < len(steps) && steps[n]>>24 == steps[0]>>24 {
				n++
			}
			if !yield(steps[0].set(), steps[:n]) {
				return
			}
			steps = steps[n:]
		}
	}
}

// markBatch is the part of a command's marks that falls to one partition.
type markBatch struct {
	marks  []*rollcall.Mark
	users  []string
	hashes []uint64
}

// markBatches sorts marks by partition.
func (e *Engine) markBatches(marks []rollcall.Mark) []markBatch {
	mask := uint64(len(e.parts) - 1)
	hashes := make([]uint64, len(marks))
	ends := make([]int, len(e.parts)+1)
	for i := range marks {
		hashes[i] = rollcall.HashUser(marks[i].User)
		ends[hashes[i]&mask+1]++
	}
	for p := range e.parts {
		ends[p+1] += ends[p]
	}
	all := markBatch{make([]*rollcall.Mark, len(marks)), make([]string, len(marks)), make([]uint64, len(marks))}
	for i, hash := range hashes {
		at := &ends[hash&mask]
		all.marks[*at], all.users[*at], all.hashes[*at] = &marks[i], marks[i].User, hash
		*at++
	}
	out := make([]markBatch, len(e.parts))
	from := 0
	for p := range out { // ends[p] has moved from the start to the end of p's share
		to := ends[p]
		out[p] = markBatch{all.marks[from:to], all.users[from:to], all.hashes[from:to]}
		from = to
	}
	return out
}

// kindsOf returns the kinds that marks name.
func kindsOf(marks []rollcall.Mark) []string {
	var out []string
	for i := range marks {
		if i == 0 || marks[i].Kind != marks[i-1].Kind {
			out = append(out, marks[i].Kind)
		}
	}
	return out
}

// mark adds marks, or readmits them.
func (p *partition) mark(now int64, s markBatch, how marksChange) (*tx, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	u := p.newTx()
	numbers, fresh, err := p.numbers(u.batch, s, true, &u.made)
	var steps []packedMark
	if err == nil {
		steps, err = p.markSteps(s, numbers, func(kind string) (uint8, bool, error) {
			i, err := p.eng.kinds.index(kind)
			return i, true, err
		}, nil)
	}
	if err == nil {
		steps, err = p.days.putAll(u.batch, steps, how)
	}
	if err != nil {
		u.freeNewNumbers()
		return nil, 0, u.drop(err)
	}
	if err := u.apply(); err != nil {
		u.freeNewNumbers()
		return nil, 0, err
	}
	for _, n := range fresh {
		p.stored(n)
	}
	p.days.change(steps, how)
	return u, len(steps), nil
}

// numbers returns the numbers of the users of a share. With add, users get one
// if need be, which made is told, and the ids that the store does not have are put into the batch:
// fresh are theirs, ascending. Else whoever has none has directory.None.
func (p *partition) numbers(b *pebble.Batch, s markBatch, add bool, made *[]ref) (numbers, fresh []uint32, err error) {
	numbers = make([]uint32, len(s.users))
	if !add {
		p.dir.FindAll(s.hashes, s.users, numbers)
		return numbers, nil, nil
	}
	err = p.dir.InsertAll(s.hashes, s.users, numbers, func(_ int, n uint32) {
		p.fresh = append(p.fresh, n)
		*made = append(*made, p.ref(n))
	})
	if err != nil {
		return nil, nil, errFull(err)
	}
	for _, n := range numbers {
		if !p.onDisk.has(n) {
			fresh = append(fresh, n)
		}
	}
	slices.Sort(fresh)
	fresh = slices.Compact(fresh)
	return numbers, fresh, p.putIDs(b, fresh)
}

// worthBlock is how many new ids of a block pay for writing all of it.
const worthBlock = blockLen / 8

// putIDs puts the ids of numbers, ascending, into the batch.
func (p *partition) putIDs(b *pebble.Batch, numbers []uint32) error {
	var id [rollcall.MaxUserLen]byte
	for len(numbers) > 0 {
		n := 1
		for n < len(numbers) && numbers[n]>>blockShift == numbers[0]>>blockShift {
			n++
		}
		if n >= worthBlock {
			if err := p.writeBlock(b, numbers[0]>>blockShift); err != nil {
				return err
			}
		} else {
			for _, one := range numbers[:n] {
				if err := b.Set(idKey(p.index, one), p.dir.AppendID(id[:0], one), nil); err != nil {
					return err
				}
			}
		}
		numbers = numbers[n:]
	}
	return nil
}

// markSteps resolves the kinds of the marks, tells note of each unless that is nil,
// and sorts them, each once.
func (p *partition) markSteps(s markBatch, numbers []uint32, indexOf func(kind string) (i uint8, known bool, err error), note func(i int, step packedMark)) ([]packedMark, error) {
	steps := make([]packedMark, 0, len(numbers))
	var last string // the kind resolved last, and its index
	var index uint8
	known := false
	for i, n := range numbers {
		if n == directory.None {
			continue
		}
		kind := s.marks[i].Kind
		if kind == "" {
			kind = cmp.Or(p.users.get(n).kind, rollcall.DefaultKind)
		}
		if kind != last {
			var err error
			if index, known, err = indexOf(kind); err != nil {
				return nil, err
			}
			last = kind
		}
		if !known {
			continue // nobody is marked with it
		}
		step := newPackedMark(index, s.marks[i].Day, n)
		steps = append(steps, step)
		if note != nil {
			note(i, step)
		}
	}
	slices.Sort(steps)
	return slices.Compact(steps), nil
}

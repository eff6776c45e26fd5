package local

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/directory"
)

// Mark implements [rollcall.Attendance].
func (e *Engine) Mark(_ context.Context, at time.Time, marks []rollcall.Mark) (marked, already int, err error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return 0, len(marks), err
	}
	release, err := e.kinds.reserve(kindsOf(marks)...)
	if err != nil {
		return 0, len(marks), err
	}
	defer release()

	// The partitions are changed one after the other and waited for together.
	var txs []*tx
	for i, some := range e.markBatches(marks) {
		if len(some.marks) == 0 {
			continue
		}
		var tx *tx
		var n int
		if tx, n, err = e.parts[i].mark(now, some, opMark); err != nil {
			break
		}
		marked += n
		txs = append(txs, tx)
	}
	err = waitAll(txs, err)
	return marked, len(marks) - marked, err
}

// packedMark is a mark with kind and user as numbers. Packed marks sort by kind, day and number,
// so those of one set stand together.
type packedMark uint64

func newPackedMark(kind uint8, day rollcall.Day, n uint32) packedMark {
	return packedMark(kind)<<56 | packedMark(uint32(day))<<24 | packedMark(n)
}

func (s packedMark) set() dayID   { return dayID{uint8(s >> 56), int32(s >> 24)} }
func (s packedMark) user() uint32 { return uint32(s) & (1<<24 - 1) }

// bySet yields the marks of each set together. They must be sorted.
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

// markBatch is the part of a command's marks that is of one partition.
type markBatch struct {
	marks  []*rollcall.Mark
	users  []string
	hashes []uint64
}

// markBatches sorts marks by partition, by counting.
func (e *Engine) markBatches(marks []rollcall.Mark) []markBatch {
	mask := uint64(len(e.parts) - 1)

	// Count the marks of each partition, and sum up: where each partition's share begins.
	hashes := make([]uint64, len(marks))
	ends := make([]int, len(e.parts)+1)
	for i := range marks {
		hashes[i] = rollcall.HashUser(marks[i].User)
		ends[hashes[i]&mask+1]++
	}
	for p := range e.parts {
		ends[p+1] += ends[p]
	}

	// Put each mark into its place.
	all := markBatch{make([]*rollcall.Mark, len(marks)), make([]string, len(marks)), make([]uint64, len(marks))}
	for i, hash := range hashes {
		at := &ends[hash&mask]
		all.marks[*at], all.users[*at], all.hashes[*at] = &marks[i], marks[i].User, hash
		*at++
	}
	out := make([]markBatch, len(e.parts))
	from := 0
	for p := range out { // by now ends[p] is the end of p's share
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

// mark adds the marks of one partition, or restores them from the archive.
func (p *partition) mark(now int64, s markBatch, how markOperation) (*tx, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)

	// Numbers for the users, the marks as numbers, and of those the ones that change something.
	tx := p.newTx()
	numbers, fresh, err := p.numbers(tx.batch, s, true, &tx.newNumbers)
	var steps []packedMark
	if err == nil {
		steps, err = p.packMarks(s, numbers, func(kind string) (uint8, bool, error) {
			i, err := p.eng.kinds.index(kind)
			return i, true, err
		}, nil)
	}
	if err == nil {
		steps, err = p.days.putMarks(tx.batch, steps, how)
	}
	if err != nil {
		tx.freeNewNumbers()
		return nil, 0, tx.abort(err)
	}
	if err := tx.apply(); err != nil {
		tx.freeNewNumbers()
		return nil, 0, err
	}

	// Follow in memory.
	for _, n := range fresh {
		p.idStored(n)
	}
	p.days.applyMarks(steps, how)
	return tx, len(steps), nil
}

// packMarks packs marks, sorts them, and leaves out doubles. A mark without a kind is of the
// user's own. Marks of unknown users and kinds are left out. note, if not nil, is called for
// each mark.
func (p *partition) packMarks(s markBatch, numbers []uint32, indexOf func(kind string) (i uint8, known bool, err error), note func(i int, step packedMark)) ([]packedMark, error) {
	steps := make([]packedMark, 0, len(numbers))
	var last string // the kind resolved last, and its index
	var index uint8
	known := false
	for i, n := range numbers {
		if n == directory.None {
			continue
		}

		// Neighbours mostly have the same kind, which is then not resolved again.
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
			continue
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

package local

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/dayset"
)

// noting puts into a batch what goes with marks that change: whose map of the
// month has changed, who was there for the first time, and that figures of closed
// days are others now. Sets come by kind and day, so that what the batch says
// already is known by a set of numbers for the month and one for the kind.
type noting struct {
	t       *dayTable
	b       *pebble.Batch
	how     marksChange
	month   monthID
	flagged *roaring.Bitmap // in this month, by this batch
	kind    uint8
	met     *roaring.Bitmap // numbers of this kind whose first day moves
	moves   []firstMove
	numbers []uint32
}

// note is told of the numbers, ascending, whose marks of a day change.
func (w *noting) note(id dayID, numbers []uint32) error {
	if w.how != readmitting {
		if err := w.flag(id.month(), numbers); err != nil {
			return err
		}
	}
	if w.how != readmitting || !w.t.p.eng.departed.has(id) { // else they counted in the figures
		if err := w.t.p.eng.kept.reopen(w.b, id); err != nil {
			return err
		}
	}
	if w.how != unmarking {
		w.first(id, numbers)
	}
	return nil
}

func (w *noting) flag(m monthID, numbers []uint32) error {
	if w.flagged == nil || m != w.month {
		w.month, w.flagged = m, roaring.New()
	}
	have := w.t.changed[m]
	w.numbers = w.numbers[:0]
	for _, n := range numbers {
		if (have == nil || !have.Contains(n)) && w.flagged.CheckedAdd(n) {
			w.numbers = append(w.numbers, n)
		}
	}
	return mergeNumbers(w.b, dayset.AppendAdd, w.numbers, func(c uint8) key { return changedKey(w.t.p.index, m, c) })
}

func (w *noting) first(id dayID, numbers []uint32) {
	if w.met == nil || id.kind != w.kind {
		w.kind, w.met = id.kind, roaring.New()
	}
	for _, n := range numbers {
		first, ok := w.t.firstOf(id.kind, n)
		if (!ok || id.day < first) && w.met.CheckedAdd(n) {
			w.moves = append(w.moves, firstMove{kind: id.kind, n: n, from: first, to: id.day, had: ok, has: true})
		}
	}
}

// end puts the first days that move.
func (w *noting) end() error { return w.t.putFirsts(w.b, w.moves) }

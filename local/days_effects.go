package local

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/dayset"
)

// markEffects puts into a batch what goes with marks that change: whose map of the
// month has changed, who was there for the first time, and that figures of closed
// days are others now. Sets come by kind and day, so that what the batch says
// already is known by a set of numbers for the month and one for the kind.
type markEffects struct {
	t         *dayTable
	b         *pebble.Batch
	operation marksChange
	month     monthID
	dirtied   *roaring.Bitmap // in this month, by this batch
	kind      uint8
	met       *roaring.Bitmap // numbers of this kind whose first day moves
	moves     []firstMove
	numbers   []uint32
}

// add is told of the numbers, ascending, whose marks of a day change.
func (w *markEffects) add(id dayID, numbers []uint32) error {
	if w.operation != readmitting {
		if err := w.dirty(id.month(), numbers); err != nil {
			return err
		}
	}
	if w.operation != readmitting || !w.t.p.eng.offloaded.has(id) { // else they counted in the figures
		if err := w.t.p.eng.figureCache.invalidate(w.b, id); err != nil {
			return err
		}
	}
	if w.operation != unmarking {
		w.first(id, numbers)
	}
	return nil
}

func (w *markEffects) dirty(m monthID, numbers []uint32) error {
	if w.dirtied == nil || m != w.month {
		w.month, w.dirtied = m, roaring.New()
	}
	have := w.t.dirty[m]
	w.numbers = w.numbers[:0]
	for _, n := range numbers {
		if (have == nil || !have.Contains(n)) && w.dirtied.CheckedAdd(n) {
			w.numbers = append(w.numbers, n)
		}
	}
	return mergeNumbers(w.b, dayset.AppendAdd, w.numbers, func(c uint8) key { return dirtyKey(w.t.p.index, m, c) })
}

func (w *markEffects) first(id dayID, numbers []uint32) {
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
func (w *markEffects) end() error { return w.t.putFirsts(w.b, w.moves) }

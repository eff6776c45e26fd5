package local

import (
	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
)

// markEffects puts into a batch what follows from changed marks: maps become dirty, first days
// move, and cached figures become stale. Marks come by kind and day. So a set of numbers
// for the month and one for the kind are enough to know what the batch says already.
type markEffects struct {
	t          *dayTable
	b          *pebble.Batch
	operation  markOperation
	single     bool // there is one mark in all, so nothing is said twice
	month      monthID
	madeDirty  *roaring.Bitmap // numbers whose map of this month the batch has made dirty
	kind       uint8
	firstMoved *roaring.Bitmap // numbers whose first day of this kind moves
	moves      []firstDayMove
	numbers    []uint32 // working memory of dirty
}

// add takes in the numbers, ascending, whose marks of a day change.
func (w *markEffects) add(id dayID, numbers []uint32) error {
	if w.operation != opRestore {
		if err := w.dirty(id.month(), numbers); err != nil {
			return err
		}
	}

	// Figures count offloaded days too, so marks that come back change none.
	if w.operation != opRestore || !w.t.p.eng.offloaded.has(id) {
		if err := w.t.p.eng.figureCache.invalidate(w.b, id); err != nil {
			return err
		}
	}
	if w.operation != opUnmark {
		w.first(id, numbers)
	}
	return nil
}

// dirty makes the maps of a month dirty that are not so yet.
func (w *markEffects) dirty(m monthID, numbers []uint32) error {
	if !w.single && (w.madeDirty == nil || m != w.month) {
		w.month, w.madeDirty = m, roaring.New()
	}
	have := w.t.dirty[m]
	w.numbers = w.numbers[:0]
	for _, n := range numbers {
		if (have == nil || !have.Contains(n)) && (w.single || w.madeDirty.CheckedAdd(n)) {
			w.numbers = append(w.numbers, n)
		}
	}
	return mergeNumbers(w.b, addMarks, w.numbers, dirtyKey(w.t.p.index, m, 0))
}

// first notes whose first day moves to an earlier day.
func (w *markEffects) first(id dayID, numbers []uint32) {
	if !w.single && (w.firstMoved == nil || id.kind != w.kind) {
		w.kind, w.firstMoved = id.kind, roaring.New()
	}
	for _, n := range numbers {
		first, ok := w.t.firstOf(id.kind, n)
		if (!ok || id.day < first) && (w.single || w.firstMoved.CheckedAdd(n)) {
			w.moves = append(w.moves, firstDayMove{kind: id.kind, n: n, from: first, to: id.day, had: ok, has: true})
		}
	}
}

// end puts the first days that move into the batch.
func (w *markEffects) end() error {
	w.t.room.dirty, w.t.room.moves = reusable(w.numbers), reusable(w.moves)
	return w.t.putFirsts(w.b, w.moves)
}

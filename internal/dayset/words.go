package dayset

import (
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// words is a set with a bit for each number, from 0 on.
//
// What is counted of many pairs of sets is counted in words where the numbers are few
// enough. Compressed sets of up to 4,096 numbers among 65,536 are lists, and two lists
// are compared number by number: of 8,000 numbers of whom 2,300 came on a day that
// takes some 10 µs, and 125 words take 0.1 µs.
type words []uint64

const (
	// maxWords is how long a set in words may be: of 262,144 numbers, 32 KiB.
	// Larger sets are not lists any more, unless they are so sparse that words
	// would be slower.
	maxWords = 1 << 12
	// maxAllWords bounds the sets in words that are held at once: 32 MiB.
	maxAllWords = 1 << 22
)

// wordsOf writes a set in words; false if they would be too many.
func wordsOf(set *roaring.Bitmap) (words, bool) {
	if set == nil || set.IsEmpty() {
		return nil, true
	}
	if set.Maximum()/64 >= maxWords {
		return nil, false
	}
	w := make(words, set.DenseSize())
	set.WriteDenseTo(w)
	return w, true
}

// allWords writes sets in words; false if they would be too many, or one too long.
func allWords(sets []*roaring.Bitmap) ([]words, bool) {
	all, total := make([]words, len(sets)), 0
	for i, set := range sets {
		w, ok := wordsOf(set)
		if total += len(w); !ok || total > maxAllWords {
			return nil, false
		}
		all[i] = w
	}
	return all, true
}

func (w words) count() (n int64) {
	for _, x := range w {
		n += int64(bits.OnesCount64(x))
	}
	return n
}

// both counts the numbers that two sets share.
func (w words) both(other words) (n int64) {
	other = other[:min(len(w), len(other))]
	for i, x := range other {
		n += int64(bits.OnesCount64(x & w[i]))
	}
	return n
}

// either counts the numbers of two sets together.
func (w words) either(other words) (n int64) {
	if len(w) < len(other) {
		w, other = other, w
	}
	for i, x := range other {
		n += int64(bits.OnesCount64(x | w[i]))
	}
	return n + w[len(other):].count()
}

// with adds a set, in place unless it is longer.
func (w words) with(other words) words {
	w = grown(w, len(other))
	for i, x := range other {
		w[i] |= x
	}
	return w
}

// wordWindow is a [window] of sets in words.
type wordWindow struct {
	width int
	older []words // oldest last, united with all that are above
	newer []words // as pushed
	union words   // of newer
}

// push takes in the set of the next day and drops the one that falls out. The set
// must stay as it is.
func (w *wordWindow) push(set words) {
	if len(w.older)+len(w.newer) == w.width {
		w.drop()
	}
	w.newer = append(w.newer, set)
	w.union = w.union.with(set)
}

func (w *wordWindow) drop() {
	if len(w.older) == 0 {
		var union words
		for i := len(w.newer) - 1; i >= 0; i-- {
			union = append(words(nil), union...).with(w.newer[i])
			w.older = append(w.older, union)
		}
		w.newer, w.union = w.newer[:0], nil
	}
	w.older = w.older[:len(w.older)-1]
}

func (w *wordWindow) count() int64 {
	if len(w.older) == 0 {
		return w.union.count()
	}
	return w.union.either(w.older[len(w.older)-1])
}

package dayset

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// chunkSize is how many numbers share a chunk of a table, the same as share a
// container of a set, so that a day's numbers fill one chunk after another.
const chunkSize = 1 << 16

// maxSpan is the most days a table counts, as its counters are 16 bits.
const maxSpan = 1<<16 - 1

// table is an array over numbers, without the chunks in which no number was
// ever visited.
type table[T any] struct {
	chunks []*[chunkSize]T
	batch  [4096]uint32
}

// visit calls do for every number of the set, ascending.
func (t *table[T]) visit(set *roaring.Bitmap, do func(*T)) {
	if set == nil {
		return
	}
	numbers := set.ManyIterator()
	for n := numbers.NextMany(t.batch[:]); n > 0; n = numbers.NextMany(t.batch[:]) {
		for run := t.batch[:n]; len(run) > 0; {
			index := run[0] / chunkSize
			end := len(run)
			if run[end-1]/chunkSize != index {
				end, _ = slices.BinarySearch(run, (index+1)*chunkSize)
			}
			chunk := t.chunk(index)
			for _, number := range run[:end] {
				do(&chunk[number%chunkSize])
			}
			run = run[end:]
		}
	}
}

func (t *table[T]) chunk(index uint32) *[chunkSize]T {
	t.chunks = grown(t.chunks, int(index)+1)
	if t.chunks[index] == nil {
		t.chunks[index] = new([chunkSize]T)
	}
	return t.chunks[index]
}

// all calls do for every number of every chunk there is, ascending, whether it
// was visited or not.
func (t *table[T]) all(do func(number uint32, value *T)) {
	for index, chunk := range t.chunks {
		if chunk == nil {
			continue
		}
		for low := range chunk {
			do(uint32(index)*chunkSize+uint32(low), &chunk[low])
		}
	}
}

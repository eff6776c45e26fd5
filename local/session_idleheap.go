package local

import (
	"cmp"
	"iter"

	"github.com/rollcall/rollcall/internal/column"
)

// idleHeap is a binary heap of sessions, the one idle for longest first, ties by id. The
// index of each session in the heap is in a column, as 1 + index, or 0 for none. Heaps
// without a common session share the column.
type idleHeap struct{ heap []uint32 }

func (s *sessions) compareIdle(x, y uint32) int {
	return cmp.Or(cmp.Compare(s.seen.Get(x), s.seen.Get(y)), s.compareIDs(x, y))
}

// set enters a session, or moves it after a touch.
func (h *idleHeap) set(s *sessions, places *column.Column[uint32], slot uint32) {
	i := int(places.Get(slot)) - 1
	if i < 0 {
		i = len(h.heap)
		h.heap = append(h.heap, slot)
		places.Set(slot, uint32(i+1))
	}
	h.settle(s, places, i)
}

// remove takes a session out.
func (h *idleHeap) remove(s *sessions, places *column.Column[uint32], slot uint32) {
	i := int(places.Get(slot)) - 1
	if i < 0 {
		return
	}
	places.Set(slot, 0)
	last := len(h.heap) - 1
	moved := h.heap[last]
	h.heap = h.heap[:last]
	if i < last {
		h.put(places, i, moved)
		h.settle(s, places, i)
	}
}

func (h *idleHeap) put(places *column.Column[uint32], i int, slot uint32) {
	h.heap[i] = slot
	places.Set(slot, uint32(i+1))
}

// settle moves the session at an index up or down to where it belongs.
func (h *idleHeap) settle(s *sessions, places *column.Column[uint32], i int) {
	slot := h.heap[i]
	for i > 0 && s.compareIdle(slot, h.heap[(i-1)/2]) < 0 {
		h.put(places, i, h.heap[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(h.heap) && s.compareIdle(h.heap[child+1], h.heap[child]) < 0 {
			child++
		}
		if child >= len(h.heap) || s.compareIdle(slot, h.heap[child]) <= 0 {
			break
		}
		h.put(places, i, h.heap[child])
		i = child
	}
	h.put(places, i, slot)
}

// ascending yields the sessions in order, without changing the heap. The next session is
// always a child of one that has come, so a second heap holds those children.
func (h *idleHeap) ascending(s *sessions) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var next []int // places, a heap by what stands there
		less := func(x, y int) bool { return s.compareIdle(h.heap[next[x]], h.heap[next[y]]) < 0 }
		push := func(place int) {
			if place >= len(h.heap) {
				return
			}
			next = append(next, place)
			for i := len(next) - 1; i > 0 && less(i, (i-1)/2); i = (i - 1) / 2 {
				next[i], next[(i-1)/2] = next[(i-1)/2], next[i]
			}
		}
		for push(0); len(next) > 0; {
			place := next[0]
			if !yield(h.heap[place]) {
				return
			}
			last := len(next) - 1
			next[0], next = next[last], next[:last]
			for i := 0; ; {
				child := 2*i + 1
				if child+1 < last && less(child+1, child) {
					child++
				}
				if child >= last || !less(child, i) {
					break
				}
				next[i], next[child] = next[child], next[i]
				i = child
			}
			push(2*place + 1)
			push(2*place + 2)
		}
	}
}

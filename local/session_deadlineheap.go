package local

import "github.com/rollcall/rollcall/internal/column"

// deadlineEntry is an instant at which something is due: a slot, a timeout class or a user's
// number.
type deadlineEntry struct {
	at int64
	of uint32
}

// deadlineHeap is a binary heap of instants, the earliest first, at most one for each slot. What
// ends sooner is taken out, so the heap never holds stale entries.
type deadlineHeap struct {
	heap  []deadlineEntry
	place column.Column[uint32] // by slot: 1 + its index in heap, 0 for none
}

// first returns the earliest instant.
func (h *deadlineHeap) first() (deadlineEntry, bool) {
	if len(h.heap) == 0 {
		return deadlineEntry{}, false
	}
	return h.heap[0], true
}

// of returns the instant of a slot.
func (h *deadlineHeap) of(slot uint32) (int64, bool) {
	i := h.place.Get(slot)
	if i == 0 {
		return 0, false
	}
	return h.heap[i-1].at, true
}

// set gives a slot an instant, instead of the one it had.
func (h *deadlineHeap) set(of uint32, at int64) {
	i := int(h.place.Get(of)) - 1
	if i < 0 {
		i = len(h.heap)
		h.heap = append(h.heap, deadlineEntry{})
	}
	h.put(i, deadlineEntry{at, of})
	h.up(i)
	h.down(int(h.place.Get(of)) - 1)
}

// remove takes a slot out, if it has an instant.
func (h *deadlineHeap) remove(of uint32) {
	i := int(h.place.Get(of)) - 1
	if i < 0 {
		return
	}
	h.place.Set(of, 0)
	last := len(h.heap) - 1
	moved := h.heap[last]
	h.heap = h.heap[:last]
	if len(h.heap) == 0 {
		h.heap = nil
	}
	if i < last {
		h.put(i, moved)
		h.up(i)
		h.down(int(h.place.Get(moved.of)) - 1)
	}
}

func (h *deadlineHeap) put(i int, e deadlineEntry) {
	h.heap[i] = e
	h.place.Set(e.of, uint32(i+1))
}

func (h *deadlineHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h.heap[parent].at <= h.heap[i].at {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *deadlineHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.heap) {
			return
		}
		if child+1 < len(h.heap) && h.heap[child+1].at < h.heap[child].at {
			child++
		}
		if h.heap[i].at <= h.heap[child].at {
			return
		}
		h.swap(i, child)
		i = child
	}
}

func (h *deadlineHeap) swap(i, j int) {
	a, b := h.heap[i], h.heap[j]
	h.put(i, b)
	h.put(j, a)
}

func (h *deadlineHeap) bytes() int { return 16*cap(h.heap) + h.place.Bytes() }

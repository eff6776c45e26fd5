package local

import "github.com/rollcall/rollcall/internal/column"

// ending is an instant that something is due at: a session, by slot, or a
// class of sessions.
type ending struct {
	at int64
	of uint32
}

// endHeap is a binary heap of instants, the earliest first: at most one for
// each slot. Who ends before their instant is taken out, so that the heap holds
// no more than there are.
type endHeap struct {
	heap  []ending
	place column.Column[uint32] // by slot: 1 + where it stands in heap, 0 for nowhere
}

// first returns the earliest instant.
func (h *endHeap) first() (ending, bool) {
	if len(h.heap) == 0 {
		return ending{}, false
	}
	return h.heap[0], true
}

// of returns the instant of a slot.
func (h *endHeap) of(slot uint32) (int64, bool) {
	i := h.place.Get(slot)
	if i == 0 {
		return 0, false
	}
	return h.heap[i-1].at, true
}

// set gives a slot its instant, in the place of the one it had.
func (h *endHeap) set(of uint32, at int64) {
	i := int(h.place.Get(of)) - 1
	if i < 0 {
		i = len(h.heap)
		h.heap = append(h.heap, ending{})
	}
	h.put(i, ending{at, of})
	h.up(i)
	h.down(int(h.place.Get(of)) - 1)
}

// remove takes a slot out; it may have no instant.
func (h *endHeap) remove(of uint32) {
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

func (h *endHeap) put(i int, e ending) {
	h.heap[i] = e
	h.place.Set(e.of, uint32(i+1))
}

func (h *endHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if h.heap[parent].at <= h.heap[i].at {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *endHeap) down(i int) {
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

func (h *endHeap) swap(i, j int) {
	a, b := h.heap[i], h.heap[j]
	h.put(i, b)
	h.put(j, a)
}

func (h *endHeap) bytes() int { return 16*cap(h.heap) + h.place.Bytes() }

package local

import (
	"container/heap"
	"errors"

	"github.com/rollcall/rollcall"
)

// banEnds is a heap of the ends of a partition's bans, the earliest first, so that upkeep
// looks only at bans that are over.
type banEnds struct {
	heap  []banEnd
	place map[rollcall.BanKey]int // index of each ban in heap
}

type banEnd struct {
	at  int64
	key rollcall.BanKey
}

// set gives a ban an end, instead of the one it had.
func (h *banEnds) set(k rollcall.BanKey, at int64) {
	if i, ok := h.place[k]; ok {
		h.heap[i].at = at
		heap.Fix(h, i)
		return
	}
	heap.Push(h, banEnd{at, k})
}

// remove takes a ban out, if it is there.
func (h *banEnds) remove(k rollcall.BanKey) {
	if i, ok := h.place[k]; ok {
		heap.Remove(h, i)
	}
}

// Len implements [heap.Interface].
func (h *banEnds) Len() int { return len(h.heap) }

// Less implements [heap.Interface].
func (h *banEnds) Less(i, j int) bool { return h.heap[i].at < h.heap[j].at }

// Swap implements [heap.Interface].
func (h *banEnds) Swap(i, j int) {
	h.heap[i], h.heap[j] = h.heap[j], h.heap[i]
	h.place[h.heap[i].key], h.place[h.heap[j].key] = i, j
}

// Push implements [heap.Interface].
func (h *banEnds) Push(x any) {
	e, _ := x.(banEnd)
	h.place[e.key] = len(h.heap)
	h.heap = append(h.heap, e)
}

// Pop implements [heap.Interface].
func (h *banEnds) Pop() any {
	last := len(h.heap) - 1
	e := h.heap[last]
	h.heap = h.heap[:last]
	delete(h.place, e.key)
	return e
}

func (t *userTable) setBan(b rollcall.Ban) {
	t.bans[b.Key] = b
	t.banEnds.set(b.Key, b.Until.UnixMilli())
}

func (t *userTable) dropBan(k rollcall.BanKey) {
	delete(t.bans, k)
	t.banEnds.remove(k)
}

// banStep bounds the bans that one step of trimming removes.
const banStep = 256

// trimBans removes bans that have ended, at most banStep of each partition, and
// reports whether there may be more.
func (e *Engine) trimBans(now int64) (more bool, err error) {
	for i := len(e.parts) - 1; i >= 0 && err == nil; i-- {
		var n int
		n, err = e.parts[i].trimBans(now)
		more = more || n == banStep
	}
	return more, err
}

// trimBans removes some bans that have ended, and returns their number. It queues the
// removal under the lock, so a new ban of the same user cannot reach the store before it.
func (p *partition) trimBans(now int64) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ends := &p.users.banEnds
	if len(ends.heap) == 0 || ends.heap[0].at > p.latest(now) {
		return 0, nil
	}
	b := p.eng.store.newBatch()
	var ended []banEnd
	var err error
	for len(ends.heap) > 0 && ends.heap[0].at <= p.latest(now) && len(ended) < banStep {
		e, _ := heap.Pop(ends).(banEnd)
		ended = append(ended, e)
		err = errors.Join(err, b.Delete(banKey(p.index, e.key), nil))
	}
	if err == nil {
		err = p.eng.store.queue(b)
	}
	for _, e := range ended {
		if err == nil {
			delete(p.users.bans, e.key)
		} else { // it is tried again
			ends.set(e.key, e.at)
		}
	}
	return len(ended), errors.Join(err, b.Close())
}

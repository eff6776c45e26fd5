package fanout

import "sync"

// Message is what readers are handed. They share it, so nobody changes it.
type Message[T any] struct {
	Topic string // what it is about; "" for nothing that anybody follows
	Data  []byte // what its size is reckoned by
	Of    T
}

// Hub hands out messages. It is safe for concurrent use. What one goroutine
// publishes comes to each reader in its order.
type Hub[T any] struct {
	limit int

	mu          sync.Mutex
	last        string       // the place after the newest message
	readers     []*Reader[T] // by number; nil for a number that is free
	freeReaders []uint32     // numbers of readers that are free
	all         []uint32     // numbers of readers who take all topics

	topics     []topic // by number
	freeTopics []uint32
	numbers    map[string]uint32 // of topics that somebody follows
}

// New returns a hub whose readers are cut off once limit bytes wait for them.
func New[T any](limit int) *Hub[T] {
	return &Hub[T]{limit: limit, numbers: make(map[string]uint32)}
}

// Publish hands messages to the readers who want them. place is where the writer
// stands behind them.
func (h *Hub[T]) Publish(place string, messages ...*Message[T]) {
	var overrun []*Reader[T]
	h.mu.Lock()
	h.last = place
	for _, m := range messages {
		overrun = h.hand(m, overrun)
	}
	h.mu.Unlock()

	// Outside the lock: what a reader does then is theirs.
	for _, r := range overrun {
		if r.overrun != nil {
			r.overrun()
		}
	}
}

// hand gives a message to its readers. It appends those to overrun for whom it was
// one too many.
func (h *Hub[T]) hand(m *Message[T], overrun []*Reader[T]) []*Reader[T] {
	give := func(n uint32) {
		if r := h.readers[n]; r.take(m, h.limit) {
			overrun = append(overrun, r)
		}
	}
	for _, n := range h.all {
		give(n)
	}
	if t, ok := h.numbers[m.Topic]; ok {
		for _, f := range h.topics[t].followers {
			give(f.reader)
		}
	}
	return overrun
}

// Broadcast hands a message to all readers, whatever they follow or accept.
func (h *Hub[T]) Broadcast(place string, m *Message[T]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = place
	for _, r := range h.readers {
		if r != nil && !r.cut {
			r.queue = append(r.queue, m)
			r.wake()
		}
	}
}

// Place returns where the writer stands.
func (h *Hub[T]) Place() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Followed reports whether anybody follows a topic.
func (h *Hub[T]) Followed(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.numbers[name]
	return ok
}

// Names returns names that are equal to some, and that the index holds already if
// somebody follows them: who keeps them keeps no copies.
func (h *Hub[T]) Names(some []string) []string {
	out := make([]string, len(some))
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, name := range some {
		out[i] = name
		if t, ok := h.numbers[name]; ok {
			out[i] = h.topics[t].name
		}
	}
	return out
}

// Readers returns how many readers there are.
func (h *Hub[T]) Readers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.readers) - len(h.freeReaders)
}

// enter gives a reader a number. The caller holds the lock.
func (h *Hub[T]) enter(r *Reader[T]) {
	if n := len(h.freeReaders); n > 0 {
		r.number, h.freeReaders = h.freeReaders[n-1], h.freeReaders[:n-1]
		h.readers[r.number] = r
		return
	}
	r.number = uint32(len(h.readers)) //nolint:gosec // there are not so many readers
	h.readers = append(h.readers, r)
}

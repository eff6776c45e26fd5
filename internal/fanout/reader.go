package fanout

// Reader is one who takes messages. Its methods are for one goroutine, but for
// those of the hub.
type Reader[T any] struct {
	hub     *Hub[T]
	number  uint32
	accept  func(*Message[T]) bool
	overrun func()
	called  func()        // when something comes; nil for ready
	ready   chan struct{} // nil if the reader is called

	// Under the hub's lock.
	all     bool
	at      uint32 // in the hub's list of readers who take all
	follows []follow
	queue   []*Message[T]
	bytes   int
	cut     bool
}

// Want is what a reader wants.
type Want[T any] struct {
	All     bool                   // messages of every topic, not only of those followed
	Topics  []string               // that are followed from the beginning
	Accept  func(*Message[T]) bool // those of them that are wanted; nil for each
	Overrun func()                 // called once, when the reader is cut off; may be nil
	// Wake is called whenever something comes, instead of making Ready ready. It is
	// called under the hub's lock: it neither waits nor calls the hub. It may be nil.
	Wake func()
}

// Join adds a reader from now on, and returns where the writer stood then.
func (h *Hub[T]) Join(w Want[T]) (r *Reader[T], place string) {
	r = &Reader[T]{hub: h, accept: w.Accept, overrun: w.Overrun, called: w.Wake, all: w.All}
	if r.called == nil {
		r.ready = make(chan struct{}, 1)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.enter(r)
	if r.all {
		r.at = uint32(len(h.all)) //nolint:gosec // there are not so many readers
		h.all = append(h.all, r.number)
	}
	for _, name := range w.Topics {
		h.add(r, name)
	}
	return r, h.last
}

// Leave removes the reader. Leaving again does nothing.
func (r *Reader[T]) Leave() {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers[r.number] != r {
		return
	}
	for i := len(r.follows) - 1; i >= 0; i-- {
		h.drop(r, i)
	}
	if r.all {
		last := h.all[len(h.all)-1]
		h.all[r.at] = last
		h.readers[last].at = r.at
		h.all = h.all[:len(h.all)-1]
	}
	h.readers[r.number] = nil
	h.freeReaders = append(h.freeReaders, r.number)
	r.queue, r.cut = nil, true
}

// Follow makes the topics that the reader follows exactly these, but for those
// that keep tells to leave alone. It returns how many are new and those that are
// gone. The map is used up.
func (r *Reader[T]) Follow(topics map[string]struct{}, keep func(topic string) bool) (added int, gone []string) {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readers[r.number] != r {
		return 0, nil
	}
	for i := len(r.follows) - 1; i >= 0; i-- {
		name := h.topics[r.follows[i].topic].name
		_, wanted := topics[name]
		delete(topics, name)
		if !wanted && !keep(name) {
			gone = append(gone, name)
			h.drop(r, i)
		}
	}
	if len(topics) > 0 {
		grown := make([]follow, len(r.follows), len(r.follows)+len(topics)) // exact: lists live long
		copy(grown, r.follows)
		r.follows = grown
	}
	for name := range topics {
		h.add(r, name)
	}
	return len(topics), gone
}

// take queues a message. It reports whether that is one too many.
func (r *Reader[T]) take(m *Message[T], limit int) (overrun bool) {
	if r.cut || (r.accept != nil && !r.accept(m)) {
		return false
	}
	r.queue, r.bytes = append(r.queue, m), r.bytes+len(m.Data)
	if r.bytes > limit {
		r.queue, r.cut, overrun = nil, true, true
	}
	r.wake()
	return overrun
}

// wake says that something has come.
func (r *Reader[T]) wake() {
	if r.called != nil {
		r.called()
		return
	}
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Behind reports whether the reader was cut off.
func (r *Reader[T]) Behind() bool {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	return r.cut
}

// Ready is received from when Take may have something. A reader with Want.Wake has none.
func (r *Reader[T]) Ready() <-chan struct{} { return r.ready }

// Take returns the messages that wait, oldest first, and the writer's place behind
// them. cut says that the reader was cut off: then nothing more comes.
func (r *Reader[T]) Take() (messages []*Message[T], place string, cut bool) {
	h := r.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	messages, r.queue, r.bytes = r.queue, nil, 0
	return messages, h.last, r.cut
}

package fanout

// The index of topics. A topic lists its followers and a reader lists what they
// follow; each entry says where its counterpart stands in the other list, so one
// pair is removed without a search, however popular the topic is.

// topic is one that somebody follows.
type topic struct {
	name      string
	followers []follower
}

// follower is a reader of a topic.
type follower struct {
	reader uint32
	at     uint32 // in the reader's list
}

// follow is a topic of a reader.
type follow struct {
	topic uint32
	at    uint32 // in the topic's list
}

// add makes a reader follow a topic that they do not follow yet.
func (h *Hub[T]) add(r *Reader[T], name string) {
	n, ok := h.numbers[name]
	if !ok {
		n = h.newTopic(name)
	}
	t := &h.topics[n]
	r.follows = append(r.follows, follow{topic: n, at: uint32(len(t.followers))})                 //nolint:gosec // both are far from 4 billion
	t.followers = append(t.followers, follower{reader: r.number, at: uint32(len(r.follows) - 1)}) //nolint:gosec // as above
}

func (h *Hub[T]) newTopic(name string) uint32 {
	var n uint32
	if free := len(h.freeTopics); free > 0 {
		n, h.freeTopics = h.freeTopics[free-1], h.freeTopics[:free-1]
		h.topics[n] = topic{name: name}
	} else {
		n = uint32(len(h.topics)) //nolint:gosec // as above
		h.topics = append(h.topics, topic{name: name})
	}
	h.numbers[name] = n
	return n
}

// drop removes the topic at a place of a reader's list. The last of each list
// takes the place that becomes free.
func (h *Hub[T]) drop(r *Reader[T], i int) {
	gone := r.follows[i]
	t := &h.topics[gone.topic]

	last := len(t.followers) - 1
	if moved := t.followers[last]; int(gone.at) != last {
		t.followers[gone.at] = moved
		h.readers[moved.reader].follows[moved.at].at = gone.at
	}
	t.followers = t.followers[:last]

	end := len(r.follows) - 1
	if moved := r.follows[end]; i != end {
		r.follows[i] = moved
		h.topics[moved.topic].followers[moved.at].at = uint32(i) //nolint:gosec // as above
	}
	r.follows = r.follows[:end]

	if last == 0 {
		delete(h.numbers, t.name)
		h.topics[gone.topic] = topic{}
		h.freeTopics = append(h.freeTopics, gone.topic)
	}
}

package local

// ending is when a session reaches its absolute end.
type ending struct {
	at   int64
	slot uint32
}

// endHeap is a binary heap of absolute ends, the earliest first. An entry whose
// session ended before, or was given another end, is stale.
type endHeap []ending

func (h *endHeap) push(e ending) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent].at <= s[i].at {
			break
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
}

func (h *endHeap) pop() ending {
	s := *h
	top := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].at < s[child].at {
			child++
		}
		if s[i].at <= s[child].at {
			break
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
	*h = s
	return top
}

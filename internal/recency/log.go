package recency

import (
	"sort"
	"unsafe"
)

const (
	chunkLen = 4096

	// Below this many stale entries a log is never worth compacting.
	minStale = 1024
)

type chunk [chunkLen]uint32

// group is a run of entries of one second. It ends where the next one starts.
type group struct {
	sec   uint32
	start uint32
}

// log is a list of numbers in order of the second they were appended at. It
// grows by whole chunks, so that nothing is copied, and keeps no time for an
// entry but that of its group.
type log struct {
	chunks []*chunk // those past the last entry are spare
	len    uint32
	groups []group // seconds ascend strictly

	// A compaction that is under way has looked at the groups before next: what
	// it keeps of them are the groups before packed, of kept entries. All between
	// packed and next, and the entries of it, is free.
	compacting   bool
	packed, next int
	kept         uint32
}

// count returns how many groups there are.
func (l *log) count() int { return len(l.groups) - (l.next - l.packed) }

// group returns a group by its rank.
func (l *log) group(g int) group {
	if g >= l.packed {
		g += l.next - l.packed
	}
	return l.groups[g]
}

// push appends n, at a second no earlier than that of any entry.
func (l *log) push(sec, n uint32) {
	if g := len(l.groups); g == 0 || l.groups[g-1].sec != sec {
		l.groups = append(l.groups, group{sec, l.len})
	}
	at := l.len / chunkLen
	if int(at) == len(l.chunks) {
		l.chunks = append(l.chunks, new(chunk))
	}
	l.chunks[at][l.len%chunkLen] = n
	l.len++
}

// from returns the rank of the first group at sec or later.
func (l *log) from(sec uint32) int {
	return sort.Search(l.count(), func(i int) bool { return l.group(i).sec >= sec })
}

// end returns where the entries of a group end.
func (l *log) end(g int) uint32 {
	switch {
	case g+1 == l.packed:
		return l.kept
	case g+1 < l.count():
		return l.group(g + 1).start
	default:
		return l.len
	}
}

// run returns the entries from at on, as many before end as lie in one chunk.
func (l *log) run(at, end uint32) []uint32 {
	c := l.chunks[at/chunkLen]
	lo := at % chunkLen
	return c[lo:min(chunkLen, lo+end-at)]
}

// compact takes a step of dropping the entries for which wanted is false, and the
// groups left empty: whole groups, until it has looked at limit entries. wanted is
// asked once for each entry, oldest first. Between two steps the log may be used
// and grow as usual.
func (l *log) compact(limit int, wanted func(sec, n uint32) bool) {
	l.compacting = true
	for l.next < len(l.groups) && limit > 0 {
		g, end := l.groups[l.next], l.len
		if l.next++; l.next < len(l.groups) {
			end = l.groups[l.next].start
		}
		limit -= int(end - g.start)
		start := l.kept
		for at := g.start; at < end; {
			run := l.run(at, end)
			at += uint32(len(run))
			for _, n := range run {
				if wanted(g.sec, n) {
					l.chunks[l.kept/chunkLen][l.kept%chunkLen] = n
					l.kept++
				}
			}
		}
		if l.kept > start {
			l.groups[l.packed] = group{g.sec, start}
			l.packed++
		}
	}
	if l.next == len(l.groups) {
		l.groups, l.len = l.groups[:l.packed], l.kept
		l.compacting, l.packed, l.next, l.kept = false, 0, 0, 0
		l.release()
	}
}

// release gives up the spare chunks and groups that the log does not need to
// grow to twice its length, which it does before it is compacted again.
func (l *log) release() {
	chunks := int(2*l.len+minStale)/chunkLen + 1
	if chunks < len(l.chunks) {
		clear(l.chunks[chunks:])
		l.chunks = l.chunks[:chunks]
	}
	if groups := 2*len(l.groups) + minStale; groups < cap(l.groups) {
		l.groups = append(make([]group, 0, groups), l.groups...)
	}
}

func (l *log) bytes() int {
	return len(l.chunks)*int(unsafe.Sizeof(chunk{})) +
		cap(l.chunks)*int(unsafe.Sizeof((*chunk)(nil))) +
		cap(l.groups)*int(unsafe.Sizeof(group{}))
}

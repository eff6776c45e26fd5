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

// from returns the index of the first group at sec or later.
func (l *log) from(sec uint32) int {
	return sort.Search(len(l.groups), func(i int) bool { return l.groups[i].sec >= sec })
}

// end returns where the entries of a group end.
func (l *log) end(g int) uint32 {
	if g+1 < len(l.groups) {
		return l.groups[g+1].start
	}
	return l.len
}

// run returns the entries from at on, as many before end as lie in one chunk.
func (l *log) run(at, end uint32) []uint32 {
	c := l.chunks[at/chunkLen]
	lo := at % chunkLen
	return c[lo:min(chunkLen, lo+end-at)]
}

// keep drops the entries for which wanted is false, and the groups left empty.
// It works in place. wanted is asked once for each entry, oldest first.
func (l *log) keep(wanted func(sec, n uint32) bool) {
	var kept log
	kept.chunks, kept.groups = l.chunks, l.groups[:0]
	for g, at := 0, uint32(0); g < len(l.groups); g++ {
		// The kept groups overwrite those read before, never one to come.
		sec, end := l.groups[g].sec, l.end(g)
		for at < end {
			run := l.run(at, end)
			at += uint32(len(run))
			for _, n := range run {
				if wanted(sec, n) {
					kept.push(sec, n)
				}
			}
		}
	}
	*l = kept
	l.release()
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

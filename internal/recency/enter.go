package recency

// Entry is a number and when it was last heard.
type Entry struct {
	N, Sec uint32
	Hidden bool
}

// Enter sets the times of numbers that have none, in any seconds, and enters them into the order and the
// counts. Its cost grows with the log from the earliest of the seconds on, so it pays for many
// entries at once.
func (t *Table) Enter(entries []Entry, tally *Tally) {
	if len(entries) == 0 {
		return
	}

	// Cut off the log from the earliest second on, and append it again with the new entries.
	first := uint32(1<<32 - 1)
	for _, e := range entries {
		first = min(first, e.Sec)
	}
	later := t.cutFrom(first)
	for _, e := range entries {
		t.Put(e.N, e.Sec, e.Hidden)
		t.newest = max(t.newest, e.Sec)
		if !e.Hidden {
			tally.Add(e.Sec, 1)
		}
		later = append(later, uint64(e.Sec)<<32|uint64(e.N))
	}
	for _, e := range sortBySecond(later) {
		t.log.push(uint32(e>>32), uint32(e))
	}
}

// cutFrom cuts the log before a second, and returns the entries from there on that are not stale, as
// sec<<32 | n.
func (t *Table) cutFrom(from uint32) []uint64 {
	for t.log.compacting {
		t.compactBy(int(t.log.len))
	}
	t.layout++
	first := t.log.from(from)
	if first == t.log.count() {
		return nil
	}
	start := t.log.group(first).start
	taken := make([]uint64, 0, t.log.len-start)
	for g := first; g < t.log.count(); g++ {
		sec, at, end := t.log.group(g).sec, t.log.group(g).start, t.log.end(g)
		for at < end {
			run := t.log.run(at, end)
			at += uint32(len(run))
			for _, n := range run {
				if t.last.Get(n) == sec {
					taken = append(taken, uint64(sec)<<32|uint64(n))
				}
			}
		}
	}
	t.log.groups, t.log.len = t.log.groups[:first], start
	return taken
}

// AllOf appends to dst the numbers last heard at sec, ascending, those hidden
// among them.
func (t *Table) AllOf(dst []uint32, sec uint32) []uint32 {
	g := t.log.from(sec)
	if g == t.log.count() || t.log.group(g).sec != sec {
		return dst
	}
	return t.group(dst, g, true)
}

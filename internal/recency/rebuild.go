package recency

// Put sets the time of a number, 0 for never, and whether it is hidden. It is
// for loading a table, in any order: neither order nor counts know of it until
// Rebuild is called, and nothing may be heard before.
func (t *Table) Put(n, last uint32, hidden bool) {
	switch prev := t.last.Get(n); {
	case prev == 0 && last != 0:
		t.known++
		t.top = max(t.top, n+1)
	case prev != 0 && last == 0:
		t.known--
	}
	t.last.Set(n, last)
	if hidden && last != 0 {
		t.hidden.add(n)
	} else {
		t.hidden.remove(n)
	}
}

// Rebuild makes the order of a loaded table from the times of its numbers, and
// adds all numbers that are not hidden to the tally. It is called once, after
// the last Put. It takes 16 bytes a number while it runs.
func (t *Table) Rebuild(tally *Tally) {
	entries := sortBySecond(t.entries())
	t.log = log{groups: make([]group, 0, distinct(entries))}
	for len(entries) > 0 {
		sec, shown, k := uint32(entries[0]>>32), int32(0), 0
		for ; k < len(entries) && uint32(entries[k]>>32) == sec; k++ {
			n := uint32(entries[k])
			t.log.push(sec, n)
			shown += 1 - int32(t.hidden.bit(n))
		}
		tally.push(sec, shown)
		t.newest = max(t.newest, sec)
		entries = entries[k:]
	}
}

// distinct returns how many seconds there are in sorted entries.
func distinct(entries []uint64) int {
	count := 0
	for i, e := range entries {
		if i == 0 || e>>32 != entries[i-1]>>32 {
			count++
		}
	}
	return count
}

// entries returns the known numbers, ascending, under the second they were
// last heard: sec<<32 | n.
func (t *Table) entries() []uint64 {
	entries := make([]uint64, 0, t.known)
	for n := range t.top {
		if last := t.last.Get(n); last != 0 {
			entries = append(entries, uint64(last)<<32|uint64(n))
		}
	}
	return entries
}

// sortBySecond sorts entries by their upper halves and leaves those with equal
// ones in the order they are in. It is a radix sort over the seconds that
// occur: a few passes, where comparing would take twenty.
func sortBySecond(entries []uint64) []uint64 {
	if len(entries) == 0 {
		return entries
	}
	lo, hi := uint32(1<<32-1), uint32(0)
	for _, e := range entries {
		lo, hi = min(lo, uint32(e>>32)), max(hi, uint32(e>>32))
	}
	const digit = 11
	sorted := make([]uint64, len(entries))
	for shift := 0; (hi-lo)>>shift != 0; shift += digit {
		var place [1 << digit]uint32
		for _, e := range entries {
			place[(uint32(e>>32)-lo)>>shift%(1<<digit)]++
		}
		next := uint32(0)
		for i, count := range place {
			place[i], next = next, next+count
		}
		for _, e := range entries {
			at := &place[(uint32(e>>32)-lo)>>shift%(1<<digit)]
			sorted[*at] = e
			*at++
		}
		entries, sorted = sorted, entries
	}
	return entries
}

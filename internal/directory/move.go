package directory

// moveStep bounds the slots that one change of a directory looks at to move its
// entries to a larger table, and movePerID what it looks at for each new id on top:
// enough to be through long before the larger table is full.
const (
	moveStep  = 1024
	movePerID = 8
)

// moving is the old table of a directory that moves to a larger one.
//
// Copying all entries at once would make one change wait for all. So each change moves some, in the
// order of their slots, once round from behind an empty slot, and whole runs between two empty
// slots at a time. So every entry whose home, counted from there, is before done has moved, and
// all others have not: the hash of an id says where to look. New ids go to the larger table at
// once, so an id whose home has not been passed may be in either.
type moving struct {
	table
	start int // behind an empty slot, which stays empty: nothing is entered here
	done  int // slots from start on whose entries have moved
}

// standing reports whether an entry of that hash, if it was ever entered here, has not moved.
func (m *moving) standing(hash uint64) bool {
	return len(m.words) != 0 && m.distance(m.start, m.home(hash)) >= m.done
}

// grow begins to move to a table a quarter larger.
func (d *Directory) grow() {
	d.move(len(d.old.words)) // nothing, but for a directory that moveStep does not fit
	d.old = moving{table: d.table}
	for d.old.words[d.old.start] != 0 {
		d.old.start++
	}
	d.old.start = d.old.after(d.old.start)
	d.table = newTable(d.old.nextSize())
}

// GrowStep moves some entries to the larger table if the directory is growing, as a change does. No
// answer changes by it.
func (d *Directory) GrowStep() { d.move(moveStep) }

// move moves what stands in the next slots, up to the end of a run.
func (d *Directory) move(slots int) {
	m := &d.old
	if len(m.words) == 0 {
		return
	}
	slot := m.start + m.done
	if slot >= len(m.words) {
		slot -= len(m.words)
	}
	for m.live > 0 {
		w := m.words[slot]
		if w == 0 && slots <= 0 {
			return
		}
		if w != 0 {
			d.table.add(d.hash(w.number()), w.number())
			m.live--
		}
		m.done++
		slots--
		slot = m.after(slot)
	}
	d.old = moving{}
}

package local

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/coldcache"
	"github.com/rollcall/rollcall/internal/dayset"
)

// eraseMarks puts into a batch the removal of all that days hold of a number, and makes the
// figures stale that count it. forget then does the same in memory. Roll erases the user
// from the archive.
func (p *partition) eraseMarks(b *pebble.Batch, n uint32) (forget func(), err error) {
	t := &p.days
	// The number may soon be another user's, and what was read back is by number.
	p.eng.offloaded.months.Forget(func(coldcache.Key) bool { return false })
	remove := func(k key) error { return b.Merge(k, dayset.AppendRemove(nil, []uint16{uint16(n)}), nil) }
	container := uint8(n >> 16)
	var steps []func()
	for id, set := range t.sets {
		if !set.Contains(n) {
			continue
		}
		err = errors.Join(err, remove(dayKey(p.index, id.kind, id.day, container)), p.eng.figureCache.invalidate(b, id))
		steps = append(steps, func() { t.removeMark(id, n) })
	}
	if t.hasArchived.Contains(n) {
		// Only the archive knows on which days: all figures from the first day on.
		if first, ok := t.firstOfAny(allOf(len(t.first)), n); ok {
			err = errors.Join(err, p.eng.figureCache.invalidateFrom(b, first))
		}
		err = errors.Join(err, remove(hasArchivedKey(p.index, container)))
		steps = append(steps, func() { t.hasArchived.Remove(n) })
	}
	for m, set := range t.dirty {
		if set.Contains(n) {
			err = errors.Join(err, remove(dirtyKey(p.index, m, container)))
			steps = append(steps, func() { t.clearDirty(m, n) })
		}
	}
	for k := range t.first {
		if day, ok := t.first[k].get(n); ok {
			err = errors.Join(err, remove(firstKey(p.index, uint8(k), day, container)))
			steps = append(steps, func() { t.first[k].clear(n) })
		}
	}
	return func() {
		for _, step := range steps {
			step()
		}
	}, err
}

// allOf returns the first n kinds.
func allOf(n int) []uint8 {
	out := make([]uint8, n)
	for i := range out {
		out[i] = uint8(i)
	}
	return out
}

package local

import (
	"errors"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/dayset"
)

// upgrade brings a store of oldFormat up to format: it makes the tables of first
// days and of changed maps, which are all maps, as none was ever archived. If it
// is cut short the store is of oldFormat still.
func (e *Engine) upgrade() error {
	for _, p := range e.parts {
		if err := p.upgrade(); err != nil {
			return err
		}
	}
	if err := e.store.syncAll(); err != nil {
		return err
	}
	b := e.store.db.NewBatch()
	if err := b.Set(metaKey(metaFormat), []byte{format}, nil); err != nil {
		return errors.Join(err, b.Close())
	}
	return e.store.write(b)
}

func (p *partition) upgrade() error {
	b := p.eng.store.db.NewBatch()
	t := &p.days
	t.first, t.changed = nil, make(map[monthID]*roaring.Bitmap)
	for _, table := range [...]byte{tabFirst, tabChanged} {
		prefix := newKey(table, 2).u8(p.index)
		if err := b.DeleteRange(prefix, prefix.after(), nil); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(t.sets), compareDays) {
		if err := t.upgradeDay(b, id); err != nil {
			return errors.Join(err, b.Close())
		}
		if b.Len() < upgradeStep {
			continue
		}
		if err := p.eng.store.queue(b); err != nil {
			return errors.Join(err, b.Close())
		}
		if err := b.Close(); err != nil {
			return err
		}
		b = p.eng.store.db.NewBatch()
	}
	return errors.Join(p.eng.store.queue(b), b.Close())
}

// upgradeStep is how many bytes of a batch are written at once.
const upgradeStep = 1 << 20

// upgradeDay notes the users of a day, the days before it having been noted.
func (t *dayTable) upgradeDay(b *pebble.Batch, id dayID) error {
	users := t.sets[id].ToArray()
	w := noting{t: t, b: b, how: marking}
	if err := w.flag(id.month(), users); err != nil {
		return err
	}
	var first []uint32
	for _, n := range users {
		if _, ok := t.firstOf(id.kind, n); !ok {
			first = append(first, n)
		}
	}
	t.flag(id.month(), users)
	t.notLaterThan(id, first)
	return mergeNumbers(b, dayset.AppendAdd, first, func(c uint8) key { return firstKey(t.p.index, id.kind, id.day, c) })
}

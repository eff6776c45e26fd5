package local

import (
	"encoding/binary"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// scanSets reads a table of sets in a partition. Its keys have a length, and end with the
// container.
func (p *partition) scanSets(table byte, keyLen int, what string, fn func(k []byte, set *roaring.Bitmap)) error {
	return p.scan(table, func(k, v []byte) error {
		if len(k) != keyLen {
			return damaged(what, k, errDamaged)
		}
		set := roaring.New()
		if err := dayset.Decode(v, uint32(k[keyLen-1]), set); err != nil {
			return damaged(what, k, err)
		}
		if !set.IsEmpty() {
			fn(k, set)
		}
		return nil
	})
}

// dayOfKey reads the kind, and the day or month, that follow the partition in a key.
func dayOfKey(k []byte) dayID { return dayID{k[2], int32(binary.BigEndian.Uint32(k[3:]))} }

func (p *partition) loadDays() error {
	return p.scanSets(tabDay, 8, "days", func(k []byte, set *roaring.Bitmap) {
		if old := p.days.sets[dayOfKey(k)]; old != nil {
			old.Or(set)
		} else {
			p.days.sets[dayOfKey(k)] = set
		}
	})
}

func (p *partition) loadFirst() error {
	return p.scanSets(tabFirst, 8, "first days", func(k []byte, set *roaring.Bitmap) {
		p.days.lowerFirstDays(dayOfKey(k), set.ToArray())
	})
}

func (p *partition) loadDirty() error {
	return p.scanSets(tabDirty, 8, "dirty maps", func(k []byte, set *roaring.Bitmap) {
		id := dayOfKey(k)
		p.days.markDirty(monthID{id.kind, rollcall.Month(id.day)}, set.ToArray())
	})
}

func (p *partition) loadHasArchived() error {
	return p.scanSets(tabHasArchived, 3, "archived marks", func(_ []byte, set *roaring.Bitmap) { p.days.hasArchived.Or(set) })
}

// loadOffloaded reads which days have been offloaded, and the figures that are stored.
func (e *Engine) loadOffloaded() error {
	err := e.store.scan(uninterrupted(), newKey(tabOffloaded, 1), func(k, _ []byte) error {
		if len(k) != 6 {
			return damaged("offloaded days", k, errDamaged)
		}
		e.offloaded.days[dayID{k[1], int32(binary.BigEndian.Uint32(k[2:]))}] = true
		return nil
	})
	if err != nil {
		return err
	}
	e.figureCache.firstOpenDay.Store(math.MinInt32)
	return e.store.scan(uninterrupted(), newKey(tabFigures, 1), func(k, v []byte) error {
		if len(k) != 6 {
			return damaged("figures", k, errDamaged)
		}
		f, err := decodeFigures(v)
		if err != nil {
			return damaged("figures", k, err)
		}
		id := dayID{k[1], int32(binary.BigEndian.Uint32(k[2:]))}
		e.figureCache.figures[id] = f
		e.figureCache.firstOpenDay.Store(max(e.figureCache.firstOpenDay.Load(), id.day+1))
		return nil
	})
}

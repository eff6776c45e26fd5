package local

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// sets checks the containers of a table of sets of numbers, and hands them on.
func (c *checker) sets(table byte, keyLen int, what string, fn func(k []byte, set *roaring.Bitmap)) {
	c.table(table, keyLen, func(k, v []byte) {
		set := roaring.New()
		if err := dayset.Decode(v, uint32(k[keyLen-1]), set); err != nil {
			c.fault(k, "%s cannot be read: %v", what, err)
			return
		}
		for it := set.Iterator(); it.HasNext(); {
			if n := it.Next(); c.ids[newRef(k[1], n)] == "" {
				c.fault(k, "%s of number %d, who has no id", what, n)
			}
		}
		fn(k, set)
	})
}

func (c *checker) kind(k []byte, kind uint8, what string) {
	if !c.kinds[kind] {
		c.fault(k, "%s of kind number %d, which has no name", what, kind)
	}
}

// days checks the sets of days against what is known of who was there first, and
// of what departed.
func (c *checker) days() {
	type numberKind struct {
		r    ref
		kind uint8
	}
	first := make(map[numberKind]int32)
	c.sets(tabFirst, 8, "a first day", func(k []byte, set *roaring.Bitmap) {
		id := dayOfKey(k)
		c.kind(k, id.kind, "a first day")
		for it := set.Iterator(); it.HasNext(); {
			at := numberKind{newRef(k[1], it.Next()), id.kind}
			if _, twice := first[at]; twice {
				c.fault(k, "number %d has two first days", at.r.number())
			}
			first[at] = id.day
		}
	})
	away := make(map[ref]bool)
	c.sets(tabAway, 3, "a departed mark", func(k []byte, set *roaring.Bitmap) {
		for it := set.Iterator(); it.HasNext(); {
			away[newRef(k[1], it.Next())] = true
		}
	})
	met := make(map[numberKind]bool) // whose first day is here
	c.sets(tabDay, 8, "a mark", func(k []byte, set *roaring.Bitmap) {
		id := dayOfKey(k)
		c.kind(k, id.kind, "marks")
		for it := set.Iterator(); it.HasNext(); {
			at := numberKind{newRef(k[1], it.Next()), id.kind}
			if day, ok := first[at]; !ok || day > id.day {
				c.fault(k, "number %d was there before their first day", at.r.number())
			} else if day == id.day {
				met[at] = true
			}
		}
	})
	for at, day := range first {
		if !met[at] && !away[at.r] {
			c.fault(firstKey(at.r.part(), at.kind, day, uint8(at.r.number()>>16)), "number %d was not there on their first day", at.r.number())
		}
	}
	c.archival()
}

// archival checks what else there is about days that depart.
func (c *checker) archival() {
	c.sets(tabChanged, 8, "a changed map", func(k []byte, _ *roaring.Bitmap) {
		c.kind(k, k[2], "changed maps")
		if m := rollcall.Month(dayOfKey(k).day); !m.Valid() {
			c.fault(k, "changed maps of %d, which is no month", m)
		}
	})
	c.table(tabDeparted, 6, func(k, _ []byte) { c.kind(k, k[1], "a departed day") })
	c.table(tabClosed, 6, func(k, v []byte) {
		if k[1] != allKinds {
			c.kind(k, k[1], "figures")
		}
		if _, err := decodeClosed(v); err != nil {
			c.fault(k, "figures cannot be read: %v", err)
		}
	})
}

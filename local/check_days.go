package local

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// sets checks the containers of a table of sets of numbers, and calls fn with each. Numbers without
// an id are taken out of the set.
func (c *checker) sets(table byte, what string, fn func(k []byte, set *roaring.Bitmap)) {
	c.table(table, func(k, v []byte) {
		set := roaring.New()
		if err := dayset.Decode(v, uint32(k[len(k)-1]), set); err != nil {
			c.fault(k, "%s cannot be read: %v", what, err)
			return
		}
		var strangers []uint32
		for it := set.Iterator(); it.HasNext(); {
			n := it.Next()
			c.sawNumber(k[1], n)
			if c.ids[newRef(k[1], n)] == "" {
				c.report.fault("key %x: %s of number %d, who has no id", k, what, n)
				strangers = append(strangers, n)
			}
		}
		if len(strangers) > 0 && c.mend != nil {
			c.mend.dropNumbers(k, strangers)
			set.AndNot(roaring.BitmapOf(strangers...))
		}
		fn(k, set)
	})
}

// numberKind is a user and one of the kinds of their marks.
type numberKind struct {
	r    ref
	kind uint8
}

// attendance is what the records of days say.
type attendance struct {
	first       map[numberKind]int32
	hasArchived map[ref]bool
	met         map[numberKind]bool  // the mark of the first day is here
	least       map[numberKind]int32 // the first mark, if the first day is later or unknown
}

// days checks the marks against the first days and the notes of offloaded days.
func (c *checker) days() {
	c.table(tabLost, func(k, v []byte) {
		if len(v) != 0 {
			c.derived(k, setting(slices.Clone(k), nil), "has a value, and needs none")
		}
		c.lost[offloadedOfKey(k)] = true
	})
	at := &attendance{
		first: make(map[numberKind]int32), hasArchived: make(map[ref]bool),
		met: make(map[numberKind]bool), least: make(map[numberKind]int32),
	}
	c.firsts(at)
	c.sets(tabHasArchived, "an archived mark", func(k []byte, set *roaring.Bitmap) {
		for it := set.Iterator(); it.HasNext(); {
			at.hasArchived[newRef(k[1], it.Next())] = true
		}
	})
	c.sets(tabDay, "a mark", func(k []byte, set *roaring.Bitmap) {
		id := dayOfKey(k)
		c.kind(k, id.kind, "marks")
		for it := set.Iterator(); it.HasNext(); {
			one := numberKind{newRef(k[1], it.Next()), id.kind}
			if day, ok := at.first[one]; !ok || day > id.day {
				c.report.fault("key %x: number %d was there before their first day", k, one.r.number())
				if least, ok := at.least[one]; !ok || id.day < least {
					at.least[one] = id.day
				}
			} else if day == id.day {
				at.met[one] = true
			}
		}
	})
	c.firstDays(at)
}

// firsts reads the first days.
func (c *checker) firsts(at *attendance) {
	c.sets(tabFirst, "a first day", func(k []byte, set *roaring.Bitmap) {
		id := dayOfKey(k)
		c.kind(k, id.kind, "a first day")
		for it := set.Iterator(); it.HasNext(); {
			n := it.Next()
			one := numberKind{newRef(k[1], n), id.kind}
			if _, twice := at.first[one]; twice { // days ascend: the one met first is the earlier one
				c.derived(k, removingFirst(one, id.day), "number %d has two first days", n)
				continue
			}
			at.first[one] = id.day
		}
	})
}

func removingFirst(of numberKind, day int32) func(b *pebble.Batch) error {
	k := firstKey(of.r.part(), of.kind, day, uint8(of.r.number()>>16))
	return func(b *pebble.Batch) error {
		return b.Merge(k, dayset.AppendRemove(nil, []uint16{uint16(of.r.number())}), nil)
	}
}

func addingFirst(of numberKind, day int32) func(b *pebble.Batch) error {
	k := firstKey(of.r.part(), of.kind, day, uint8(of.r.number()>>16))
	return func(b *pebble.Batch) error {
		return b.Merge(k, dayset.AppendAdd(nil, []uint16{uint16(of.r.number())}), nil)
	}
}

// firstDays checks that there is a mark of each first day, unless it is in the archive or was lost.
func (c *checker) firstDays(at *attendance) {
	// A mark before the first day, which the check has named: it becomes the first day.
	for one, least := range at.least {
		if c.mend == nil {
			break
		}
		if old, ok := at.first[one]; ok {
			c.mend.rebuild(removingFirst(one, old))
		}
		c.mend.rebuild(addingFirst(one, least))
		if at.hasArchived[one.r] {
			c.mend.guessed++
		}
		at.first[one], at.met[one] = least, true
	}

	// First days without a mark here.
	unmet := make(map[dayID]bool)
	for one, day := range at.first {
		if at.met[one] || c.lost[dayID{one.kind, day}] {
			continue
		}
		k := firstKey(one.r.part(), one.kind, day, uint8(one.r.number()>>16))
		switch {
		case at.hasArchived[one.r]:
			unmet[dayID{one.kind, day}] = true
		case c.mend != nil && c.mend.lost.has(hasArchivedKey(one.r.part(), uint8(one.r.number()>>16))):
			c.mend.rebuild(func(b *pebble.Batch) error {
				return b.Merge(hasArchivedKey(one.r.part(), uint8(one.r.number()>>16)), dayset.AppendAdd(nil, []uint16{uint16(one.r.number())}), nil)
			})
			unmet[dayID{one.kind, day}] = true
			c.report.fault("key %x: who has archived marks is lost", k)
		default:
			// The mark is lost, and only the first day says that there was one.
			c.derived(k, setting(lostKey(dayID{one.kind, day}), nil), "number %d was not there on their first day", one.r.number())
		}
	}

	// The archive must have their days, so these must be noted as offloaded.
	for id := range unmet {
		if !c.has(offloadedKey(id)) {
			c.derived(offloadedKey(id), setting(offloadedKey(id), nil), "first days of day %d of kind number %d are in the archive, and the day is not", id.day, id.kind)
		}
	}
}

// offloadedOfKey reads the kind and the day that follow the table in a key.
func offloadedOfKey(k []byte) dayID { return dayID{k[1], int32(be32(k[2:]))} }

// archival checks the other records about days and the archive.
func (c *checker) archival() {
	c.sets(tabDirty, "a dirty map", func(k []byte, _ *roaring.Bitmap) {
		c.kind(k, k[2], "dirty maps")
		if m := rollcall.Month(dayOfKey(k).day); !m.Valid() {
			c.fault(k, "dirty maps of %d, which is no month", m)
		}
	})
	c.table(tabOffloaded, func(k, v []byte) {
		c.kind(k, k[1], "an offloaded day")
		if len(v) != 0 {
			c.derived(k, setting(slices.Clone(k), nil), "has a value, and needs none")
		}
	})
	c.table(tabFigures, func(k, v []byte) {
		if k[1] != allKinds {
			c.kind(k, k[1], "figures")
		}
		f, err := decodeFigures(v)
		if err == nil && (f.day > f.week || f.week > slices.Max(f.months[:2])) {
			err = errDamaged
		}
		if err != nil {
			c.derived(k, removing(k), "figures cannot be read: %v", cmp.Or(err, errDamaged))
		}
	})
}

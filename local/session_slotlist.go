package local

import "github.com/rollcall/rollcall/internal/column"

// slotList threads slots into doubly linked lists, one for each owner: the
// sessions of an address. Links are slot+1; 0 ends a list. The lists of users are
// userSessions.
type slotList struct {
	head column.Column[uint32] // by owner
	next column.Column[uint32] // by slot
	prev column.Column[uint32] // by slot
}

func (c *slotList) add(owner, slot uint32) {
	first := c.head.Get(owner)
	c.next.Set(slot, first)
	c.prev.Set(slot, 0)
	if first != 0 {
		c.prev.Set(first-1, slot+1)
	}
	c.head.Set(owner, slot+1)
}

func (c *slotList) remove(owner, slot uint32) {
	next, prev := c.next.Get(slot), c.prev.Get(slot)
	if prev != 0 {
		c.next.Set(prev-1, next)
	} else {
		c.head.Set(owner, next)
	}
	if next != 0 {
		c.prev.Set(next-1, prev)
	}
	c.next.Set(slot, 0)
	c.prev.Set(slot, 0)
}

// each calls fn for every slot of an owner, the newest first, until fn returns
// false. fn may remove the slot it is given.
func (c *slotList) each(owner uint32, fn func(slot uint32) bool) {
	for link := c.head.Get(owner); link != 0; {
		slot := link - 1
		link = c.next.Get(slot)
		if !fn(slot) {
			return
		}
	}
}

func (c *slotList) bytes() int {
	return c.head.Bytes() + c.next.Bytes() + c.prev.Bytes()
}

package local

import (
	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/column"
)

// userSessions leads from users to their sessions: the slots of a user are threaded into a list.
// Of many users few have sessions, and most of those have one. So there is no column by user, as
// a slotList has it: an index leads from a user to the first slot of the list. One less than the
// length of the list stands where the link back would, in the first slot.
type userSessions struct {
	first slotIndex              // by user
	user  *column.Column[uint32] // by slot: the user of a session
	next  column.Column[uint32]  // by slot: link to the next one, slot+1; 0 ends the list
	prev  column.Column[uint32]  // by slot: link back; in the first slot, how many follow
}

func (u *userSessions) init(user *column.Column[uint32]) {
	u.user = user
	u.first.hash = func(slot uint32) uint64 { return rollcall.HashNumber(uint64(user.Get(slot))) }
}

func (u *userSessions) firstOf(user uint32) (slot uint32, ok bool) {
	return u.first.find(rollcall.HashNumber(uint64(user)), func(slot uint32) bool { return u.user.Get(slot) == user })
}

// has reports whether a user has sessions.
func (u *userSessions) has(user uint32) bool {
	_, ok := u.firstOf(user)
	return ok
}

// count returns how many sessions a user has.
func (u *userSessions) count(user uint32) uint32 {
	first, ok := u.firstOf(user)
	if !ok {
		return 0
	}
	return u.prev.Get(first) + 1
}

// add puts a slot at the front of its user's list. The column must have the user.
func (u *userSessions) add(slot uint32) {
	first, ok := u.firstOf(u.user.Get(slot))
	if !ok {
		u.first.add(slot)
		return
	}
	u.next.Set(slot, first+1)
	u.prev.Set(slot, u.prev.Get(first)+1)
	u.prev.Set(first, slot+1)
	u.first.replace(first, slot)
}

// remove takes a slot out of its user's list. The column must still have the user.
func (u *userSessions) remove(slot uint32) {
	first, ok := u.firstOf(u.user.Get(slot))
	if !ok {
		return
	}
	next, prev := u.next.Get(slot), u.prev.Get(slot)
	switch {
	case slot != first:
		u.prev.Set(first, u.prev.Get(first)-1)
		u.next.Set(prev-1, next)
		if next != 0 {
			u.prev.Set(next-1, prev)
		}
	case next != 0:
		u.prev.Set(next-1, prev-1)
		u.first.replace(slot, next-1)
	default:
		u.first.remove(slot)
	}
	u.next.Set(slot, 0)
	u.prev.Set(slot, 0)
}

// each calls fn for every slot of a user, the newest first, until fn returns false. fn may remove
// the slot it is given.
func (u *userSessions) each(user uint32, fn func(slot uint32) bool) {
	first, ok := u.firstOf(user)
	if !ok {
		return
	}
	for link := first + 1; link != 0; {
		slot := link - 1
		link = u.next.Get(slot)
		if !fn(slot) {
			return
		}
	}
}

func (u *userSessions) bytes() int { return u.first.bytes() + u.next.Bytes() + u.prev.Bytes() }

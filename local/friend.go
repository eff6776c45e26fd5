package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// changeFriends changes a user's list in one atomic step. It locks, in order, the
// partitions of the user and of all friends named: each gives its users numbers and counts
// who names them. If other friends may leave the list, it locks all partitions, as theirs
// are not known before.
func (e *Engine) changeFriends(at time.Time, user string, friends []string, othersLeave bool, change func(refs []ref, list []edge, now int64) ([]edge, error)) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	locked := e.parts
	if !othersLeave {
		locked = e.partitionsOf(append(slices.Clone(friends), user))
	}
	for _, p := range locked {
		p.mu.Lock()
	}
	p := e.partitionOf(user)
	tx := p.newTx()
	err = e.changeFriendList(tx, p.advance(now), user, friends, change)
	if err != nil {
		tx.freeNewNumbers()
	}
	for _, p := range locked {
		p.mu.Unlock()
	}
	if err != nil {
		return tx.abort(err)
	}
	return tx.wait()
}

// partitionsOf returns the partitions of users, in order, each once.
func (e *Engine) partitionsOf(users []string) []*partition {
	var in []*partition
	for _, u := range users {
		in = append(in, e.partitionOf(u))
	}
	slices.SortFunc(in, func(a, b *partition) int { return cmp.Compare(a.index, b.index) })
	return slices.Compact(in)
}

// changeFriendList is changeFriends with the partitions locked. change gets the list and
// returns the new one.
func (e *Engine) changeFriendList(tx *tx, now int64, user string, friends []string, change func([]ref, []edge, int64) ([]edge, error)) error {
	p := tx.p
	n, err := tx.ensureNumber(user)
	if err != nil {
		return err
	}
	refs := make([]ref, len(friends))
	for i, f := range friends {
		fp := e.partitionOf(f)
		fn, err := tx.ensureNumberIn(fp, f)
		if err != nil {
			return err
		}
		refs[i] = fp.ref(fn)
	}

	// The new list, and in the batch what differs from the old one.
	old := p.friends.get(n)
	list, err := change(refs, slices.Clone(old), now)
	if err != nil {
		return err
	}
	added, removed, err := diffEdges(tx.batch, p.ref(n), old, list)
	if err != nil {
		return err
	}
	if err := tx.apply(); err != nil {
		return err
	}

	p.idStored(n)
	for _, r := range refs {
		e.parts[r.part()].idStored(r.number())
	}
	p.friends.set(n, list)
	for _, r := range added {
		e.countFriendRef(r, 1)
	}
	for _, r := range removed {
		e.countFriendRef(r, ^uint32(0))
	}
	return nil
}

// countFriendRef changes how many users name a user as friend.
func (e *Engine) countFriendRef(r ref, by uint32) {
	uses := &e.parts[r.part()].friendRefs
	uses.Set(r.number(), uses.Get(r.number())+by)
}

// diffEdges puts the difference of two lists into a batch, in both directions, and returns
// who was added and who was removed.
func diffEdges(b *pebble.Batch, user ref, from, to []edge) (added, removed []ref, err error) {
	old := make(map[ref]int64, len(from))
	for _, e := range from {
		old[e.friend] = e.since
	}

	// Friends who were not in the old list, or have another time of friendship.
	for _, e := range to {
		since, had := old[e.friend]
		delete(old, e.friend)
		if had && since == e.since {
			continue
		}
		v := binary.BigEndian.AppendUint64(nil, uint64(e.since))
		if err := b.Set(friendKey(user.part(), user.number(), e.friend), v, nil); err != nil {
			return nil, nil, err
		}
		if !had {
			added = append(added, e.friend)
			if err := b.Set(namedByKey(e.friend, user), nil, nil); err != nil {
				return nil, nil, err
			}
		}
	}

	// What is left of the old list is not in the new one.
	for r := range old {
		removed = append(removed, r)
		if err := b.Delete(friendKey(user.part(), user.number(), r), nil); err != nil {
			return nil, nil, err
		}
		if err := b.Delete(namedByKey(r, user), nil); err != nil {
			return nil, nil, err
		}
	}
	return added, removed, nil
}

func namesOf(friends []rollcall.Friend) []string {
	out := make([]string, len(friends))
	for i, f := range friends {
		out[i] = f.User
	}
	return out
}

// AddFriends implements [rollcall.Friends].
func (e *Engine) AddFriends(_ context.Context, at time.Time, user string, friends []rollcall.Friend) error {
	return e.changeFriends(at, user, namesOf(friends), false, func(refs []ref, list []edge, now int64) ([]edge, error) {
		return mergeFriends(list, refs, friends, now)
	})
}

// mergeFriends adds friends to a list. A friend who is there already gets the new time of
// friendship, if there is one.
func mergeFriends(list []edge, refs []ref, friends []rollcall.Friend, now int64) ([]edge, error) {
	place := make(map[ref]int, len(list)+len(refs))
	for i, e := range list {
		place[e.friend] = i
	}
	for i, r := range refs {
		since := enginekit.Milliseconds(friends[i].Since)
		j, had := place[r]
		switch {
		case had && since != 0:
			list[j].since = since
		case !had:
			place[r] = len(list)
			list = append(list, edge{r, cmp.Or(since, now)})
		}
	}
	if len(list) > rollcall.MaxFriends {
		return nil, rollcall.Invalid("friends", "a user may have %d friends, this would make %d", rollcall.MaxFriends, len(list))
	}
	return list, nil
}

// ReplaceFriends implements [rollcall.Friends].
func (e *Engine) ReplaceFriends(_ context.Context, at time.Time, user string, friends []rollcall.Friend) error {
	return e.changeFriends(at, user, namesOf(friends), true, func(refs []ref, list []edge, now int64) ([]edge, error) {
		wanted := make(map[ref]bool, len(refs))
		for _, r := range refs {
			wanted[r] = true
		}
		stay := slices.DeleteFunc(list, func(e edge) bool { return !wanted[e.friend] })
		return mergeFriends(stay, refs, friends, now)
	})
}

// RemoveFriend implements [rollcall.Friends].
func (e *Engine) RemoveFriend(_ context.Context, at time.Time, user, friend string) (bool, error) {
	if !e.hasNumber(user) || !e.hasNumber(friend) {
		return false, e.readable()
	}
	removed := false
	err := e.changeFriends(at, user, []string{friend}, false, func(refs []ref, list []edge, _ int64) ([]edge, error) {
		out := slices.DeleteFunc(list, func(e edge) bool { return e.friend == refs[0] })
		removed = len(out) < len(list)
		return out, nil
	})
	return removed, err
}

// FriendRoom implements [rollcall.Friends].
func (e *Engine) FriendRoom(_ context.Context, user string, friends []string) (standing []bool, room int, err error) {
	if err := e.readable(); err != nil {
		return nil, 0, err
	}
	locked := e.partitionsOf(append(slices.Clone(friends), user))
	for _, p := range locked {
		p.mu.RLock()
	}
	defer func() {
		for _, p := range locked {
			p.mu.RUnlock()
		}
	}()
	standing, room = make([]bool, len(friends)), rollcall.MaxFriends
	p := e.partitionOf(user)
	n, ok := p.find(user)
	if !ok {
		return standing, room, nil
	}
	list := p.friends.get(n)
	have := make(map[ref]bool, len(list))
	for _, x := range list {
		have[x.friend] = true
	}
	for i, f := range friends {
		fp := e.partitionOf(f)
		fn, ok := fp.find(f)
		standing[i] = ok && have[fp.ref(fn)]
	}
	return standing, room - len(list), nil
}

// hasNumber reports whether a user has a number.
func (e *Engine) hasNumber(user string) bool {
	p := e.partitionOf(user)
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, ok := p.find(user)
	return ok
}

package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Edges and reverse edges.
//
// The problem: an edge is kept twice. It stands in the list of the user it goes from, which
// decides, and as a reverse edge in the partition of the friend: an erasure of the friend
// finds it there. No script sees both partitions.
//
// The invariant: where there is an edge there is its reverse edge. Where there is a reverse
// edge without an edge, x:<user> has a note of it.
//
//	adding    1 x:<user> notes that a reverse edge may stand without its edge
//	            (friend_note_change.lua); the step has a stamp
//	          2 the reverse edge is written, with the stamp (friend_reverse_add.lua)
//	          3 the edge is written, unless reverse edges of the user were given up
//	            since the stamp: then all begins anew (friend_add.lua, friend_swap.lua)
//	removing  1 the edge goes, and x:<user> notes the reverse edge (friend_remove.lua).
//	            If a whole list is replaced, edges go as others are added (friend_swap.lua)
//	pruning   1 later, the reverse edges of x:<user> without an edge are given up, and
//	            notes of edges that stand are forgotten: the step has a stamp too, the
//	            fence (friend_find_leftover.lua)
//	          2 reverse edges older than the fence are removed (friend_reverse_remove.lua)
//	          3 x:<user> forgets them (friend_forget_leftover.lua)
//
// If adding and pruning meet, one of two things holds. Either the fence is later than the
// stamp of adding: then step 3 of adding is refused. Or the stamp is later than the fence:
// then step 2 of pruning leaves the reverse edge alone. An erasure of a friend prunes at
// once.
//
// | the server dies after | what the next one finds |
// | --- | --- |
// | adding 1, 2 | no edge, perhaps a reverse edge, and a note. Pruning removes both |
// | adding 3 | all is done |
// | removing 1 | no edge, a reverse edge and a note. Pruning removes both |
// | pruning 1, 2 | a note whose reverse edge may be gone. The next pruning does all again |
//
// The next tick, or the erasure of the user, finds the notes.

// Steps of changes to lists of friends.
const (
	edgeStep  = 250  // friends that one script notes, adds or removes
	readStep  = 1000 // friends that one script reads
	edgeTries = 1000 // attempts at a change that others get in the way of
)

// AddFriends implements [rollcall.Friends].
func (e *Engine) AddFriends(ctx context.Context, at time.Time, user string, friends []rollcall.Friend) error {
	friends = onceEach(friends)
	if len(friends) > edgeStep {
		return e.rewriteFriends(ctx, at, user, friends, false)
	}
	return e.untilUnchanged(ctx, func() (bool, error) { return e.addFriends(ctx, at.UnixMilli(), user, friends) })
}

// ReplaceFriends implements [rollcall.Friends].
func (e *Engine) ReplaceFriends(ctx context.Context, at time.Time, user string, friends []rollcall.Friend) error {
	return e.rewriteFriends(ctx, at, user, onceEach(friends), true)
}

// onceEach returns friends without duplicates: of two entries for a user the later one stays.
func onceEach(friends []rollcall.Friend) []rollcall.Friend {
	last := make(map[string]int, len(friends))
	for i, f := range friends {
		last[f.User] = i
	}
	if len(last) == len(friends) {
		return friends
	}
	var out []rollcall.Friend
	for i, f := range friends {
		if last[f.User] == i {
			out = append(out, f)
		}
	}
	return out
}

// untilUnchanged repeats a change until nobody changed the same list meanwhile.
func (e *Engine) untilUnchanged(ctx context.Context, change func() (again bool, err error)) error {
	for try := range edgeTries {
		again, err := change()
		if err != nil || !again {
			return err
		}
		if err := pause(ctx, backoff(min(try, 4))); err != nil {
			return unavailable(err)
		}
	}
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the list of friends is being changed all the time"}
}

// addFriends is one attempt to add a few friends.
func (e *Engine) addFriends(ctx context.Context, now int64, user string, friends []rollcall.Friend) (again bool, err error) {
	if len(friends) == 0 {
		return false, e.checkOpen()
	}
	names := make([]string, len(friends))
	for i, f := range friends {
		names[i] = f.User
	}

	// Reverse edges first: noted, then written.
	stamp, strangers, err := e.noteReverseEdges(ctx, now, user, names, fmt.Sprint(rollcall.MaxFriends))
	if err != nil {
		return false, err
	}
	if len(strangers) == 0 {
		stamp = ""
	}
	if err := e.addReverseEdges(ctx, now, user, stamp, strangers); err != nil {
		return false, err
	}

	// Then the edges.
	args := []string{user, stamp, fmt.Sprint(rollcall.MaxFriends)}
	for _, f := range friends {
		since := ""
		if ms := enginekit.Milliseconds(f.Since); ms != 0 {
			since = fmt.Sprint(ms)
		}
		args = append(args, f.User, since)
	}
	return e.readListChange(e.one(ctx, now, partCall(e.partOf(user), &e.scripts.friendAdd, args...)))
}

// readListChange reads the answer of friend_add.lua and friend_swap.lua.
func (e *Engine) readListChange(msg rueidis.RedisMessage, err error) (again bool, _ error) {
	if err != nil {
		return false, err
	}
	reply, err := msg.ToArray()
	if err != nil || len(reply) == 0 {
		return false, damaged("an answer about friends")
	}
	status, _ := reply[0].ToString()
	if status == "limit" && len(reply) == 2 {
		n, _ := reply[1].AsInt64()
		return false, tooManyFriends(int(n))
	}
	return status == "again", nil
}

func tooManyFriends(n int) error {
	return rollcall.Invalid("friends", "a user may have %d friends, this would make %d", rollcall.MaxFriends, n)
}

// noteReverseEdges notes reverse edges that are about to be written. It returns the stamp to
// write them with, and the friends that were noted. limit is how many friends the user may
// have; "" notes all of them.
func (e *Engine) noteReverseEdges(ctx context.Context, now int64, user string, friends []string, limit string) (stamp string, noted []string, err error) {
	for some := range slices.Chunk(friends, edgeStep) {
		msg, err := e.one(ctx, now, partCall(e.partOf(user), &e.scripts.friendNoteChange, append([]string{user, stamp, limit}, some...)...))
		if err != nil {
			return "", nil, err
		}
		reply, err := msg.ToArray()
		if err != nil || len(reply) < 2 {
			return "", nil, damaged("an answer about friends")
		}
		if status, _ := reply[0].ToString(); status == "limit" {
			n, _ := reply[1].AsInt64()
			return "", nil, tooManyFriends(int(n))
		}
		stamp, _ = reply[1].ToString()
		for _, m := range reply[2:] {
			name, _ := m.ToString()
			noted = append(noted, name)
		}
	}
	return stamp, noted, nil
}

// addReverseEdges writes the reverse edges of friends.
func (e *Engine) addReverseEdges(ctx context.Context, now int64, user, stamp string, friends []string) error {
	_, err := e.do(ctx, now, e.reverseEdgeCalls(&e.scripts.friendReverseAdd, user, stamp, friends)...)
	return err
}

// reverseEdgeCalls returns the calls of a script on the reverse edges of a user.
func (e *Engine) reverseEdgeCalls(s *script, user, stamp string, friends []string) []call {
	var calls []call
	parts, places := e.byPart(len(friends), func(i int) int { return e.partOf(friends[i]) })
	for j, p := range parts {
		for some := range slices.Chunk(places[j], edgeStep) {
			var args []string
			for _, i := range some {
				args = append(args, friends[i], user, stamp)
			}
			calls = append(calls, partCall(p, s, args...))
		}
	}
	return calls
}

// rewriteFriends replaces a list as a whole. If others leave, the new list has the given
// friends alone; otherwise it has them besides those there were.
func (e *Engine) rewriteFriends(ctx context.Context, at time.Time, user string, friends []rollcall.Friend, othersLeave bool) error {
	if len(friends) > rollcall.MaxFriends {
		return tooManyFriends(len(friends))
	}
	return e.untilUnchanged(ctx, func() (bool, error) {
		before, err := e.friendsOf(ctx, at.UnixMilli(), user)
		if err != nil {
			return false, err
		}
		return e.rewrite(ctx, at.UnixMilli(), user, before, before.with(friends, othersLeave))
	})
}

// rewrite is one attempt to replace a list.
func (e *Engine) rewrite(ctx context.Context, now int64, user string, before friendList, after []rollcall.Friend) (again bool, err error) {
	if len(after) > rollcall.MaxFriends {
		return false, tooManyFriends(len(after))
	}
	differ, gained := before.differences(after)
	if len(differ) == 0 && slices.Equal(before.friends, after) {
		return false, nil
	}

	// Reverse edges first: of those who come, and notes of those who leave.
	stamp, _, err := e.noteReverseEdges(ctx, now, user, differ, "")
	if err != nil {
		return false, err
	}
	if stamp == "" {
		stamp = maxStamp
	}
	if err := e.addReverseEdges(ctx, now, user, stamp, gained); err != nil {
		return false, err
	}

	// The new list is written beside the old one, and takes its place at once.
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	name := hex.EncodeToString(nonce[:])
	p := e.partOf(user)
	var calls []call
	for some := range slices.Chunk(after, edgeStep) {
		args := []string{name}
		for _, f := range some {
			args = append(args, fmt.Sprint(enginekit.Milliseconds(f.Since)), f.User)
		}
		calls = append(calls, partCall(p, &e.scripts.friendStage, args...))
	}
	if _, err := e.do(ctx, now, calls...); err != nil {
		return false, err
	}
	return e.readListChange(e.one(ctx, now, partCall(p, &e.scripts.friendSwap, user, name, fmt.Sprint(len(after)), before.stamp, stamp)))
}

// maxStamp is later than all stamps. A change that writes no reverse edge uses it.
const maxStamp = "9007199254740991"

// friendList is a user's list of friends as it was read.
type friendList struct {
	friends []rollcall.Friend // oldest friendship first
	stamp   string            // of its last change
	now     int64             // the time of the partition, ms
}

// with returns the new list. A friend has the time that is given, else the one that stood,
// else now.
func (l *friendList) with(friends []rollcall.Friend, othersLeave bool) []rollcall.Friend {
	since := make(map[string]time.Time, len(l.friends))
	for _, f := range l.friends {
		since[f.User] = f.Since
	}
	var out []rollcall.Friend
	named := make(map[string]bool, len(friends))
	for _, f := range friends {
		stood, ok := since[f.User]
		switch {
		case enginekit.Milliseconds(f.Since) != 0:
		case ok:
			f.Since = stood
		default:
			f.Since = enginekit.TimeOrZero(l.now)
		}
		named[f.User] = true
		out = append(out, f)
	}
	if !othersLeave {
		for _, f := range l.friends {
			if !named[f.User] {
				out = append(out, f)
			}
		}
	}
	return out
}

// differences returns the friends that come or leave with a new list, and those that come.
func (l *friendList) differences(after []rollcall.Friend) (differ, gained []string) {
	stood := make(map[string]bool, len(l.friends))
	for _, f := range l.friends {
		stood[f.User] = true
	}
	for _, f := range after {
		if !stood[f.User] {
			gained = append(gained, f.User)
		}
		delete(stood, f.User)
	}
	return slices.AppendSeq(slices.Clone(gained), maps.Keys(stood)), gained
}

// RemoveFriend implements [rollcall.Friends].
func (e *Engine) RemoveFriend(ctx context.Context, at time.Time, user, friend string) (bool, error) {
	msg, err := e.one(ctx, at.UnixMilli(), partCall(e.partOf(user), &e.scripts.friendRemove, "", user, friend))
	if err != nil {
		return false, err
	}
	reply, err := msg.ToArray()
	if err != nil || len(reply) < 2 {
		return false, damaged("an answer about friends")
	}
	n, _ := reply[1].AsInt64()
	return n == 1, nil
}

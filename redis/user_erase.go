package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// An erasure in steps.
//
// The problem: an erasure takes many scripts, in several partitions, and its server may die
// between any two. A login with the same id makes a new user, of whom nothing may go.
//
// The invariant: as long as anything of the user is left, a note of the erasure stands in
// the user's partition. Until the user is removed, no login of the id succeeds.
//
//	0 the note is written (user_note_erasure.lua)
//	1 edges to the user go from the lists of others, then the user's own list goes
//	  (friend_list_namers.lua, friend_remove.lua, friend_remove_all.lua)
//	2 sessions that ended are forgotten. If more than endStep live, all end at once by a
//	  cutoff. Then the user, with all that is left, goes in one atomic step
//	  (user_erase.lua). The note says from here on which events may still name them
//	3 these events are redacted, and with the last of them the note goes
//	  (event_redact.lua)
//
// Anybody may go on with a note, also several servers at once: the one that was asked; one
// that is asked to erase the same user, or to start a session of theirs; and the upkeep
// (user_erase_upkeep.go), once nobody has gone on for some seconds. The scripts of steps 1
// and 2 look at the note before they remove anything, so none removes anything of a user
// who came after. Lists of friends lie in other partitions than the note: see
// dropFromFriendLists.
//
// | the server dies after | what the next one finds |
// | --- | --- |
// | step 0, or a part of step 1 | the note and the user, who is online as before, with fewer friends. It begins with step 1 |
// | a part of step 2 | the note and the user, without some ended sessions, or with all ended. It goes on with step 1, which has nothing to do |
// | step 2, or a part of step 3 | the longer note and no user. It goes on with the events from the places in the note; a login succeeds |

// Steps of an erasure.
const (
	redactStep = 250 // events one script looks for the user in
	numberStep = 250 // days and months one script takes marks out of
)

// noteLen is the length of the note of an erasure whose user is still there; see
// user_erasure.lua.
const noteLen = 32

// erasure is one that has been noted.
type erasure struct {
	e            *Engine
	now          int64
	part         int
	user         string
	id           string
	userRemoved  bool        // the user has been removed: only events are left
	untilNoMarks bool        // it is over for whoever asked when no mark is left either
	enough       func() bool // says that somebody else is to go on; nil for nobody
}

// errPaused is what a step returns when a later tick is to go on.
var errPaused = errors.New("redis: the erasure is gone on with later")

// Erase implements [rollcall.Users].
func (e *Engine) Erase(ctx context.Context, at time.Time, user string, key rollcall.BanKey) error {
	for {
		x, err := e.noteErasure(ctx, at.UnixMilli(), user, key)
		if err != nil {
			return err
		}
		x.untilNoMarks = true
		if err := x.finish(ctx); err != nil || !x.userRemoved {
			return err
		}
		// What was there to join had the user gone already: it was another one's.
	}
}

// noteErasure notes an erasure, or joins the one that is noted already.
func (e *Engine) noteErasure(ctx context.Context, now int64, user string, key rollcall.BanKey) (*erasure, error) {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	msg, err := e.oneConfirmed(ctx, now, partCall(e.partOf(user), &e.scripts.userNoteErasure, user, string(key[:]), string(id[:])))
	if err != nil {
		return nil, err
	}
	note, _ := msg.ToString()
	return e.readErasure(now, user, note)
}

// readErasure reads the note of an erasure.
func (e *Engine) readErasure(now int64, user, note string) (*erasure, error) {
	if len(note) < noteLen {
		return nil, damaged("the note of an erasure")
	}
	return &erasure{e: e, now: now, part: e.partOf(user), user: user, id: note[:16], userRemoved: len(note) > noteLen}, nil
}

// finish goes on with an erasure until it is over. Others may do so at the same time.
func (x *erasure) finish(ctx context.Context) error {
	if err := x.remove(ctx); err != nil {
		return err
	}
	return x.redact(ctx)
}

// remove goes on with steps 1 and 2, until the user is removed.
func (x *erasure) remove(ctx context.Context) error {
	if x.userRemoved {
		return nil
	}
	defer x.e.news.wake()
	for _, step := range []func(context.Context) error{x.dropFromFriendLists, x.removeAllFriends, x.forget} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// eraseAhead goes on with an erasure that a login has met, until the user is removed.
func (e *Engine) eraseAhead(ctx context.Context, now int64, user string, reply []rueidis.RedisMessage) error {
	if len(reply) != 1 {
		return damaged("the answer to a login")
	}
	note, _ := reply[0].ToString()
	x, err := e.readErasure(now, user, note)
	if err != nil {
		return err
	}
	return x.remove(ctx)
}

// in returns a call of a script of the erasure.
func (x *erasure) in(s *script, step int) call {
	return partCall(x.part, s, x.user, x.id, strconv.Itoa(step))
}

// pause returns errPaused if a later tick is to go on.
func (x *erasure) pause() error {
	if x.enough != nil && x.enough() {
		return errPaused
	}
	return nil
}

// forget removes what the user's partition holds: sessions that ended in as many steps as
// it takes, then the rest in one.
func (x *erasure) forget(ctx context.Context) error {
	for {
		msg, err := x.e.oneConfirmed(ctx, x.now, x.in(&x.e.scripts.userErase, endStep))
		if err != nil {
			return err
		}
		switch status, _ := msg.ToString(); status {
		case "ok":
			return nil
		case "marks", "past":
			return x.freeNumbers(ctx)
		case "more":
		case "friends":
			if err := x.removeAllFriends(ctx); err != nil {
				return err
			}
		case "cutoff":
			if _, _, err := x.e.drainCutoff(ctx, x.now, x.part, "", x.user); err != nil {
				return err
			}
		default:
			return damaged("the answer to an erasure")
		}
		if err := x.pause(); err != nil {
			return err
		}
	}
}

// freeNumbers removes the marks of erased users from the partition, if the caller waits for
// that. Otherwise the sweep does.
func (x *erasure) freeNumbers(ctx context.Context) error {
	for x.untilNoMarks {
		msg, err := x.e.one(ctx, x.now, partCall(x.part, &x.e.scripts.userFreeNumbers, strconv.Itoa(numberStep)))
		if err != nil {
			return err
		}
		left, err := msg.AsInt64()
		if err != nil {
			return damaged("a count")
		}
		if left == 0 {
			return nil
		}
	}
	return nil
}

// dropFromFriendLists removes the user from every list of friends.
//
// The lists lie in other partitions than the note, so no script sees both. First each of these
// partitions gives a stamp, then the note is read, and then only lists are changed that have
// not changed since the stamp. So the edges that go stood when the note did: before the user
// was gone. A list that has changed comes again, after a later stamp.
func (x *erasure) dropFromFriendLists(ctx context.Context) error {
	stamps := make(map[int]string)
	for {
		msg, err := x.e.one(ctx, x.now, x.in(&x.e.scripts.friendListNamers, edgeStep))
		if err != nil {
			return err
		}
		names, err := msg.AsStrSlice()
		if err != nil {
			return damaged("who names a friend")
		}
		if len(names) == 0 {
			return nil
		}
		fresh, err := x.stamp(ctx, names, stamps)
		if err == nil && !fresh { // else the note is to be looked at again
			err = x.dropFromListsOf(ctx, names, stamps)
		}
		if err == nil {
			err = x.pause()
		}
		if err != nil {
			return err
		}
	}
}

// stamp takes a stamp of each partition of some users that has given none yet. fresh says
// whether there was any.
func (x *erasure) stamp(ctx context.Context, users []string, stamps map[int]string) (fresh bool, err error) {
	var calls []call
	asked := make(map[int]bool)
	for _, user := range users {
		if p := x.e.partOf(user); stamps[p] == "" && !asked[p] {
			asked[p], calls = true, append(calls, partCall(p, &x.e.scripts.friendRemove, ""))
		}
	}
	messages, err := x.e.do(ctx, x.now, calls...)
	if err != nil {
		return false, err
	}
	for i, msg := range messages {
		reply, err := msg.ToArray()
		if err != nil || len(reply) < 2 {
			return false, damaged("an answer about friends")
		}
		stamps[calls[i].part], _ = reply[0].ToString()
	}
	return len(calls) > 0, nil
}

// dropFromListsOf removes the user from the lists of some others: the edges first, then the
// reverse edges. If the server dies in between, the reverse edges still say where to go on.
func (x *erasure) dropFromListsOf(ctx context.Context, names []string, stamps map[int]string) error {
	e := x.e

	// The edges, in the partitions of those who name the user.
	parts, places := e.byPart(len(names), func(i int) int { return e.partOf(names[i]) })
	calls := make([]call, len(parts))
	for j, p := range parts {
		args := []string{stamps[p]}
		for _, i := range places[j] {
			args = append(args, names[i], x.user)
		}
		calls[j] = partCall(p, &e.scripts.friendRemove, args...)
	}
	messages, err := e.do(ctx, x.now, calls...)
	if err != nil {
		return err
	}

	// Then the reverse edges, of those lists that had not changed.
	var removed []string
	for j, msg := range messages {
		reply, err := msg.ToArray()
		if err != nil || len(reply) < 2 {
			return damaged("an answer about friends")
		}
		stamp, _ := reply[0].ToString()
		changed := make(map[string]bool)
		for _, m := range reply[2:] {
			user, _ := m.ToString()
			changed[user] = true
			delete(stamps, parts[j])
		}
		for _, i := range places[j] {
			if !changed[names[i]] {
				removed = append(removed, x.user, names[i], stamp)
			}
		}
	}
	if len(removed) == 0 {
		return nil
	}
	_, err = e.one(ctx, x.now, partCall(x.part, &e.scripts.friendReverseRemove, removed...))
	return err
}

// removeAllFriends empties the user's own list, and removes the reverse edges that belonged to
// it.
func (x *erasure) removeAllFriends(ctx context.Context) error {
	for {
		msg, err := x.e.one(ctx, x.now, x.in(&x.e.scripts.friendRemoveAll, edgeStep))
		if err != nil {
			return err
		}
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply) == 0 {
			return damaged("an answer about friends")
		}
		if len(reply) == 1 {
			return nil
		}
		if err := x.e.prune(ctx, x.now, x.user, reply[0], reply[1:]); err != nil {
			return err
		}
		if err := x.pause(); err != nil {
			return err
		}
	}
}

// redact is step 3: it removes the user from the events that may name them.
func (x *erasure) redact(ctx context.Context) error {
	for {
		msg, err := x.e.one(ctx, x.now, x.in(&x.e.scripts.eventRedact, redactStep))
		if err != nil {
			return err
		}
		more, err := msg.AsInt64()
		if err != nil {
			return damaged("the answer to an erasure")
		}
		if more == 0 {
			return nil
		}
		if err := x.pause(); err != nil {
			return err
		}
	}
}

package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// Steps of an erasure.
const (
	redactStep = 250 // events one script looks for the user in
	numberStep = 250 // days and months one script takes marks out of
)

// Erase implements [rollcall.Users]. The user, with up to endStep live sessions, goes
// in one atomic step; more sessions end before it, all at once. The edges of those who
// name the user and the sessions that ended go before it too, the names in past events
// after it, all in bounded steps. An erasure that was cut short is finished by another
// one, and by nothing else.
func (e *Engine) Erase(ctx context.Context, at time.Time, user string, key rollcall.BanKey) error {
	if err := e.dropFromFriendLists(ctx, at, user); err != nil {
		return err
	}
	p := e.partOf(user)
	if err := e.forget(ctx, at.UnixMilli(), p, user, key); err != nil {
		return err
	}
	e.news.wake()
	for _, stream := range []string{"log", "pres"} {
		if err := e.redact(ctx, p, stream, user); err != nil {
			return err
		}
	}
	return nil
}

// forget removes what the user's partition holds: first sessions that ended, as
// many as it takes, then the rest in one step.
func (e *Engine) forget(ctx context.Context, now int64, part int, user string, key rollcall.BanKey) error {
	for {
		msg, err := e.confirmed(ctx, now, in(part, &e.scripts.userErase, user, string(key[:]), strconv.Itoa(endStep)))
		if err != nil {
			return err
		}
		switch status, _ := msg.ToString(); status {
		case "ok":
			return nil
		case "marks":
			return e.freeNumbers(ctx, now, part)
		case "more":
		case "cutoff":
			if _, _, err := e.drain(ctx, now, part, "", user); err != nil {
				return err
			}
		default:
			return damaged("the answer to an erasure")
		}
	}
}

// freeNumbers takes the marks of erased users out of a partition.
func (e *Engine) freeNumbers(ctx context.Context, now int64, part int) error {
	for left := int64(1); left > 0; {
		msg, err := e.one(ctx, now, in(part, &e.scripts.userFreeNumbers, strconv.Itoa(numberStep)))
		if err != nil {
			return err
		}
		if left, err = msg.AsInt64(); err != nil {
			return damaged("a count")
		}
	}
	return nil
}

// dropFromFriendLists removes the user from every list of friends, and empties their own.
func (e *Engine) dropFromFriendLists(ctx context.Context, at time.Time, user string) error {
	k := e.of(e.partOf(user), "r:"+user)
	for {
		msg, err := e.one(ctx, 0, plain(func() rueidis.Completed {
			return e.client.B().Zrange().Key(k).Min("0").Max(strconv.Itoa(edgeStep - 1)).Build()
		}))
		if err != nil {
			return err
		}
		names, err := msg.AsStrSlice()
		if err != nil {
			return damaged("who names a friend")
		}
		if len(names) == 0 {
			return e.removeAllFriends(ctx, at, user)
		}
		if err := e.dropFromListsOf(ctx, at, user, names); err != nil {
			return err
		}
	}
}

// dropFromListsOf removes a user from the lists of some, and the reverse edges with it.
// It begins with the edges: cut short, the reverse edges still say where to go on.
func (e *Engine) dropFromListsOf(ctx context.Context, at time.Time, user string, names []string) error {
	parts, places := e.byPart(len(names), func(i int) int { return e.partOf(names[i]) })
	calls := make([]call, len(parts))
	for j, p := range parts {
		args := []string{"0"}
		for _, i := range places[j] {
			args = append(args, names[i], user)
		}
		calls[j] = in(p, &e.scripts.friendRemove, args...)
	}
	messages, err := e.do(ctx, at.UnixMilli(), calls...)
	if err != nil {
		return err
	}
	var gone []string
	for j, msg := range messages {
		reply, err := msg.ToArray()
		if err != nil || len(reply) != 2 {
			return damaged("an answer about friends")
		}
		stamp, _ := reply[0].ToString()
		for _, i := range places[j] {
			gone = append(gone, user, names[i], stamp)
		}
	}
	_, err = e.one(ctx, at.UnixMilli(), in(e.partOf(user), &e.scripts.friendReverseRemove, gone...))
	return err
}

// removeAllFriends empties the list of a user, and removes what reverse edges there are of
// it.
func (e *Engine) removeAllFriends(ctx context.Context, at time.Time, user string) error {
	for {
		msg, err := e.one(ctx, at.UnixMilli(), in(e.partOf(user), &e.scripts.friendRemoveAll, user, strconv.Itoa(edgeStep)))
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
		if err := e.prune(ctx, at.UnixMilli(), user, reply[0], reply[1:]); err != nil {
			return err
		}
	}
}

// redact takes the user and the session out of the events of a stream.
func (e *Engine) redact(ctx context.Context, part int, stream, user string) error {
	for from := int64(0); ; {
		msg, err := e.one(ctx, 0, plain(func() rueidis.Completed {
			return e.client.B().Xrange().Key(e.of(part, stream)).Start(strconv.FormatInt(from, 10)).End("+").Count(redactStep).Build()
		}))
		if err != nil {
			return err
		}
		events, err := readStream(msg, part)
		if err != nil {
			return err
		}
		args := []string{stream}
		for i := range events {
			ev := &events[i]
			if ev.User == user {
				args = append(args, strconv.FormatInt(ev.place.at, 10), ev.redacted())
			}
			from = ev.place.at + 1
		}
		if len(args) > 1 {
			if _, err := e.one(ctx, 0, in(part, &e.scripts.eventRedact, args...)); err != nil {
				return err
			}
		}
		if len(events) < redactStep {
			return nil
		}
	}
}

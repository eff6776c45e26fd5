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
	unnameStep = 256
	redactStep = 1000
)

// Erase implements [rollcall.Users]. What the user's partition holds goes in one
// atomic step. The edges of those who name the user go before it, the names in
// past events after it, both in bounded steps; an erasure that was cut short is
// finished by another one.
func (e *Engine) Erase(ctx context.Context, at time.Time, user string, key rollcall.BanKey) error {
	if err := e.unname(ctx, at, user); err != nil {
		return err
	}
	p := e.partOf(user)
	if _, err := e.confirmed(ctx, at.UnixMilli(), in(p, &e.scripts.erase, user, string(key[:]))); err != nil {
		return err
	}
	e.news.ring()
	for _, stream := range []string{"log", "pres"} {
		if err := e.redact(ctx, p, stream, user); err != nil {
			return err
		}
	}
	return nil
}

// unname removes the user from every list of friends, and empties their own.
func (e *Engine) unname(ctx context.Context, at time.Time, user string) error {
	k := e.of(e.partOf(user), "r:"+user)
	for {
		msg, err := e.one(ctx, 0, plain(func() rueidis.Completed {
			return e.client.B().Srandmember().Key(k).Count(unnameStep).Build()
		}))
		if err != nil {
			return err
		}
		names, err := msg.AsStrSlice()
		if err != nil {
			return damaged("who names a friend")
		}
		if len(names) == 0 {
			return e.ReplaceFriends(ctx, at, user, nil)
		}
		calls := make([]call, 0, len(names)+1)
		for _, n := range names {
			calls = append(calls, in(e.partOf(n), &e.scripts.unfriend, n, user))
		}
		if _, err := e.do(ctx, at.UnixMilli(), calls...); err != nil {
			return err
		}
		if _, err := e.one(ctx, 0, plain(func() rueidis.Completed {
			return e.client.B().Srem().Key(k).Member(names...).Build()
		})); err != nil {
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
			if _, err := e.one(ctx, 0, in(part, &e.scripts.redact, args...)); err != nil {
				return err
			}
		}
		if len(events) < redactStep {
			return nil
		}
	}
}

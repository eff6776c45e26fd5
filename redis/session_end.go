package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// maxNamed bounds how many ended sessions an answer names.
const maxNamed = 100

// Steps of an end.
const (
	endStep = 16 // sessions that one script ends, so that none takes long
	banStep = 32 // bans that one script sets

	// endsAtOnce is how many such scripts are sent at once. Each may take some milliseconds,
	// and all other commands wait for them.
	endsAtOnce = 4
)

// partEnds is what a command ends in one partition.
type partEnds struct {
	ids  []string
	bans []rollcall.Ban
	user string // all of this user's that match
}

// End implements [rollcall.Sessions]. If a user has more sessions than one script ends,
// their end is noted at once and written step by step: see session_cutoff.lua.
func (e *Engine) End(ctx context.Context, at time.Time, c rollcall.EndCommand) (rollcall.EndResult, error) {
	// What ends in each partition.
	var res rollcall.EndResult
	byPart := make(map[int]*partEnds)
	into := func(p int) *partEnds {
		if byPart[p] == nil {
			byPart[p] = &partEnds{}
		}
		return byPart[p]
	}
	for _, id := range c.Sessions {
		l := into(e.home(id.Home()))
		l.ids = append(l.ids, idText(id))
	}
	for _, b := range c.Bans {
		l := into(e.partOf(b.User))
		l.bans = append(l.bans, b)
	}
	if c.User != "" {
		into(e.partOf(c.User)).user = c.User
	}
	// Carry it out a few scripts at a time. What failed keeps nothing else from its end.
	defer e.news.wake()
	var calls []call
	for p, l := range byPart {
		calls = append(calls, e.endCalls(p, l, &c)...)
	}
	var errs error
	for some := range slices.Chunk(calls, endsAtOnce) {
		if err := e.runEnds(ctx, at.UnixMilli(), some, &res); err != nil {
			errs = errors.Join(errs, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	return res, errs
}

// endCalls returns the calls that end sessions of one partition. A user's sessions and
// their ban are one step; sessions of many users take several.
func (e *Engine) endCalls(part int, l *partEnds, c *rollcall.EndCommand) []call {
	except := ""
	if !c.Except.IsZero() {
		except = idText(c.Except)
	}
	var out []call
	for l.user != "" || len(l.ids) > 0 || len(l.bans) > 0 {
		ids, bans := l.ids[:min(len(l.ids), endStep)], l.bans[:min(len(l.bans), banStep)]
		args := []string{string(c.Cause), c.Reason, c.Actor, l.user, c.Device, except, strconv.Itoa(endStep), strconv.Itoa(len(ids))}
		args = append(args, ids...)
		for _, b := range bans {
			args = append(args, b.User, string(b.Key[:]), packBan(b), b.Reason, b.Actor)
		}
		one := partCall(part, &e.scripts.sessionEnd, args...)
		e.nameRequest(&one)
		out = append(out, one)
		l.user, l.ids, l.bans = "", l.ids[len(ids):], l.bans[len(bans):]
	}
	return out
}

// runEnds carries out calls that end sessions. What was done counts, also if something
// else failed.
func (e *Engine) runEnds(ctx context.Context, now int64, calls []call, res *rollcall.EndResult) error {
	messages, errs := make([]rueidis.RedisMessage, len(calls)), error(nil)
	if e.opts.Wait == 0 {
		messages, errs = e.do(ctx, now, calls...)
	} else {
		for i, c := range calls {
			var err error
			messages[i], err = e.oneConfirmed(ctx, now, c)
			errs = errors.Join(errs, err)
		}
	}
	for i, msg := range messages {
		if !msg.IsArray() { // it was not answered
			continue
		}
		reply, err := msg.ToArray()
		if err != nil || len(reply) == 0 {
			return errors.Join(errs, damaged("the answer to an end"))
		}
		packed, _ := reply[0].ToString()
		if packed == "full" {
			errs = errors.Join(errs, &rollcall.Error{
				Code: rollcall.CodeUnavailable, Detail: "earlier ends of this user's sessions are still being written: try again in a moment",
			})
			continue
		}

		// Ends that were noted as cutoffs are written before the answer.
		ended := idsOf(packed)
		n := len(ended)
		if pending, _ := reply[1].AsInt64(); pending > 0 {
			more, ids, err := e.drainCutoff(ctx, now, calls[i].part, calls[i].id, "")
			n, ended, errs = n+more, append(ended, ids...), errors.Join(errs, err)
		}
		res.Ended += n
		res.Sessions = append(res.Sessions, ended[:min(len(ended), maxNamed-len(res.Sessions))]...)
	}
	return errs
}

// drainCutoff writes the ends that a request noted, or all of a user, and returns how many
// sessions the request has ended. They have ended already: if the server dies, the sweep
// writes the rest.
func (e *Engine) drainCutoff(ctx context.Context, now int64, part int, id, user string) (n int, ids []rollcall.SessionID, err error) {
	for {
		msg, err := e.one(ctx, now, partCall(part, &e.scripts.sessionDrainCutoff, strconv.Itoa(endStep), id, user))
		if err != nil {
			return n, ids, err
		}
		reply, err := msg.ToArray()
		if err != nil || len(reply) != 3 {
			return n, ids, damaged("the answer to an end")
		}
		left, _ := reply[0].AsInt64()
		ended, _ := reply[1].AsInt64()
		packed, _ := reply[2].ToString()
		n, ids = int(ended), idsOf(packed)
		if left == 0 {
			return n, ids, nil
		}
	}
}

// Ban implements [rollcall.Users].
func (e *Engine) Ban(ctx context.Context, at time.Time, ban rollcall.Ban) (rollcall.EndResult, error) {
	return e.End(ctx, at, rollcall.EndCommand{Bans: []rollcall.Ban{ban}})
}

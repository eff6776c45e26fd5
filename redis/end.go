package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// named bounds how many ended sessions an answer names.
const named = 100

// leaving is what a step ends in one partition.
type leaving struct {
	ids  []string
	bans []rollcall.Ban
	user string // all of this user's that match
}

// End implements [rollcall.Sessions].
func (e *Engine) End(ctx context.Context, at time.Time, c rollcall.EndCommand) (rollcall.EndResult, error) {
	var res rollcall.EndResult
	byPart := make(map[int]*leaving)
	into := func(p int) *leaving {
		if byPart[p] == nil {
			byPart[p] = &leaving{}
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
	defer e.news.ring()
	calls := make([]call, 0, len(byPart))
	for p, l := range byPart {
		calls = append(calls, e.ending(p, l, &c))
	}
	err := e.end(ctx, at.UnixMilli(), calls, &res)
	return res, err
}

// ending is the command that ends sessions of one partition in one step.
func (e *Engine) ending(part int, l *leaving, c *rollcall.EndCommand) call {
	except := ""
	if !c.Except.IsZero() {
		except = idText(c.Except)
	}
	args := []string{string(c.Cause), c.Reason, c.Actor, l.user, c.Device, except, fmt.Sprint(len(l.ids))}
	args = append(args, l.ids...)
	for _, b := range l.bans {
		args = append(args, b.User, string(b.Key[:]), packBan(b), b.Reason, b.Actor)
	}
	return in(part, &e.scripts.finish, args...)
}

// end carries out ends: all at once, unless each waits for replicas.
func (e *Engine) end(ctx context.Context, now int64, calls []call, res *rollcall.EndResult) error {
	var messages []rueidis.RedisMessage
	var err error
	if e.opts.Wait == 0 {
		messages, err = e.do(ctx, now, calls...)
	} else {
		for _, c := range calls {
			msg, failed := e.confirmed(ctx, now, c)
			if err = errors.Join(err, failed); failed == nil {
				messages = append(messages, msg)
			}
		}
	}
	for _, msg := range messages {
		packed, bad := msg.ToString()
		if bad != nil {
			return damaged("the answer to an end")
		}
		ended := idsOf(packed)
		res.Ended += len(ended)
		res.Sessions = append(res.Sessions, ended[:min(len(ended), named-len(res.Sessions))]...)
	}
	return err
}

// Ban implements [rollcall.Users].
func (e *Engine) Ban(ctx context.Context, at time.Time, ban rollcall.Ban) (rollcall.EndResult, error) {
	return e.End(ctx, at, rollcall.EndCommand{Bans: []rollcall.Ban{ban}})
}

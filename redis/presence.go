package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"
	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// userStep bounds the users of one script.
const userStep = 500

func seconds(d time.Duration) string { return fmt.Sprint(int64(d / time.Second)) }

// Count implements [rollcall.Presence].
func (e *Engine) Count(ctx context.Context, at time.Time, window time.Duration, v rollcall.Viewer) (int, error) {
	return e.sum(ctx, at, seconds(window), "0", flag(v == rollcall.ViewerPublic))
}

// CountKnown implements [rollcall.Presence].
func (e *Engine) CountKnown(ctx context.Context, at time.Time, v rollcall.Viewer) (int, error) {
	return e.sum(ctx, at, "-1", seconds(e.settings.Retention), flag(v == rollcall.ViewerPublic))
}

func (e *Engine) sum(ctx context.Context, at time.Time, args ...string) (int, error) {
	out, err := e.inAllParts(ctx, at.UnixMilli(), &e.scripts.presenceCount, args...)
	if err != nil {
		return 0, err
	}
	total := 0
	for _, msg := range out {
		n, err := msg.AsInt64()
		if err != nil {
			return 0, damaged("a count")
		}
		total += int(n)
	}
	return total, nil
}

// Status implements [rollcall.Presence].
func (e *Engine) Status(ctx context.Context, at time.Time, window time.Duration, users []string, v rollcall.Viewer) ([]rollcall.Status, error) {
	return e.status(ctx, at, window, users, v, true)
}

// status asks for the presence of users and, if sessions is set, in the same round for the
// number of their sessions.
func (e *Engine) status(ctx context.Context, at time.Time, window time.Duration, users []string, v rollcall.Viewer, sessions bool) ([]rollcall.Status, error) {
	// Two questions for each step of users: their presence, and the number of sessions.
	public := flag(v == rollcall.ViewerPublic)
	parts, places := e.byPart(len(users), func(i int) int { return e.partOf(users[i]) })
	var calls []call
	var which [][]int
	for j, p := range parts {
		for some := range slices.Chunk(places[j], userStep) {
			names := make([]string, len(some))
			for k, i := range some {
				names[k] = users[i]
			}
			calls = append(calls, partCall(p, &e.scripts.presenceStatus, append([]string{seconds(window), seconds(e.settings.Retention), public}, names...)...))
			if sessions {
				calls = append(calls, partCall(p, &e.scripts.sessionCount, append([]string{public, fmt.Sprint(dueFirst)}, names...)...))
			}
			which = append(which, some)
		}
	}
	messages, err := e.doDue(ctx, at.UnixMilli(), calls, sessions)
	if err != nil {
		return nil, err
	}
	// The answers come in the same order.
	out := make([]rollcall.Status, len(users))
	for _, some := range which {
		seen, err := readSeen(messages[0], len(some))
		if err != nil {
			return nil, err
		}
		for k, i := range some {
			out[i] = seen[k]
			out[i].User = users[i]
		}
		messages = messages[1:]
		if !sessions {
			continue
		}
		counts, err := messages[0].AsIntSlice()
		for err == nil && len(counts) == 0 { // more sessions were due than one step ends
			counts, err = e.sessionsOf(ctx, at, users, some, public)
		}
		if err != nil {
			return nil, err
		}
		if len(counts) != len(some) {
			return nil, damaged("an answer about presence")
		}
		for k, i := range some {
			out[i].Sessions = int(counts[k])
		}
		messages = messages[1:]
	}
	return out, nil
}

// sessionsOf counts the sessions of some users of one partition, once what is due
// there has been ended.
func (e *Engine) sessionsOf(ctx context.Context, at time.Time, users []string, some []int, public string) ([]int64, error) {
	args := []string{public, fmt.Sprint(dueFirst)}
	for _, i := range some {
		args = append(args, users[i])
	}
	part := e.partOf(users[some[0]])
	if err := e.endDue(ctx, at.UnixMilli(), []int{part}); err != nil {
		return nil, err
	}
	msg, err := e.one(ctx, at.UnixMilli(), partCall(part, &e.scripts.sessionCount, args...))
	if err != nil {
		return nil, err
	}
	return msg.AsIntSlice()
}

// readSeen reads the answer of presence_status.lua about so many users.
func readSeen(msg rueidis.RedisMessage, users int) ([]rollcall.Status, error) {
	reply, err := msg.ToArray()
	if err != nil || len(reply) != users+2 {
		return nil, damaged("an answer about presence")
	}
	line, err := reply[users].AsInt64()
	kept, err2 := reply[users+1].AsInt64()
	if err != nil || err2 != nil {
		return nil, damaged("an answer about presence")
	}
	out := make([]rollcall.Status, users)
	for i := range out {
		if reply[i].IsNil() {
			continue
		}
		score, err := reply[i].AsFloat64()
		if err != nil {
			return nil, damaged("an answer about presence")
		}
		at := int64(score)
		if last := max(at, -at); last >= kept {
			out[i].Online, out[i].LastSeen = at >= line, enginekit.TimeOfSecond(last)
		}
	}
	return out, nil
}

// clearStep bounds how many users one script forgets.
const clearStep = 100

// Clear implements [rollcall.Presence].
func (e *Engine) Clear(ctx context.Context, at, before time.Time) (int, error) {
	n, _, err := e.clear(ctx, at, before, func() bool { return false })
	return n, err
}

// clear forgets users in steps, until nobody is left or over says to stop. It returns how many
// it forgot, and whether that was all.
func (e *Engine) clear(ctx context.Context, at, before time.Time, over func() bool) (total int, all bool, err error) {
	defer e.news.wake()
	line := max(0, before.Unix())
	parts := make([]int, len(e.keyPrefixes))
	for p := range parts {
		parts[p] = p
	}
	for len(parts) > 0 && !over() {
		some := parts[:min(dueScripts, len(parts))]
		parts = parts[len(some):]
		calls := make([]call, len(some))
		for i, p := range some {
			calls[i] = partCall(p, &e.scripts.presenceClear, fmt.Sprint(line), fmt.Sprint(clearStep))
		}
		messages, failed := e.workOff(ctx, at.UnixMilli(), calls)
		for i, msg := range messages {
			n, err := msg.AsInt64()
			if err != nil && failed != nil {
				continue // it was not answered
			}
			if err != nil {
				return total, false, damaged("a count")
			}
			total += int(n)
			if n == clearStep {
				parts = append(parts, some[i])
			}
		}
		if failed != nil {
			return total, false, failed
		}
	}
	return total, len(parts) == 0, nil
}

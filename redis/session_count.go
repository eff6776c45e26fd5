package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Live sessions by the values of a field. Each value has an order of its sessions
// (rc:{p}:by:…), so they can be counted at once. Which values there are stands in
// rc:{p}:counts:app and counts:device, by how many sessions they have; the kinds are known
// anyway. Each partition names the values with the most sessions. If one has more than it
// names, the values of the answer are counted once more, in all partitions.

// valueCount counts sessions by the values of a field.
type valueCount struct {
	e       *Engine
	at      time.Time
	by      rollcall.SessionField
	public  bool
	total   int
	counts  map[string]int
	partial bool
}

// SessionCounts implements [rollcall.Sessions].
func (e *Engine) SessionCounts(ctx context.Context, at time.Time, q rollcall.SessionCountQuery) (rollcall.SessionCounts, error) {
	c := valueCount{e: e, at: at, by: q.By, public: q.Viewer == rollcall.ViewerPublic, counts: make(map[string]int)}
	named, most := []string(nil), rollcall.MaxCountedValues
	if q.By == rollcall.ByKind {
		kinds, err := e.Kinds(ctx)
		if err != nil {
			return rollcall.SessionCounts{}, err
		}
		for _, k := range kinds {
			named = append(named, k.Kind)
		}
		most = 0
	}
	if err := c.ask(ctx, most, named); err != nil {
		return rollcall.SessionCounts{}, err
	}
	if c.partial {
		named = nil
		for _, m := range enginekit.MostCounted(c.counts, q.Limit) {
			named = append(named, m.Value)
		}
		c.total, c.counts = 0, make(map[string]int)
		if err := c.ask(ctx, 0, named); err != nil {
			return rollcall.SessionCounts{}, err
		}
	}
	return enginekit.CountsOf(c.counts, c.total, q.Limit, c.partial), nil
}

// ask adds up what all partitions count.
func (c *valueCount) ask(ctx context.Context, most int, values []string) error {
	parts := make([]int, len(c.e.keyPrefixes))
	for p := range parts {
		parts[p] = p
	}
	args := append([]string{string(c.by), fmt.Sprint(most), flag(c.public), fmt.Sprint(dueFirst)}, values...)
	for len(parts) > 0 {
		calls := make([]call, len(parts))
		for i, p := range parts {
			calls[i] = partCall(p, &c.e.scripts.sessionCounts, args...)
		}
		messages, err := c.e.doDue(ctx, c.at.UnixMilli(), calls, true)
		if err != nil {
			return err
		}

		// A partition in which much is due answers once that has been ended.
		var late []int
		for i, msg := range messages {
			reply, err := msg.ToArray()
			if err != nil || len(reply)%2 != 0 {
				return damaged("counts of sessions")
			}
			if len(reply) == 0 {
				late = append(late, parts[i])
				continue
			}
			if err := c.take(reply); err != nil {
				return err
			}
		}
		if err := c.e.endDue(ctx, c.at.UnixMilli(), late); err != nil {
			return err
		}
		parts = late
	}
	return nil
}

// take adds the answer of one partition.
func (c *valueCount) take(reply []rueidis.RedisMessage) error {
	total, err := reply[0].AsInt64()
	more, err2 := reply[1].AsInt64()
	if err != nil || err2 != nil {
		return damaged("counts of sessions")
	}
	c.total += int(total)
	c.partial = c.partial || more == 1
	for i := 2; i < len(reply); i += 2 {
		value, err := reply[i].ToString()
		n, err2 := reply[i+1].AsInt64()
		if err != nil || err2 != nil {
			return damaged("counts of sessions")
		}
		c.counts[value] += int(n)
	}
	return nil
}

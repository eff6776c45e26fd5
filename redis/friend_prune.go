package redis

import (
	"context"
	"fmt"
	"time"
)

// Pruning of reverse edges: see friend_change.go.
const (
	pruneEvery = 10 * time.Second
	// pruneAfter is how long the friends of a user have not changed before
	// reverse edges are looked for that were left: far longer than a change
	// takes, so that none under way is made to begin anew.
	pruneAfter = time.Minute
	pruneStep  = 200 // reverse edges of a partition that one round removes
)

// pruneLeftovers removes a bounded number of reverse edges without an edge.
func (e *Engine) pruneLeftovers(ctx context.Context, at time.Time) error {
	period := at.UnixMilli() / pruneEvery.Milliseconds()
	if e.lastPruning.Swap(period) == period {
		return nil
	}
	return e.pruneOlderThan(ctx, at.UnixMilli(), pruneAfter)
}

// pruneOlderThan does so for users whose friends have not changed for an age.
func (e *Engine) pruneOlderThan(ctx context.Context, now int64, age time.Duration) error {
	messages, err := e.inAllParts(ctx, now, &e.scripts.friendFindLeftover, fmt.Sprint(age.Microseconds()), fmt.Sprint(pruneStep))
	if err != nil {
		return err
	}
	for _, msg := range messages {
		users, err := msg.ToArray()
		if err != nil {
			return damaged("an answer about friends")
		}
		for _, u := range users {
			left, err := u.AsStrSlice()
			if err != nil || len(left) < 3 {
				return damaged("an answer about friends")
			}
			if err := e.prune(ctx, now, left[0], left[1], left[2:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// prune removes reverse edges of a user that were given up at a stamp.
func (e *Engine) prune(ctx context.Context, now int64, user, stamp string, friends []string) error {
	if _, err := e.do(ctx, now, e.reverseEdgeCalls(&e.scripts.friendReverseRemove, user, stamp, friends)...); err != nil {
		return err
	}
	_, err := e.one(ctx, now, partCall(e.partOf(user), &e.scripts.friendForgetLeftover, append([]string{user, stamp}, friends...)...))
	return err
}

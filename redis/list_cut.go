package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
)

// maxWalk is how many sessions a deep page may be walked to from the instant that was found.
const maxWalk = 256

// instantNear finds an instant near the one at which a deep page begins, and how many sessions
// come before it. It counts the sessions before an instant between two whose counts are known:
// by interpolation, and by bisection if that does not halve the distance.
func (l *listing) instantNear(ctx context.Context, m *loginMerge, skip int) (at int64, passed int, err error) {
	orders, err := l.orders(ctx)
	if err != nil {
		return 0, 0, err
	}
	first, last, err := l.span(ctx, orders)
	if err != nil {
		return 0, 0, err
	}
	// Time runs along the order: x = 0 at its beginning.
	instant := func(x int64) int64 {
		if l.down() {
			return last - x
		}
		return first + x
	}
	near, far := int64(0), last-first+1 // before near lie few enough, before far too many
	few, many := 0, m.total
	for round := 0; far-near > 1 && skip-few > maxWalk; round++ {
		x := near + int64(float64(far-near)*float64(skip-few)/float64(many-few))
		if round%3 == 2 {
			x = near + (far-near)/2
		}
		x = min(max(x, near+1), far-1)
		n, err := l.countBefore(ctx, orders, instant(x))
		if err != nil {
			return 0, 0, err
		}
		if n <= skip {
			near, few = x, n
		} else {
			far, many = x, n
		}
	}
	return instant(near), few, nil
}

// orders returns, by partition, the keys of the orders that the index is merged of.
func (l *listing) orders(ctx context.Context) ([][]string, error) {
	orders := make([][]string, len(l.e.keyPrefixes))
	if l.index != allSessions {
		for p := range orders {
			orders[p] = []string{l.e.of(p, l.index)}
		}
		return orders, nil
	}
	calls := make([]call, len(orders))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed { return l.e.client.B().Smembers().Key(l.e.of(p, "kinds")).Build() })
	}
	messages, err := l.e.do(ctx, l.at.UnixMilli(), calls...)
	if err != nil {
		return nil, err
	}
	for p, msg := range messages {
		kinds, err := msg.AsStrSlice()
		if err != nil {
			return nil, damaged("the kinds of a partition")
		}
		for _, kind := range kinds {
			orders[p] = append(orders[p], l.e.of(p, "by:kind:"+kind))
		}
	}
	return orders, nil
}

// countBefore counts the sessions of some orders that come before those of an instant, without
// those that the viewer must not see.
func (l *listing) countBefore(ctx context.Context, orders [][]string, at int64) (int, error) {
	low, high := strconv.FormatInt(l.low, 10), "("+strconv.FormatInt(at, 10)
	if l.down() {
		low, high = high, "("+strconv.FormatInt(l.high, 10)
	}
	var calls []call
	var signs []int
	count := func(order string, sign int) {
		signs = append(signs, sign)
		calls = append(calls, plainCall(func() rueidis.Completed {
			return l.e.client.B().Zcount().Key(order).Min(low).Max(high).Build()
		}))
	}
	for p := range orders {
		for _, order := range orders[p] {
			count(order, 1)
		}
		if l.public() {
			count(l.e.of(p, "invisible:"+l.index), -1)
		}
	}
	messages, err := l.e.do(ctx, l.at.UnixMilli(), calls...)
	if err != nil {
		return 0, err
	}
	n := 0
	for i, msg := range messages {
		c, err := msg.AsInt64()
		if err != nil {
			return 0, damaged("a count")
		}
		n += signs[i] * int(c)
	}
	return n, nil
}

// span returns the first and the last login in some orders.
func (l *listing) span(ctx context.Context, orders [][]string) (first, last int64, err error) {
	var calls []call
	for _, order := range slices.Concat(orders...) {
		for _, rev := range []bool{false, true} {
			calls = append(calls, plainCall(func() rueidis.Completed {
				k := l.e.client.B().Zrange().Key(order)
				low, high := fmt.Sprint(l.low), fmt.Sprintf("(%d", l.high)
				if rev {
					return k.Min(high).Max(low).Byscore().Rev().Limit(0, 1).Withscores().Build()
				}
				return k.Min(low).Max(high).Byscore().Limit(0, 1).Withscores().Build()
			}))
		}
	}
	messages, err := l.e.do(ctx, l.at.UnixMilli(), calls...)
	if err != nil {
		return 0, 0, err
	}
	found := false
	for _, msg := range messages {
		scores, err := msg.AsZScores()
		if err != nil {
			return 0, 0, damaged("a list of sessions")
		}
		for _, s := range scores {
			login := int64(s.Score)
			if !found || login < first {
				first = login
			}
			if !found || login > last {
				last = login
			}
			found = true
		}
	}
	return first, last, nil
}

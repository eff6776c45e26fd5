package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// lookCalls is how often a list is asked for that looks at sessions one by one.
const lookCalls = 20

// sharedQueries are the lists measured on the distributed engine, of n sessions.
func sharedQueries(n int, cursor, seenCursor string) []pageQuery {
	middle := n / pageSize / 2
	filter := func(name string, f func(i int) rollcall.SessionFilter) pageQuery {
		return pageQuery{name: name, query: func(i int) rollcall.SessionQuery { return numbered(1, f(i)) }}
	}
	seen := func(p rollcall.PageRequest) func(int) rollcall.SessionQuery {
		return func(int) rollcall.SessionQuery { return rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: p} }
	}
	return []pageQuery{
		{name: "first page", query: func(int) rollcall.SessionQuery { return numbered(1, rollcall.SessionFilter{}) }},
		{name: "page in the middle", query: func(int) rollcall.SessionQuery { return numbered(middle, rollcall.SessionFilter{}) }},
		{name: "by cursor, from there", query: func(int) rollcall.SessionQuery {
			return rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: pageSize, Cursor: cursor}}
		}},
		filter("of a user", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{Users: []string{strconv.Itoa(i * 31 % n)}}
		}),
		filter("of an app", func(i int) rollcall.SessionFilter { return rollcall.SessionFilter{App: fmt.Sprint("app", i%10)} }),
		filter("of an app and a device", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{App: fmt.Sprint("app", i%10), Device: "ios"}
		}),
		{name: "by attribute, bounded", calls: lookCalls, query: func(i int) rollcall.SessionQuery {
			return numbered(1, rollcall.SessionFilter{Attrs: map[string]string{"city": fmt.Sprint("city-", i%1000)}})
		}},
		{name: "last seen first", query: seen(rollcall.PageRequest{Limit: pageSize})},
		{name: "last seen first, by cursor", query: seen(rollcall.PageRequest{Limit: pageSize, Cursor: seenCursor})},
	}
}

// measureRedisPages measures pages of a list that is spread over partitions.
func measureRedisPages(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Distributed engine: a page of 20 sessions, with the total",
		about: fmt.Sprintf("64 partitions, newest login first unless said; %d calls each (%d by attribute), median and 99th percentile. Totals are exact, but for the one by attribute, which looks at 100,000 sessions at most. ", pageCalls, lookCalls) +
			"Redis: the hand-made list on one sorted set, `ZREVRANGE`, `ZCARD` and then `MGET` of the records: no filter, and a total that counts the dead.",
	}
	t := table{head: []string{"page"}}
	for size, n := range sizes {
		t.head = append(t.head, count(float64(n)), "p99")
		own, err := sharedPages(ctx, n)
		if err != nil {
			return s, err
		}
		hand, err := handPages(ctx, n)
		if err != nil {
			return s, err
		}
		s.within("P13", "first page of "+count(float64(n))+" sessions, median", own[0].p50, time.Millisecond)
		s.within("P13", "page by two conditions, median", pageOf(own, "of an app and a device").p50, 20*time.Millisecond)
		for i, row := range append(own, hand...) {
			if size == 0 {
				t.add(row.name)
			}
			t.rows[i] = append(t.rows[i], took(row.p50), took(row.p99))
		}
		if n == sizes[len(sizes)-1] {
			t.note = fmt.Sprintf("At %s sessions the engine takes %s as long as the hand-made list for the first page and %s for the one in the middle, which is number %d.",
				count(float64(n)), times(ratio(own[0], hand[0])), times(ratio(own[1], hand[1])), n/pageSize/2)
		}
	}
	s.tables = append(s.tables, t)
	return s, nil
}

func pageOf(all []pageTime, name string) pageTime {
	return all[slices.IndexFunc(all, func(p pageTime) bool { return p.name == name })]
}

func ratio(a, b pageTime) float64 { return float64(a.p50) / float64(b.p50) }

func sharedPages(ctx context.Context, n int) ([]pageTime, error) {
	s, err := openShared(ctx, 0, rollcall.Options{NoPresenceEvents: true})
	if err != nil {
		return nil, err
	}
	out, err := s.pages(ctx, n)
	return out, errors.Join(err, s.close())
}

func (s *shared) pages(ctx context.Context, n int) ([]pageTime, error) {
	// Sessions that last while they are listed: they end at no time here.
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: 24 * time.Hour})
	if err != nil {
		return nil, err
	}
	s.SetPolicies(policies)
	if err := s.fillLogins(ctx, n, makeLogin); err != nil {
		return nil, err
	}
	middle, err := s.Sessions(ctx, numbered(n/pageSize/2, rollcall.SessionFilter{}))
	if err != nil {
		return nil, err
	}
	seen, err := s.Sessions(ctx, rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: rollcall.PageRequest{Limit: pageSize}})
	if err != nil {
		return nil, err
	}
	if middle.Total != n || len(middle.Items) != pageSize {
		return nil, fmt.Errorf("a page in the middle has %d of %d sessions, and there are %d", len(middle.Items), middle.Total, n)
	}
	return timePages(ctx, s.Roll, sharedQueries(n, middle.Next, seen.Next))
}

// handPages measures the pages that a hand-made list has.
func handPages(ctx context.Context, n int) ([]pageTime, error) {
	p, err := startPeer(ctx)
	if err != nil {
		return nil, err
	}
	out, err := p.pages(n)
	return out, errors.Join(err, p.stop())
}

func (p *peer) pages(n int) ([]pageTime, error) {
	if err := p.fillList(n, makeLogin); err != nil {
		return nil, err
	}
	var out []pageTime
	for _, page := range []struct {
		name  string
		first int
	}{{"Redis, by hand: first page", 0}, {"Redis, by hand: page in the middle", n/2 - pageSize}} {
		waits := make([]time.Duration, pageCalls)
		for i := range waits {
			began := time.Now()
			members, err := p.list("ZREVRANGE", "online:user", strconv.Itoa(page.first), strconv.Itoa(page.first+pageSize-1))
			if err != nil {
				return nil, err
			}
			get := []string{"MGET"}
			for _, m := range members {
				get = append(get, "login:"+m)
			}
			if _, err := p.call("ZCARD", "online:user"); err != nil {
				return nil, err
			}
			if records, err := p.list(get...); err != nil || len(records) != pageSize {
				return nil, errors.Join(err, fmt.Errorf("the hand-made list has %d records on a page", len(records)))
			}
			waits[i] = time.Since(began)
		}
		out = append(out, pageTime{page.name, percentile(waits, 50), percentile(waits, 99)})
	}
	return out, nil
}

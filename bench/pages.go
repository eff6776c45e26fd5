package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

const (
	pageSize  = 20
	pageCalls = 200
)

// pageQuery is a list to take pages of. Its i-th call may ask for another value
// than the one before.
type pageQuery struct {
	name  string
	query func(i int) rollcall.SessionQuery
	calls int // 0 for as many as of the others
}

func numbered(number int, f rollcall.SessionFilter) rollcall.SessionQuery {
	return rollcall.SessionQuery{Filter: f, Page: rollcall.PageRequest{Limit: pageSize, Number: number}}
}

// pageQueries are the lists measured, of n sessions begun between two instants.
func pageQueries(n int, from, to time.Time, cursor string) []pageQuery {
	last := n / pageSize
	filter := func(name string, f func(i int) rollcall.SessionFilter) pageQuery {
		return pageQuery{name: name, query: func(i int) rollcall.SessionQuery { return numbered(1, f(i)) }}
	}
	span := to.Sub(from)
	return []pageQuery{
		{name: "first page", query: func(int) rollcall.SessionQuery { return numbered(1, rollcall.SessionFilter{}) }},
		{name: "any page by number", query: func(i int) rollcall.SessionQuery { return numbered(1+i*7919%last, rollcall.SessionFilter{}) }},
		{name: "last page", query: func(int) rollcall.SessionQuery { return numbered(last, rollcall.SessionFilter{}) }},
		{name: "by cursor", query: func(int) rollcall.SessionQuery {
			return rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: pageSize, Cursor: cursor}}
		}},
		filter("of a user", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{Users: []string{strconv.Itoa(i * 31 % n)}}
		}),
		filter("of a kind", func(int) rollcall.SessionFilter { return rollcall.SessionFilter{Kind: "user"} }),
		filter("of an app", func(i int) rollcall.SessionFilter { return rollcall.SessionFilter{App: fmt.Sprint("app", i%10)} }),
		filter("of a device", func(int) rollcall.SessionFilter { return rollcall.SessionFilter{Device: "ios"} }),
		filter("from an address", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{IP: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i % 16), byte(i), 7}), 32)}
		}),
		filter("in a login range", func(i int) rollcall.SessionFilter {
			at := from.Add(span / pageCalls * time.Duration(i))
			return rollcall.SessionFilter{LoginAfter: at, LoginBefore: at.Add(span / 5)}
		}),
		filter("in a network", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{IP: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i % 16), 0, 0}), 16)}
		}),
		filter("by name", func(i int) rollcall.SessionFilter { return rollcall.SessionFilter{Name: fmt.Sprint("name ", i%1000)} }),
		filter("by attribute", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{Attrs: map[string]string{"city": fmt.Sprint("city-", i%1000)}}
		}),
		filter("by common attribute", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{Attrs: map[string]string{"plan": fmt.Sprint("plan-", i%10)}}
		}),
		filter("by unique attribute", func(i int) rollcall.SessionFilter {
			return rollcall.SessionFilter{Attrs: map[string]string{"trace": fmt.Sprintf("%08x", i)}}
		}),
	}
}

// measurePages measures pages of a list, exact total included.
func measurePages(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "A page of 20 sessions, with the exact total",
		about: fmt.Sprintf("Newest login first; %d calls each, median and 99th percentile. A hand-made list on Redis has no such pages: it resolves conditions elsewhere, and its totals count the dead.", pageCalls),
	}
	t := table{head: []string{"page"}}
	for size, n := range sizes {
		t.head = append(t.head, count(float64(n)), "p99")
		rows, err := pageTimes(ctx, n)
		if err != nil {
			return s, err
		}
		for i, row := range rows {
			if size == 0 {
				t.add(row.name)
			}
			t.rows[i] = append(t.rows[i], took(row.p50), took(row.p99))
			s.within("P8", "list: "+row.name+", of "+count(float64(n))+" sessions, p99", row.p99, pageGoal(row.name))
		}
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// pageGoal is what a page may take: one without a filter, one by a filter with an index, and
// one for which a column of each session is looked at.
func pageGoal(name string) time.Duration {
	switch name {
	case "first page", "any page by number", "last page", "by cursor":
		return time.Millisecond
	case "in a network", "by name", "by attribute", "by common attribute", "by unique attribute":
		return 100 * time.Millisecond
	default:
		return 10 * time.Millisecond
	}
}

type pageTime struct {
	name     string
	p50, p99 time.Duration
}

func pageTimes(ctx context.Context, n int) ([]pageTime, error) {
	b, err := open(local.Options{Durability: local.Interval}, rollcall.Options{})
	if err != nil {
		return nil, err
	}
	from := b.Now()
	if err := fillSessions(ctx, b, n); err != nil {
		return nil, errors.Join(err, b.close())
	}
	middle, err := b.Sessions(ctx, numbered(n/pageSize/2, rollcall.SessionFilter{}))
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	out, err := timePages(ctx, b.Roll, pageQueries(n, from, b.Now(), middle.Next))
	return out, errors.Join(err, b.close())
}

func timePages(ctx context.Context, roll *rollcall.Roll, queries []pageQuery) ([]pageTime, error) {
	var out []pageTime
	for _, q := range queries {
		waits := make([]time.Duration, cmp.Or(q.calls, pageCalls))
		for i := range waits {
			query := q.query(i)
			began := time.Now()
			if _, err := roll.Sessions(ctx, query); err != nil {
				return nil, fmt.Errorf("%s: %w", q.name, err)
			}
			waits[i] = time.Since(began)
		}
		out = append(out, pageTime{q.name, percentile(waits, 50), percentile(waits, 99)})
	}
	return out, nil
}

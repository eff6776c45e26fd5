package redis

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// A list over partitions.
//
// The problem: sessions are spread over partitions, one script reads one partition, and a
// page stands in one order over all of them. Its total is to be exact.
//
// The invariant: each partition counts and reads in one step, after it has ended what is
// due there. So the total is exact: for each partition at one instant.
//
//	1 every partition ends what is due. If that is more than a few sessions, it is worked
//	  off first (upkeep_due.go), and the partition is asked again
//	2 it counts its sessions, and returns the first ones behind the cursor
//	3 these are merged here. A partition of which nothing is left is asked for more,
//	  twice as many each time
//	4 the records of the page are read. A session that has ended since is left out of the
//	  page and of the total
//
// There are four ways to do steps 2 and 3:
//
//	login order, one index at most   list_page.lua and loginMerge. Nobody walks to a deep
//	                                 page: list_cut.go finds it by counting
//	the same, of two or three of     list_matching.lua and loginMerge, as far as a page is
//	kind, app and device             walked to (isCounted)
//	newest seen first, no filter     list_by_seen.lua and seenMerge (list_seen.go)
//	anything else (mustGather)       list_candidates.go: it gathers what meets the
//	                                 conditions, and sorts that
//
// A cursor is a place in the order, so a page goes on behind a session that has ended. A
// list changes nothing but to end what was due: if the server dies, nothing is left to do.

// allSessions names the order of all sessions. No key has it: the orders of the kinds are merged,
// see session_order.lua.
const allSessions = "login"

// Bounds of a list.
const (
	maxCandidates = 100_000 // sessions that a filter without an index looks at
	walkLimit     = 1000    // sessions that a page is walked to; to a deeper page they are counted

	// endOfTime is later than any login, in ms. The score of a sorted set, a double, holds it
	// exactly.
	endOfTime = math.MaxInt64 >> 12
)

// List implements [rollcall.Sessions].
func (e *Engine) List(ctx context.Context, at time.Time, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error) {
	l := &listing{e: e, at: at, q: &q, low: 0, high: endOfTime}
	if !q.Filter.LoginAfter.IsZero() {
		l.low = max(0, enginekit.CeilMilliseconds(q.Filter.LoginAfter))
	}
	if !q.Filter.LoginBefore.IsZero() {
		l.high = max(0, enginekit.CeilMilliseconds(q.Filter.LoginBefore))
	}
	indexed := indexesOf(&q.Filter)
	switch {
	case l.isCounted(len(indexed)):
		page, counted, err := l.byLogin(ctx)
		if counted || err != nil {
			return page, err
		}
		return l.answerGathered(ctx, indexed)
	case l.mustGather(len(indexed)):
		return l.answerGathered(ctx, indexed)
	case q.Sort != rollcall.NewestSeen:
		l.index = allSessions
		if len(indexed) == 1 {
			l.index = indexed[0]
		}
		page, _, err := l.byLogin(ctx)
		return page, err
	default:
		return l.bySeen(ctx)
	}
}

// listing is one query for sessions.
type listing struct {
	e         *Engine
	at        time.Time
	q         *rollcall.SessionQuery
	index     string // order within the partitions, by:field:value or allSessions; "" for several conditions
	low, high int64  // login_at in [low, high), ms
}

func (l *listing) down() bool   { return l.q.Sort != rollcall.OldestLogin }
func (l *listing) public() bool { return l.q.Viewer == rollcall.ViewerPublic }
func (l *listing) limit() int   { return l.q.Page.Limit }
func (l *listing) skip() int    { return max(0, l.q.Page.Number-1) * l.q.Page.Limit }

// mustGather reports whether no index has the sessions in question in the order that is asked
// for.
func (l *listing) mustGather(indexes int) bool {
	f := &l.q.Filter
	if f.Users != nil || indexes > 1 || l.needsRecords() {
		return true
	}
	return l.q.Sort == rollcall.NewestSeen && (indexes == 1 || hasRange(f))
}

// isCounted reports whether the filter has several conditions of kind, app and device, and
// nothing else: each partition knows how many sessions meet them. Pages that are too deep to
// walk to are left out.
func (l *listing) isCounted(indexes int) bool {
	f := &l.q.Filter
	if indexes < 2 || f.IP.IsValid() || f.Users != nil || l.needsRecords() || hasRange(f) {
		return false
	}
	return l.q.Sort != rollcall.NewestSeen && l.skip() <= walkLimit
}

// indexesOf returns the keys, within a partition, of the indexes a filter names.
func indexesOf(f *rollcall.SessionFilter) []string {
	var out []string
	for _, c := range [...][2]string{{"kind", f.Kind}, {"app", f.App}, {"device", f.Device}} {
		if c[1] != "" {
			out = append(out, "by:"+c[0]+":"+c[1])
		}
	}
	if f.IP.IsValid() && f.IP.IsSingleIP() {
		out = append(out, "by:ip:"+addrText(f.IP.Addr()))
	}
	return out
}

// loginStream has what was read of one partition's sessions in login order.
type loginStream struct {
	ids    []rollcall.SessionID
	behind string // the last id looked at
	done   bool
}

// loginMerge walks the sessions of all partitions in login order.
type loginMerge struct {
	l     *listing
	parts []loginStream
	from  string // the login at which the walk begins, "" for the end of the range
	step  int
	total int
	// uncounted says that a partition has too many combinations of kind, app and device to
	// count the sessions.
	uncounted bool
}

func (l *listing) newMerge(from string, behind string, expect int) *loginMerge {
	m := &loginMerge{l: l, parts: make([]loginStream, len(l.e.keyPrefixes)), from: from}
	for p := range m.parts {
		m.parts[p].behind = behind
	}
	m.step = min(1000, expect*2/len(m.parts)+4)
	return m
}

// fill reads more from those partitions of which nothing is left, until each has some or has
// ended. The first time it reads from all, has them end what is due, and counts.
func (m *loginMerge) fill(ctx context.Context, first bool) error {
	for {
		var parts []int
		for p := range m.parts {
			if s := &m.parts[p]; first || (!s.done && len(s.ids) == 0) {
				parts = append(parts, p)
			}
		}
		if len(parts) == 0 || (m.step == 0 && !first) {
			return nil
		}
		err := m.l.askDrained(ctx, parts, first, func(p int, budget string) call { return m.pageCall(p, first, budget) },
			func(p int, reply []rueidis.RedisMessage) { m.take(p, reply, first) })
		if err != nil {
			return err
		}
		m.step, first = min(1000, 2*m.step), false
	}
}

// pageCall asks a partition for its next sessions.
func (m *loginMerge) pageCall(p int, first bool, budget string) call {
	l, behind, step := m.l, m.parts[p].behind, fmt.Sprint(m.step)
	if l.index == "" {
		f := &l.q.Filter
		return partCall(p, &l.e.scripts.listMatching, f.Kind, f.App, f.Device, flag(l.down()), behind, step, flag(l.public()), flag(first), budget)
	}
	low, high := "", ""
	if hasRange(&l.q.Filter) {
		low, high = fmt.Sprint(l.low), fmt.Sprint(l.high)
	}
	return partCall(p, &l.e.scripts.listPage, l.index, low, high, flag(l.down()),
		behind, m.from, step, flag(l.public()), budget)
}

// askDrained asks partitions for a part of a list. The first time, each of them ends what is
// due before it answers. If that is more than a few sessions, it answers nothing: all that is
// due is ended, and it is asked again.
func (l *listing) askDrained(ctx context.Context, parts []int, first bool, ask func(p int, budget string) call, take func(p int, reply []rueidis.RedisMessage)) error {
	budget := "0"
	if first {
		budget = fmt.Sprint(dueFirst)
	}
	for len(parts) > 0 {
		calls := make([]call, len(parts))
		for i, p := range parts {
			calls[i] = ask(p, budget)
		}
		messages, err := l.e.doDue(ctx, l.at.UnixMilli(), calls, first)
		if err != nil {
			return err
		}
		var late []int
		for i, msg := range messages {
			reply, err := msg.ToArray()
			if err != nil || len(reply) < 4 {
				return damaged("a list of sessions")
			}
			if n, _ := reply[0].AsInt64(); n == 1 {
				late = append(late, parts[i])
				continue
			}
			take(parts[i], reply)
		}
		if err := l.e.endDue(ctx, l.at.UnixMilli(), late); err != nil {
			return err
		}
		parts = late
	}
	return nil
}

func (m *loginMerge) take(p int, reply []rueidis.RedisMessage, first bool) {
	if status, _ := reply[0].AsInt64(); status == 2 {
		m.uncounted = true
	}
	if first {
		n, _ := reply[1].AsInt64()
		m.total += int(n)
	}
	packed, _ := reply[2].ToString()
	s := &m.parts[p]
	s.ids = idsOf(packed)
	s.behind, _ = reply[3].ToString()
	s.done = s.behind == ""
}

// next returns the next id of all partitions.
func (m *loginMerge) next(ctx context.Context) (rollcall.SessionID, bool, error) {
	if err := m.fill(ctx, false); err != nil {
		return rollcall.SessionID{}, false, err
	}
	best := -1
	for p := range m.parts {
		ids := m.parts[p].ids
		if len(ids) == 0 {
			continue
		}
		if best < 0 || (bytes.Compare(ids[0][:], m.parts[best].ids[0][:]) < 0) != m.l.down() {
			best = p
		}
	}
	if best < 0 {
		return rollcall.SessionID{}, false, nil
	}
	id := m.parts[best].ids[0]
	m.parts[best].ids = m.parts[best].ids[1:]
	return id, true, nil
}

// byLogin answers a query in login order. It answers nothing, and reports false, if a partition
// cannot count what meets several conditions.
func (l *listing) byLogin(ctx context.Context) (page rollcall.Page[rollcall.Session], counted bool, err error) {
	skip := l.skip()
	expect := l.limit() + 1
	if skip <= walkLimit {
		expect += skip
	}
	m := l.newMerge("", l.q.Page.Cursor, expect)
	if l.limit() == 0 {
		m.step = 0
	}
	if err := m.fill(ctx, true); err != nil {
		return page, true, err
	}
	if m.uncounted {
		return page, false, nil
	}
	// Past the end there is nothing but the total; far into the list, begin near the page.
	total := m.total
	if skip >= total && skip > 0 {
		page.Total = total
		return page, true, nil
	}
	if skip > walkLimit {
		from, passed, err := l.instantNear(ctx, m, skip)
		if err != nil {
			return page, true, err
		}
		skip -= passed
		m = l.newMerge(fmt.Sprint(from), "", skip+l.limit()+1)
		if err := m.fill(ctx, false); err != nil {
			return page, true, err
		}
	}
	// Walk the rest of the way.
	for ; skip > 0; skip-- {
		if _, ok, err := m.next(ctx); err != nil || !ok {
			page.Total = total
			return page, true, err
		}
	}
	page, err = l.page(ctx, total, m.next)
	return page, true, err
}

// page fills a page with the sessions that next returns. It leaves out those that have ended
// since they were counted, and takes them off the total.
func (l *listing) page(ctx context.Context, total int, next func(context.Context) (rollcall.SessionID, bool, error)) (rollcall.Page[rollcall.Session], error) {
	page := rollcall.Page[rollcall.Session]{Total: total}
	for more := true; more && len(page.Items) <= l.limit() && l.limit() > 0; {
		var ids []rollcall.SessionID
		for len(page.Items)+len(ids) <= l.limit() {
			id, ok, err := next(ctx)
			if err != nil {
				return page, err
			}
			if more = ok; !ok {
				break
			}
			ids = append(ids, id)
		}
		records, err := l.e.records(ctx, l.at, ids)
		if err != nil {
			return page, err
		}
		page.Total -= len(ids) - len(records)
		for _, r := range records {
			page.Items = append(page.Items, r.Session)
		}
	}
	if len(page.Items) > l.limit() {
		page.Items = page.Items[:l.limit()]
		if l.limit() > 0 {
			page.Next = idText(page.Items[l.limit()-1].ID)
		}
	}
	return page, nil
}

// records reads the records of those sessions that are live, in the order of the ids.
func (e *Engine) records(ctx context.Context, at time.Time, ids []rollcall.SessionID) ([]record, error) {
	refs := make([]rollcall.Ref, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	out := make([]record, len(ids))
	err := e.eachRef(ctx, at, refs, &e.scripts.sessionLookup, []string{"0", "1"}, func(i int, msg rueidis.RedisMessage) error {
		r, err := unpackFound(msg)
		if rollcall.CodeOf(err) == rollcall.CodeNotFound {
			return nil
		}
		out[i] = r
		return err
	})
	return slices.DeleteFunc(out, func(r record) bool { return r.ID.IsZero() }), err
}

func hasRange(f *rollcall.SessionFilter) bool {
	return !f.LoginAfter.IsZero() || !f.LoginBefore.IsZero()
}

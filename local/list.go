package local

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// List implements [rollcall.Sessions].
func (e *Engine) List(_ context.Context, at time.Time, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.Page[rollcall.Session]{}, err
	}
	e.lockExpired(now)
	defer e.runlockAll()
	l := &listing{q: &q, parts: make([]matches, len(e.parts))}
	l.match(e, now)
	if q.Sort == rollcall.NewestSeen {
		return l.bySeen(now)
	}
	return l.byLogin()
}

// lockExpired locks all partitions for reading, at an instant when none holds
// a session that is past its deadline.
func (e *Engine) lockExpired(now int64) {
	for {
		e.rlockAll()
		late := make([]*partition, 0)
		for _, p := range e.parts {
			if p.sessions.due(p.at(now)) {
				late = append(late, p)
			}
		}
		if len(late) == 0 {
			return
		}
		e.runlockAll()
		e.expireAll(late, now)
	}
}

// yieldAfter is how many steps expireAll takes before it lets others have the
// processor. One takes some 25 µs; after each, a list would wait longer for its turn than
// it works.
const yieldAfter = 8

// expireAll takes what is due out of the order of some partitions, on all
// processors. Others may come at a partition between two steps.
func (e *Engine) expireAll(late []*partition, now int64) {
	var next atomic.Int32
	var wg sync.WaitGroup
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(late); i = int(next.Add(1)) - 1 {
			p := late[i]
			for steps, more := 1, true; more; steps++ {
				p.mu.Lock()
				more = p.sessions.expire(p.advance(now))
				p.mu.Unlock()
				if steps%yieldAfter == 0 {
					runtime.Gosched() // all processors are at this
				}
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), len(late)) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}

// listing is one question for a list of sessions, with all partitions locked.
type listing struct {
	q     *rollcall.SessionQuery
	parts []matches
	total int
}

// match finds what the filter keeps in every partition, on all processors if
// there is something to look for.
func (l *listing) match(e *Engine, now int64) {
	workers := runtime.GOMAXPROCS(0)
	if l.q.Filter.IsZero() {
		workers = 1
	}
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(e.parts); i = int(next.Add(1)) - 1 {
			p := e.parts[i]
			l.parts[i] = p.sessions.matching(l.q, p.at(now))
		}
	}
	var wg sync.WaitGroup
	for range workers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	for i := range l.parts {
		l.total += l.parts[i].n
	}
}

// byLogin answers in login order: of every partition the cut is found, by
// counting, at which the page begins, and the partitions are merged from there.
func (l *listing) byLogin() (rollcall.Page[rollcall.Session], error) {
	page := rollcall.Page[rollcall.Session]{Total: l.total}
	descending := l.q.Sort == rollcall.NewestLogin
	limit := l.q.Page.Limit
	var cuts []int
	if l.q.Page.Cursor != "" {
		id := rollcall.SessionID([]byte(l.q.Page.Cursor)) // authenticated: its form is ours
		cuts = l.cutAt(id, !descending)
	} else {
		skip := min(l.total, max(0, l.q.Page.Number-1)*limit)
		if descending {
			skip = l.total - skip
		}
		cuts = l.cutAfter(skip)
	}
	if limit == 0 {
		return page, nil
	}
	m := newMerge(l.parts, cuts, descending)
	for len(page.Items) < limit {
		part, slot, ok := m.next()
		if !ok {
			return page, nil
		}
		page.Items = append(page.Items, l.parts[part].s.session(slot))
	}
	if _, _, more := m.next(); more {
		last := page.Items[len(page.Items)-1].ID
		page.Next = string(last[:])
	}
	return page, nil
}

// cutAfter cuts every partition so that the k first logins of all lie before
// the cuts: it bisects the instant, then divides the logins of that instant.
func (l *listing) cutAfter(k int) []int {
	from, to := int64(0), int64(0) // the cut lies at a login in [from, to)
	first := true
	for i := range l.parts {
		if m := &l.parts[i]; m.n > 0 {
			lo, hi := m.login(0), m.login(m.n-1)+1
			if first || lo < from {
				from = lo
			}
			if first || hi > to {
				to = hi
			}
			first = false
		}
	}
	for to-from > 1 {
		mid := from + (to-from)/2
		if l.before(mid) <= k {
			from = mid
		} else {
			to = mid
		}
	}
	cuts := make([]int, len(l.parts))
	for i := range l.parts {
		cuts[i] = l.parts[i].before(from)
		k -= cuts[i]
	}
	if k > 0 {
		l.divide(from, k, cuts)
	}
	return cuts
}

func (l *listing) before(ms int64) int {
	n := 0
	for i := range l.parts {
		n += l.parts[i].before(ms)
	}
	return n
}

// divide moves the cuts past the k first, by id, of the logins of one instant.
func (l *listing) divide(at int64, k int, cuts []int) {
	type tied struct {
		id   rollcall.SessionID
		part int
	}
	var ties []tied
	for i := range l.parts {
		m := &l.parts[i]
		for j := cuts[i]; j < m.n && m.login(j) == at; j++ {
			ties = append(ties, tied{m.s.id(m.slot(j)), i})
		}
	}
	slices.SortFunc(ties, func(a, b tied) int { return bytes.Compare(a.id[:], b.id[:]) })
	for _, t := range ties[:min(k, len(ties))] {
		cuts[t.part]++
	}
}

// cutAt cuts every partition at an id: before it, or after it.
func (l *listing) cutAt(id rollcall.SessionID, after bool) []int {
	cuts := make([]int, len(l.parts))
	at := id.Time().UnixMilli()
	for i := range l.parts {
		m := &l.parts[i]
		j := m.before(at)
		for ; j < m.n && m.login(j) == at; j++ {
			other := m.s.id(m.slot(j))
			if c := bytes.Compare(other[:], id[:]); c > 0 || (c == 0 && !after) {
				break
			}
		}
		cuts[i] = j
	}
	return cuts
}

// merge walks the matches of all partitions in login order.
type merge struct {
	parts      []matches
	upcoming   []int // of each partition, the match to come
	heads      []rollcall.SessionID
	alive      []bool
	descending bool
}

func newMerge(parts []matches, cuts []int, descending bool) *merge {
	m := &merge{
		parts: parts, upcoming: slices.Clone(cuts), descending: descending,
		heads: make([]rollcall.SessionID, len(parts)), alive: make([]bool, len(parts)),
	}
	for i := range parts {
		if descending {
			m.upcoming[i]--
		}
		m.load(i)
	}
	return m
}

func (m *merge) load(i int) {
	k := m.upcoming[i]
	m.alive[i] = k >= 0 && k < m.parts[i].n
	if m.alive[i] {
		m.heads[i] = m.parts[i].s.id(m.parts[i].slot(k))
	}
}

func (m *merge) next() (part int, slot uint32, ok bool) {
	best := -1
	for i, alive := range m.alive {
		if !alive {
			continue
		}
		if best < 0 || (bytes.Compare(m.heads[i][:], m.heads[best][:]) < 0) != m.descending {
			best = i
		}
	}
	if best < 0 {
		return 0, 0, false
	}
	slot = m.parts[best].slot(m.upcoming[best])
	if m.descending {
		m.upcoming[best]--
	} else {
		m.upcoming[best]++
	}
	m.load(best)
	return best, slot, true
}

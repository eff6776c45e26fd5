package local

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// A list is exact at one instant, whatever the filter, and a page far down must not cost
// more than the first one. So all partitions are locked for reading, at an instant at
// which no session past its deadline stands in a login order. In each partition the
// filter gives a set of positions (matches), which can count and find its k-th member
// without walking. A page is then a merge over the partitions that begins in the middle:
//
//  1. match: find the matches of each partition, and the total.
//  2. Find where to cut each partition, so that the cuts together stand where the page
//     begins: by counting from a page number (cutAfter), or by an id (cutAt).
//  3. merge: take the next session of all partitions until the page is full.
//
// In the order of last signs of life, list_seen.go merges the deadline queues instead.

// List implements [rollcall.Sessions].
func (e *Engine) List(_ context.Context, at time.Time, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error) {
	now, err := e.enter(at)
	if err != nil {
		return rollcall.Page[rollcall.Session]{}, err
	}
	e.expireAndRLockAll(now)
	defer e.runlockAll()
	l := &listing{q: &q, parts: make([]matches, len(e.parts))}
	l.match(e, now)
	if q.Sort == rollcall.NewestSeen {
		return l.bySeen(now)
	}
	return l.byLogin()
}

// listing is one call of List, with all partitions locked.
type listing struct {
	q     *rollcall.SessionQuery
	parts []matches
	total int
}

// match finds the matches of every partition. With a filter it works on all processors.
func (l *listing) match(e *Engine, now int64) {
	workers := runtime.GOMAXPROCS(0)
	if l.q.Filter.IsZero() {
		workers = 1
	}
	var next atomic.Int32
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(e.parts); i = int(next.Add(1)) - 1 {
			p := e.parts[i]
			l.parts[i] = p.sessions.matching(l.q, p.latest(now))
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

// byLogin makes a page in login order, ascending or descending.
func (l *listing) byLogin() (rollcall.Page[rollcall.Session], error) {
	page := rollcall.Page[rollcall.Session]{Total: l.total}
	descending := l.q.Sort == rollcall.NewestLogin
	limit := l.q.Page.Limit

	// Where does the page begin? Descending, the merge goes down from the cuts.
	var cuts []int
	if l.q.Page.Cursor != "" {
		id := rollcall.SessionID([]byte(l.q.Page.Cursor)) // Roll has proved that the cursor is ours
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

	// There is a next page only if there is another session.
	if _, _, more := m.next(); more {
		last := page.Items[len(page.Items)-1].ID
		page.Next = string(last[:])
	}
	return page, nil
}

// cutAfter cuts every partition so that the first k logins of all partitions lie before
// the cuts.
func (l *listing) cutAfter(k int) []int {
	cuts := make([]int, len(l.parts))
	switch k {
	case 0:
		return cuts
	case l.total:
		for i := range l.parts {
			cuts[i] = l.parts[i].n
		}
		return cuts
	}

	// Cut before the instant of the k-th; of its own logins the rest of the k go before the
	// cuts.
	at := l.instantOf(k)
	for i := range l.parts {
		cuts[i] = l.parts[i].before(at)
		k -= cuts[i]
	}
	if k > 0 {
		l.divide(at, k, cuts)
	}
	return cuts
}

// instantOf returns the instant of the k-th login, counted from 0. It narrows a range of
// instants until so few logins are in it that it can look at each.
func (l *listing) instantOf(k int) int64 {
	r := l.wholeRange()
	for step := 0; r.to-r.from > 1 && r.beforeTo-r.before > fewLogins; step++ {
		l.narrow(&r, k, step)
	}
	if r.to-r.from == 1 {
		return r.from
	}

	// The few that are left.
	var logins []int64
	for i := range l.parts {
		m := &l.parts[i]
		for j, end := m.before(r.from), m.before(r.to); j < end; j++ {
			logins = append(logins, m.login(j))
		}
	}
	slices.Sort(logins)
	return logins[k-r.before]
}

// fewLogins are looked at one by one, and more are not.
const fewLogins = 256

// instantRange is a range of instants, [from, to). before is the number of logins before from,
// beforeTo of those before to.
type instantRange struct {
	from, to         int64
	before, beforeTo int
}

// wholeRange returns the range of all logins.
func (l *listing) wholeRange() instantRange {
	r := instantRange{from: math.MaxInt64, beforeTo: l.total}
	for i := range l.parts {
		if m := &l.parts[i]; m.n > 0 {
			r.from, r.to = min(r.from, m.login(0)), max(r.to, m.login(m.n-1)+1)
		}
	}
	return r
}

// narrow cuts a range of two instants or more, and leaves the part with the k-th login. Of
// three steps, two cut where they guess it to be, and one at the middle login.
func (l *listing) narrow(r *instantRange, k, step int) {
	var mid int64
	if step%3 == 2 {
		mid = l.middle(r)
	} else {
		mid = r.guess(k, step%3 == 1)
	}
	mid = min(max(mid, r.from+1), r.to-1)
	if n := l.before(mid); n <= k {
		r.from, r.before = mid, n
	} else {
		r.to, r.beforeTo = mid, n
	}
}

// guess returns an instant shortly before the k-th login, or shortly behind it, if logins
// come evenly. Of n logins that come evenly at random, the number before an instant is off
// the share of the time by less than the root of n, nearly always. So between two guesses,
// one to each side, little is left.
func (r *instantRange) guess(k int, behind bool) int64 {
	all := float64(r.beforeTo - r.before)
	share := float64(k - r.before)
	if behind {
		share += math.Sqrt(all)
	} else {
		share -= math.Sqrt(all)
	}
	return r.from + int64(share/all*float64(r.to-r.from))
}

// middle returns the instant of the middle login of a range, in the partition that has the
// most there. However logins come, a cut at it leaves a good part of them out.
func (l *listing) middle(r *instantRange) (at int64) {
	most := 0
	for i := range l.parts {
		m := &l.parts[i]
		if from, to := m.before(r.from), m.before(r.to); to-from > most {
			most, at = to-from, m.login(from+(to-from)/2)
		}
	}
	return at
}

// before counts the matches of all partitions that logged in before an instant.
func (l *listing) before(ms int64) int {
	n := 0
	for i := range l.parts {
		n += l.parts[i].before(ms)
	}
	return n
}

// divide moves the cuts past the first k logins of one instant, by id. Any number may have
// logged in at it, as an import may say so: it does not walk over them. It takes the middle
// one of the partition that has the most left, and drops what lies on the wrong side of it.
func (l *listing) divide(at int64, k int, cuts []int) {
	ends := make([]int, len(l.parts))
	for i := range l.parts {
		ends[i] = l.parts[i].before(at + 1)
	}
	smaller := make([]int, len(l.parts))
	for k > 0 {
		// The middle one of the longest.
		most := 0
		for i := range l.parts {
			if ends[i]-cuts[i] > ends[most]-cuts[most] {
				most = i
			}
		}
		if ends[most] == cuts[most] {
			return // fewer than k
		}
		middle := l.parts[most].id(cuts[most] + (ends[most]-cuts[most])/2)

		// Those smaller than it, if they are no more than k, go before the cuts, and so does it.
		sum := 0
		for i := range l.parts {
			smaller[i] = l.parts[i].search(cuts[i], ends[i], middle)
			sum += smaller[i] - cuts[i]
		}
		if sum >= k {
			copy(ends, smaller)
			if sum == k {
				copy(cuts, smaller)
				return
			}
			continue
		}
		copy(cuts, smaller)
		cuts[most]++
		k -= sum + 1
	}
}

// cutAt cuts every partition before an id, or after it.
func (l *listing) cutAt(id rollcall.SessionID, after bool) []int {
	cuts := make([]int, len(l.parts))
	at := id.Time().UnixMilli()
	for i := range l.parts {
		m := &l.parts[i]
		j := m.search(m.before(at), m.before(at+1), id)
		if after && j < m.n && m.id(j) == id {
			j++
		}
		cuts[i] = j
	}
	return cuts
}

// merge walks the matches of all partitions in login order.
type merge struct {
	parts      []matches
	upcoming   []int                // by partition: the match to come
	heads      []rollcall.SessionID // by partition: the id of that match
	alive      []bool               // by partition: whether there is one
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

// load reads the head of a partition.
func (m *merge) load(i int) {
	k := m.upcoming[i]
	m.alive[i] = k >= 0 && k < m.parts[i].n
	if m.alive[i] {
		m.heads[i] = m.parts[i].id(k)
	}
}

// next takes the next match of all partitions.
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

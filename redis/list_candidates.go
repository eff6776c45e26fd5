package redis

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// search has what was found among the candidates of each partition.
type search struct {
	items   [][]enginekit.SessionSeen
	left    []int                // candidates not looked at
	horizon []rollcall.SessionID // the last candidate looked at, where some are left
	walks   [][]*candidateWalk
}

// candidateWalk is how far a walk over the candidates of one partition, or of one user in it,
// has come.
type candidateWalk struct {
	user   string // "" for all
	behind string // the last candidate looked at
	looked int
	left   int
	done   bool
}

// Candidates that one script looks at: with the last sign of life of each that
// meets the conditions, and without.
const (
	candidateStepSeen  = 150
	candidateStep      = 500
	candidateStepFirst = 50 // while it is not known how many there are
)

// What scripts that look at candidates cost, in candidates of candidateStep: so much
// together is under way of one list, as Redis serves nobody else meanwhile.
const (
	candidatesAtOnce   = 1500
	candidatesOfScript = 10 // what it costs besides
)

// answerGathered answers a query whose sessions have to be gathered before they can be
// sorted.
func (l *listing) answerGathered(ctx context.Context, indexed []string) (rollcall.Page[rollcall.Session], error) {
	var page rollcall.Page[rollcall.Session]
	items, partial, edge, err := l.gather(ctx, indexed)
	if err != nil {
		return page, err
	}
	page.Total, page.TotalIsLowerBound = len(items), partial
	if l.limit() == 0 {
		return page, nil
	}
	// The total is that of a walk from the beginning. If that did not reach the page, walk
	// again from the cursor.
	if partial && l.q.Page.Cursor != "" && l.q.Sort != rollcall.NewestSeen {
		if items, partial, edge, err = l.startingAt(l.q.Page.Cursor).gather(ctx, indexed); err != nil {
			return page, err
		}
	}
	l.sort(items)

	// Cut the page out, and say where the next one begins.
	total, bound := page.Total, page.TotalIsLowerBound
	rest, began := l.afterCursor(items)
	page, err = l.pageOf(ctx, total, rest)
	page.TotalIsLowerBound = bound
	if l.q.Sort == rollcall.NewestSeen && page.Next != "" {
		last := page.Items[len(page.Items)-1]
		page.Next = enginekit.SeenCursor{Began: began, After: enginekit.SessionSeen{At: last.SeenAt.UnixMilli(), ID: last.ID}}.Encode()
	}
	if page.Next == "" && partial && l.q.Sort != rollcall.NewestSeen {
		page.Next = idText(edge)
	}
	return page, err
}

func (l *listing) pageOf(ctx context.Context, total int, items []enginekit.SessionSeen) (rollcall.Page[rollcall.Session], error) {
	return l.page(ctx, total, func(context.Context) (rollcall.SessionID, bool, error) {
		if len(items) == 0 {
			return rollcall.SessionID{}, false, nil
		}
		id := items[0].ID
		items = items[1:]
		return id, true, nil
	})
}

// startingAt returns the same question about the sessions from a cursor on.
func (l *listing) startingAt(cursor string) *listing {
	out := *l
	at := idOf(cursor).Time().UnixMilli()
	if l.down() {
		out.high = min(l.high, at+1)
	} else {
		out.low = max(l.low, at)
	}
	return &out
}

func (l *listing) sort(items []enginekit.SessionSeen) {
	slices.SortFunc(items, func(a, b enginekit.SessionSeen) int {
		switch {
		case l.q.Sort == rollcall.NewestSeen && a.Before(b):
			return -1
		case l.q.Sort == rollcall.NewestSeen:
			return 1
		case l.down():
			return bytes.Compare(b.ID[:], a.ID[:])
		default:
			return bytes.Compare(a.ID[:], b.ID[:])
		}
	})
}

// afterCursor cuts off what stands before the page, and returns when its walk began.
func (l *listing) afterCursor(items []enginekit.SessionSeen) ([]enginekit.SessionSeen, int64) {
	began := l.at.UnixMilli()
	for _, s := range items {
		began = max(began, s.At)
	}
	if l.q.Page.Cursor == "" {
		return items[min(len(items), l.skip()):], began
	}
	after := func(s enginekit.SessionSeen) bool {
		id := idOf(l.q.Page.Cursor)
		c := bytes.Compare(s.ID[:], id[:])
		return (l.down() && c < 0) || (!l.down() && c > 0)
	}
	if l.q.Sort == rollcall.NewestSeen {
		c := enginekit.DecodeSeenCursor(l.q.Page.Cursor)
		began = c.Began
		after = c.After.Before
	}
	i := slices.IndexFunc(items, after)
	if i < 0 {
		i = len(items)
	}
	return items[i:], began
}

// gather returns the sessions that meet the filter. partial says that it could not look at all
// candidates; edge is then how far it came, in login order.
func (l *listing) gather(ctx context.Context, indexed []string) (items []enginekit.SessionSeen, partial bool, edge rollcall.SessionID, err error) {
	s, err := l.search(ctx, indexed)
	if err != nil {
		return nil, false, edge, err
	}
	for p := range s.items {
		items = append(items, s.items[p]...)
		if s.left[p] == 0 {
			continue
		}
		h := s.horizon[p]
		if !partial || (bytes.Compare(h[:], edge[:]) > 0) == l.down() {
			edge = h
		}
		partial = true
	}
	if partial && l.q.Sort != rollcall.NewestSeen { // past the nearest horizon a partition may lack some
		items = slices.DeleteFunc(items, func(s enginekit.SessionSeen) bool {
			c := bytes.Compare(s.ID[:], edge[:])
			return c != 0 && (c < 0) == l.down()
		})
	}
	if l.needsRecords() {
		items, err = l.keepMatching(ctx, items)
	}
	return items, partial, edge, err
}

// search finds the candidates in all partitions. If each of them has to be read, it looks at
// maxCandidates at most: each partition gets its share, and if all that is left then is few
// enough, search looks at that too.
func (l *listing) search(ctx context.Context, indexed []string) (*search, error) {
	// A walk for each partition, or for each of the users in question.
	n := len(l.e.keyPrefixes)
	s := &search{items: make([][]enginekit.SessionSeen, n), left: make([]int, n), horizon: make([]rollcall.SessionID, n)}
	all := make([]int, n)
	for p := range all {
		all[p] = p
	}
	most := 0
	if l.needsRecords() && l.q.Filter.Users == nil {
		most = max(1, l.e.maxCandidates/n)
	}
	s.walks = make([][]*candidateWalk, n)
	for p := range s.walks {
		if l.q.Filter.Users == nil {
			s.walks[p] = []*candidateWalk{{}}
			continue
		}
		for _, u := range l.e.usersIn(p, l.q.Filter.Users) {
			s.walks[p] = append(s.walks[p], &candidateWalk{user: u})
		}
	}
	if err := l.askCandidates(ctx, s, indexed, all, most); err != nil {
		return nil, err
	}

	// Each partition had its share. If all that is left is little enough, look at it too.
	looked, left := 0, 0
	var rest []int
	for p := range s.left {
		if s.left[p] > 0 {
			rest = append(rest, p)
			looked += most
		}
		left += s.left[p]
	}
	if left == 0 || looked+left > l.e.maxCandidates {
		return s, nil
	}
	return s, l.askCandidates(ctx, s, indexed, rest, 0)
}

// askCandidates looks at candidates of partitions in bounded steps, once each has ended
// what is due: at most so many in each, 0 for all.
func (l *listing) askCandidates(ctx context.Context, s *search, indexed []string, parts []int, most int) error {
	if len(indexed) == 0 && l.q.Filter.Users == nil {
		indexed = []string{allSessions}
	}
	budget := fmt.Sprint(dueFirst)
	for {
		// One step of each walk that is not over.
		var calls []call
		var walks []*candidateWalk
		var of []int
		for _, p := range parts {
			for _, w := range s.walks[p] {
				if step := l.step(w, most); step > 0 {
					calls = append(calls, l.candidateCall(p, w, step, budget, indexed))
					walks, of = append(walks, w), append(of, p)
				}
			}
		}
		if len(calls) == 0 {
			break
		}
		messages, err := l.e.doInTurn(ctx, l.at.UnixMilli(), calls, candidatesAtOnce, func(i int) int { return l.cost(walks[i], most) })
		if err != nil {
			return err
		}

		// Partitions with much that is due did nothing else: end that, and ask again.
		var late []int
		for i, msg := range messages {
			due, err := l.takeCandidates(s, of[i], walks[i], msg)
			if err != nil {
				return err
			}
			if due && !slices.Contains(late, of[i]) {
				late = append(late, of[i])
			}
		}
		if len(late) == 0 {
			budget = "0"
		}
		if err := l.e.endDue(ctx, l.at.UnixMilli(), late); err != nil {
			return err
		}
	}
	for _, p := range parts {
		s.left[p] = 0
		for _, w := range s.walks[p] {
			s.left[p] += w.left
			s.horizon[p] = idOf(w.behind)
		}
	}
	return nil
}

// step returns how many candidates the next step of a walk looks at.
func (l *listing) step(w *candidateWalk, most int) int {
	step := l.mostStep()
	if w.behind == "" {
		step = candidateStepFirst
	}
	switch {
	case w.done:
		return 0
	case most > 0:
		return min(step, most-w.looked)
	default:
		return step
	}
}

func (l *listing) mostStep() int {
	if l.q.Sort == rollcall.NewestSeen {
		return candidateStepSeen
	}
	return candidateStep
}

// cost estimates what the next step of a walk costs.
func (l *listing) cost(w *candidateWalk, most int) int {
	step := l.step(w, most)
	if w.behind != "" {
		step = min(step, w.left)
	}
	cost := candidatesOfScript + step*candidateStep/l.mostStep()
	if l.e.areManyDue() {
		cost += candidatesAtOnce / dueAsked // the script ends some as well
	}
	return cost
}

func (l *listing) candidateCall(p int, w *candidateWalk, step int, budget string, indexed []string) call {
	args := []string{
		fmt.Sprint(l.low), fmt.Sprint(l.high), flag(l.down()), fmt.Sprint(step), flag(l.public()), budget,
		w.behind, flag(l.q.Sort == rollcall.NewestSeen), w.user,
	}
	return partCall(p, &l.e.scripts.listIntersect, append(args, indexed...)...)
}

// takeCandidates takes the answer of a step. due says that the partition had more to end than
// one step does, and answered nothing else.
func (l *listing) takeCandidates(s *search, p int, w *candidateWalk, msg rueidis.RedisMessage) (due bool, err error) {
	reply, err := msg.ToArray()
	if err != nil || len(reply) != 6 {
		return false, damaged("a list of sessions")
	}
	if n, _ := reply[0].AsInt64(); n == 1 {
		return true, nil
	}
	total, _ := reply[1].AsInt64()
	last, _ := reply[2].ToString()
	packed, _ := reply[3].ToString()
	looked, _ := reply[4].AsInt64()
	s.items[p] = append(s.items[p], seenOf(packed)...)
	w.looked += int(looked)
	w.left = max(0, int(total)-w.looked)
	if last != "" {
		w.behind = last
	}
	if over, _ := reply[5].AsInt64(); over == 1 {
		w.done, w.left = true, 0
	}
	return false, nil
}

// usersIn returns those of some users who belong to a partition, each once.
func (e *Engine) usersIn(part int, users []string) []string {
	out := []string{}
	for _, u := range users {
		if e.partOf(u) == part {
			out = append(out, u)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

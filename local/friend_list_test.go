package local

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// friendWorld is a service whose users have come and gone at random.
type friendWorld struct {
	*require.Assertions
	t     *testing.T
	rng   *rand.Rand
	clock *rollcall.ManualClock
	roll  *rollcall.Roll
	users []string
}

func newFriendWorld(t *testing.T, users int) *friendWorld {
	w := &friendWorld{
		Assertions: require.New(t), t: t, rng: rand.New(rand.NewPCG(1, 2)),
		clock: rollcall.NewManualClock(startOfTests()),
	}
	eng, err := Open("", Options{InMemory: true})
	w.NoError(err)
	w.roll, err = rollcall.New(eng, rollcall.Options{Clock: w.clock, Window: 4 * time.Second})
	w.NoError(err)
	t.Cleanup(func() { w.NoError(w.roll.Close()); w.NoError(eng.Close()) })

	// Ids that begin alike over several pieces of an id, one of which begins with the other,
	// numbers, and letters of several bytes.
	for i := range users {
		forms := []string{
			strconv.Itoa(i), fmt.Sprintf("%012d", i), strings.Repeat("a", 1+i%rollcall.MaxUserLen),
			strings.Repeat("common ", 17) + strconv.Itoa(i), "é" + strconv.Itoa(i%50), "u" + strings.Repeat("ü", i%60),
		}
		w.users = append(w.users, forms[i%len(forms)])
	}
	slices.Sort(w.users)
	w.users = slices.Compact(w.users)
	return w
}

func (w *friendWorld) some(most int) []string {
	out := slices.Clone(w.users)
	w.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:w.rng.IntN(min(most, len(out))+1)]
}

// live lets some time pass, in which users come, go and hide.
func (w *friendWorld) live() {
	ctx := w.t.Context()
	for range 3 {
		w.clock.Advance(time.Duration(w.rng.IntN(3)) * time.Second)
		w.NoError(w.roll.Beat(ctx, w.some(300)...))
	}
	for _, u := range w.some(10) {
		_, err := w.roll.Login(ctx, rollcall.Login{User: u})
		w.NoError(err)
		_, err = w.roll.Kick(ctx, rollcall.Kick{User: u})
		w.NoError(err)
	}
	for _, u := range w.some(10) {
		hide := w.rng.IntN(2) == 0
		_, err := w.roll.PutUser(ctx, u, rollcall.UserPatch{Invisible: &hide})
		w.NoError(err)
	}
}

// befriend gives somebody a new list, many of the same time, and returns it.
func (w *friendWorld) befriend(user string) map[string]time.Time {
	var list []rollcall.Friend
	for _, f := range w.some(600) {
		if f != user {
			since := startOfTests().Add(-time.Duration(w.rng.IntN(3)*w.rng.IntN(40)) * time.Millisecond)
			list = append(list, rollcall.Friend{User: f, Since: since})
		}
	}
	w.NoError(w.roll.ReplaceFriends(w.t.Context(), user, list))
	edges := make(map[string]time.Time, len(list))
	for _, f := range list {
		edges[f.User] = f.Since
	}
	return edges
}

// plainList is the list as its definition says: the status of each friend, sorted.
func (w *friendWorld) plainList(view *rollcall.Roll, edges map[string]time.Time, online bool, by rollcall.FriendSort) []rollcall.FriendStatus {
	var out []rollcall.FriendStatus
	for user, since := range edges {
		status, err := view.Status(w.t.Context(), user)
		w.NoError(err)
		if !online || status[0].Online {
			out = append(out, rollcall.FriendStatus{User: user, Since: since, Online: status[0].Online, LastSeen: status[0].LastSeen})
		}
	}
	slices.SortFunc(out, func(a, b rollcall.FriendStatus) int {
		if by == rollcall.FriendsByLastSeen {
			return cmp.Or(b.LastSeen.Compare(a.LastSeen), strings.Compare(a.User, b.User))
		}
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.User, b.User))
	})
	return out
}

// compare takes pages of a list and holds them to the plain one.
func (w *friendWorld) compare(want []rollcall.FriendStatus, list func(rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error)) {
	take := func(r rollcall.PageRequest, from, to int) string {
		page, err := list(r)
		w.NoError(err)
		w.Equal(len(want), page.Total)
		w.Equal(append([]rollcall.FriendStatus(nil), want[from:to]...), page.Items)
		w.Equal(to < len(want) && r.Limit > 0, page.Next != "")
		return page.Next
	}
	limit := 1 + w.rng.IntN(40)
	number := 1 + w.rng.IntN(min(rollcall.MaxMovingPages, len(want)/limit+2))
	from := min(len(want), (number-1)*limit)
	take(rollcall.PageRequest{}, 0, 0)
	take(rollcall.PageRequest{Limit: limit, Number: number}, from, min(len(want), from+limit))
	take(rollcall.PageRequest{Limit: rollcall.MaxLimit}, 0, len(want))
	for at, cursor := 0, ""; ; at += limit {
		cursor = take(rollcall.PageRequest{Limit: limit, Cursor: cursor}, at, min(len(want), at+limit))
		if cursor == "" {
			return
		}
	}
}

func TestPagesOfFriendsAreThoseOfAPlainList(t *testing.T) {
	w := newFriendWorld(t, 900)
	for range testbudget.Rounds(t, testbudget.Budget{Least: 3, Most: 40, Time: 2 * time.Second}) {
		w.live()
		asker := w.users[w.rng.IntN(len(w.users))]
		edges := w.befriend(asker)
		for _, viewer := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
			view := w.roll.As(viewer)
			w.compare(w.plainList(view, edges, false, rollcall.FriendsBySince), func(r rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
				return view.Friends(t.Context(), asker, r)
			})
			for _, sort := range []rollcall.FriendSort{rollcall.FriendsByLastSeen, rollcall.FriendsBySince} {
				w.compare(w.plainList(view, edges, true, sort), func(r rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
					return view.OnlineFriends(t.Context(), rollcall.FriendQuery{User: asker, Sort: sort, Page: r})
				})
			}
		}
	}
}

// TestAListOfFriendsIsOfOneInstant reads a list while it is replaced by another one, of
// other partitions, again and again.
func TestAListOfFriendsIsOfOneInstant(t *testing.T) {
	w := newFriendWorld(t, 200)
	var lists [3][]rollcall.Friend
	for i, u := range w.users[:60] {
		lists[i%3] = append(lists[i%3], rollcall.Friend{User: u, Since: startOfTests()})
	}
	lists[2] = lists[2][:1]
	w.NoError(w.roll.ReplaceFriends(t.Context(), "alice", lists[0]))
	done := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			page, err := w.roll.Friends(t.Context(), "alice", rollcall.PageRequest{Limit: rollcall.MaxLimit})
			if err != nil || !slices.ContainsFunc(lists[:], func(l []rollcall.Friend) bool { return sameFriends(l, page.Items) }) {
				t.Errorf("a list that never was: %v, %v", page.Items, err)
				return
			}
		}
	})
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 50, Most: 2000, Time: time.Second}) {
		w.NoError(w.roll.ReplaceFriends(t.Context(), "alice", lists[round%3]))
	}
	close(done)
	reader.Wait()
}

func sameFriends(want []rollcall.Friend, got []rollcall.FriendStatus) bool {
	return slices.EqualFunc(want, got, func(a rollcall.Friend, b rollcall.FriendStatus) bool { return a.User == b.User })
}

func TestAPageOfFriendsAllocatesNothingForAFriendWhoIsNotOnIt(t *testing.T) {
	w := newFriendWorld(t, 0)
	allocs := func(friends int) float64 {
		asker := fmt.Sprintf("asker of %d", friends)
		names, list := make([]string, friends), make([]rollcall.Friend, friends)
		for i := range list {
			names[i] = strconv.Itoa(i)
			list[i].User = names[i]
		}
		w.NoError(w.roll.Beat(t.Context(), names...))
		w.NoError(w.roll.ReplaceFriends(t.Context(), asker, list))
		q := rollcall.FriendQuery{User: asker, Page: rollcall.PageRequest{Limit: 20}}
		return testing.AllocsPerRun(100, func() {
			page, err := w.roll.OnlineFriends(t.Context(), q)
			if err != nil || page.Total != friends {
				t.Errorf("%d friends are online, not %d: %v", page.Total, friends, err)
			}
		})
	}
	few, many := allocs(50), allocs(5_000)
	require.LessOrEqual(t, many, few+1)
	require.Less(t, few, 40.0)
}

func TestNthFindsWhatSortingPutsThere(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range testbudget.Rounds(t, testbudget.Budget{Least: 50, Most: 2000, Time: time.Second}) {
		list := make([]uint64, 1+rng.IntN(500))
		step := 1 + rng.Uint64N(1<<40)
		base := ^uint64(0) - step*uint64(len(list))
		for i := range list {
			list[i] = base + step*uint64(i)
		}
		switch rng.IntN(3) {
		case 0:
			rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		case 1:
			slices.Reverse(list)
		}
		sorted := slices.Sorted(slices.Values(list))
		k := rng.IntN(len(list))
		require.Equal(t, sorted[k], nth(list, k))
		require.Equal(t, k, split(list, sorted[k]))
		slices.Sort(list[:k])
		require.Equal(t, sorted[:k], list[:k])
	}
}

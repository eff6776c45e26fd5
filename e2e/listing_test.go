package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

const (
	crowd    = 50_000
	pageSize = 20
)

// fillCrowd logs in a crowd of sessions whose fields repeat as those of real
// ones do, and returns them oldest first.
func fillCrowd(s *site) []rollcall.Session {
	s.t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]rollcall.Session, 0, crowd)
	for range crowd {
		if rng.IntN(50) == 0 { // many share their millisecond
			s.clock.Advance(time.Millisecond)
		}
		b, err := s.Login(s.ctx, rollcall.Login{
			User:   fmt.Sprint(rng.IntN(crowd / 2)),
			Kind:   []string{"user", "office", "client"}[rng.IntN(3)],
			App:    fmt.Sprint("app", rng.IntN(8)),
			Device: []string{"web", "ios", "android", "desktop"}[rng.IntN(4)],
			Name:   fmt.Sprintf("Name %d", rng.IntN(2000)),
			IP:     netip.AddrFrom4([4]byte{10, byte(rng.IntN(4)), byte(rng.IntN(250)), byte(rng.IntN(250))}),
			Attrs:  map[string]string{"city": fmt.Sprint(rng.IntN(500)), "n": fmt.Sprintf("%08x", rng.Uint32())},
		})
		require.NoError(s.t, err)
		all = append(all, b.Session)
	}
	slices.SortFunc(all, func(a, b rollcall.Session) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return all
}

// selection is a filter, and what it means.
type selection struct {
	filter rollcall.SessionFilter
	keeps  func(*rollcall.Session) bool
}

func selections(all []rollcall.Session) map[string]selection {
	one := all[crowd/3]
	network := netip.MustParsePrefix("10.1.64.0/18")
	from, to := all[crowd/4].LoginAt, all[crowd/2].LoginAt
	within := func(x *rollcall.Session) bool { return !x.LoginAt.Before(from) && x.LoginAt.Before(to) }
	return map[string]selection{
		"none":  {rollcall.SessionFilter{}, func(*rollcall.Session) bool { return true }},
		"user":  {rollcall.SessionFilter{Users: []string{one.User}}, func(x *rollcall.Session) bool { return x.User == one.User }},
		"users": {rollcall.SessionFilter{Users: []string{"1", "2", "3"}}, func(x *rollcall.Session) bool { return x.User == "1" || x.User == "2" || x.User == "3" }},
		"kind":  {rollcall.SessionFilter{Kind: "office"}, func(x *rollcall.Session) bool { return x.Kind == "office" }},
		"app and device": {
			rollcall.SessionFilter{App: "app3", Device: "ios"},
			func(x *rollcall.Session) bool { return x.App == "app3" && x.Device == "ios" },
		},
		"address": {
			rollcall.SessionFilter{IP: netip.PrefixFrom(one.IP, 32)},
			func(x *rollcall.Session) bool { return x.IP == one.IP },
		},
		"network": {rollcall.SessionFilter{IP: network}, func(x *rollcall.Session) bool { return network.Contains(x.IP) }},
		"name":    {rollcall.SessionFilter{Name: "name 19"}, func(x *rollcall.Session) bool { return strings.HasPrefix(strings.ToLower(x.Name), "name 19") }},
		"attribute": {
			rollcall.SessionFilter{Attrs: map[string]string{"city": "77"}},
			func(x *rollcall.Session) bool { return x.Attrs["city"] == "77" },
		},
		"login time": {rollcall.SessionFilter{LoginAfter: from, LoginBefore: to}, within},
		"together": {
			rollcall.SessionFilter{LoginAfter: from, LoginBefore: to, Kind: "client", IP: network, Name: "Name 1"},
			func(x *rollcall.Session) bool {
				return within(x) && x.Kind == "client" && network.Contains(x.IP) && strings.HasPrefix(x.Name, "Name 1")
			},
		},
		"nothing": {rollcall.SessionFilter{Kind: "office", App: "none"}, func(*rollcall.Session) bool { return false }},
	}
}

// TestManySessions lists a crowd on the embedded engine: pages first, then
// walks, which change it.
func TestManySessions(t *testing.T) {
	s := newSite(t, embedded(), rollcall.Options{})
	all := fillCrowd(s)
	t.Run("any page", func(t *testing.T) { anyPage(t, s, all) })
	t.Run("a walk under churn", func(t *testing.T) {
		for _, sort := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestLogin, rollcall.NewestSeen} {
			t.Run(string(sort), func(t *testing.T) { all = walkUnderChurn(t, s, sort, all) })
		}
	})
}

// anyPage compares the first, some middle and the last page of every selection,
// by number and by cursor, in both orders of login, with what a plain list says.
func anyPage(t *testing.T, s *site, all []rollcall.Session) {
	for name, sel := range selections(all) {
		var want []rollcall.SessionID // oldest first
		for i := range all {
			if sel.keeps(&all[i]) {
				want = append(want, all[i].ID)
			}
		}
		for _, sort := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestLogin} {
			t.Run(fmt.Sprint(name, " ", sort), func(t *testing.T) {
				comparePages(t, s, rollcall.SessionQuery{Filter: sel.filter, Sort: sort}, want)
			})
			slices.Reverse(want)
		}
	}
}

func comparePages(t *testing.T, s *site, q rollcall.SessionQuery, want []rollcall.SessionID) {
	t.Helper()
	last := max(1, (len(want)+pageSize-1)/pageSize)
	for _, number := range []int{1, 2, last / 3, last / 2, last - 1, last, last + 1} {
		if number < 1 {
			continue
		}
		q.Page = rollcall.PageRequest{Limit: pageSize, Number: number}
		page := comparePage(t, s, q, want, number)
		if page.Next == "" {
			require.GreaterOrEqual(t, number, last, "a page in the middle leads on")
			continue
		}
		q.Page = rollcall.PageRequest{Limit: pageSize, Cursor: page.Next}
		comparePage(t, s, q, want, number+1)
	}
}

// comparePage expects the part of the list that is page number, exactly.
func comparePage(t *testing.T, s *site, q rollcall.SessionQuery, want []rollcall.SessionID, number int) rollcall.Page[rollcall.Session] {
	t.Helper()
	page, err := s.Sessions(s.ctx, q)
	require.NoError(t, err)
	require.Equal(t, len(want), page.Total)
	require.False(t, page.TotalIsLowerBound)
	from := min((number-1)*pageSize, len(want))
	part := want[from:min(from+pageSize, len(want))]
	require.Len(t, page.Items, len(part), "page %d", number)
	for i := range part {
		require.Equal(t, part[i], page.Items[i].ID, "page %d, item %d", number, i)
	}
	return page
}

// walkUnderChurn walks a list from end to end while sessions end, begin and are
// touched all over it. Whoever lives through the walk is met exactly once in the
// orders of login, and nobody twice in any order. It returns the sessions that
// were there before the walk and are there after it.
func walkUnderChurn(t *testing.T, s *site, sort rollcall.SessionSort, all []rollcall.Session) []rollcall.Session {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	gone, met := map[rollcall.SessionID]bool{}, map[rollcall.SessionID]int{}
	q := rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	for {
		page, err := s.Sessions(s.ctx, q)
		require.NoError(t, err)
		for i := range page.Items {
			require.False(t, gone[page.Items[i].ID], "an ended session is on no page")
			met[page.Items[i].ID]++
		}
		if page.Next == "" {
			break
		}
		require.Len(t, page.Items, rollcall.MaxLimit)
		q.Page.Cursor = page.Next
		churn(s, rng, all, gone)
	}
	var survivors []rollcall.Session
	for _, x := range all {
		if gone[x.ID] {
			require.LessOrEqual(t, met[x.ID], 1)
			continue
		}
		survivors = append(survivors, x)
		if sort != rollcall.NewestSeen {
			require.Equal(t, 1, met[x.ID], "%s lived through the walk", x.ID)
		}
	}
	for id, n := range met {
		require.Equal(t, 1, n, "%s", id)
	}
	require.Greater(t, len(gone), 1000)
	return survivors
}

// churn ends, begins and touches some sessions, a moment later.
func churn(s *site, rng *rand.Rand, all []rollcall.Session, gone map[rollcall.SessionID]bool) {
	s.t.Helper()
	s.clock.Advance(10 * time.Millisecond)
	var refs []rollcall.SessionRef
	for range 30 {
		x := all[rng.IntN(len(all))].ID
		_, err := s.Kick(s.ctx, rollcall.Kick{Session: x})
		require.NoError(s.t, err)
		gone[x] = true
		_, err = s.Login(s.ctx, rollcall.Login{User: fmt.Sprint("guest", rng.IntN(100))})
		require.NoError(s.t, err)
		refs = append(refs, rollcall.SessionRef{ID: all[rng.IntN(len(all))].ID})
	}
	_, err := s.TouchAll(s.ctx, refs)
	require.NoError(s.t, err)
}

package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// TestScanIsBounded asks for names among more sessions than a filter looks at.
func TestScanIsBounded(t *testing.T) {
	t.Parallel()
	e, err := Open(t.Context(), Options{URL: redistest.Start(t, redistest.Options{}).URL(), Partitions: 4, Timeout: time.Minute})
	require.NoError(t, err)
	e.maxCandidates = 100
	roll, err := rollcall.New(e, rollcall.Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, roll.Close())
		require.NoError(t, e.Close())
	}()
	ctx := t.Context()
	want := make(map[rollcall.SessionID]bool)
	for i := range 600 {
		in, err := roll.Login(ctx, rollcall.Login{User: fmt.Sprint("user", i), Name: []string{"Anna", "Bob", "Bert"}[i%3], App: []string{"shop", "blog"}[i%2]})
		require.NoError(t, err)
		if i%3 == 0 {
			want[in.Session.ID] = true
		}
	}
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin} {
		met := make(map[rollcall.SessionID]bool)
		q := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Name: "ann"}, Sort: sort, Page: rollcall.PageRequest{Limit: 10}}
		for pages := 0; ; pages++ {
			require.Less(t, pages, 200)
			page, err := roll.Sessions(ctx, q)
			require.NoError(t, err)
			require.True(t, page.TotalIsLowerBound)
			require.Less(t, page.Total, len(want))
			require.Positive(t, page.Total)
			for _, s := range page.Items {
				require.True(t, want[s.ID])
				require.False(t, met[s.ID], "each once")
				met[s.ID] = true
			}
			if page.Next == "" {
				break
			}
			q.Page.Cursor = page.Next
		}
		require.Len(t, met, len(want), "the walk goes on where the look ended")
	}
	e.maxCandidates = 1000
	page, err := roll.Sessions(ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Name: "ann", App: "shop"}, Page: rollcall.PageRequest{Limit: 10, Number: 9}})
	require.NoError(t, err)
	require.False(t, page.TotalIsLowerBound)
	require.Equal(t, 100, page.Total)
	require.Len(t, page.Items, 10)
}

// TestDeepPages compares pages found by counting with a walk.
func TestDeepPages(t *testing.T) {
	t.Parallel()
	e, err := Open(t.Context(), Options{URL: redistest.Start(t, redistest.Options{}).URL(), Partitions: 8, Timeout: time.Minute})
	require.NoError(t, err)
	roll, err := rollcall.New(e, rollcall.Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, roll.Close())
		require.NoError(t, e.Close())
	}()
	ctx := t.Context()
	const sessions, limit = 1400, 90 // to a page behind walkLimit sessions they are counted
	for i := range sessions {
		_, err := roll.Login(ctx, rollcall.Login{User: fmt.Sprint("user", i)})
		require.NoError(t, err)
	}
	hide := true
	for i := range 50 {
		_, err := roll.PutUser(ctx, fmt.Sprint("user", i*23), rollcall.UserPatch{Invisible: &hide})
		require.NoError(t, err)
	}
	for _, v := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin} {
			q := rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: limit}}
			for number := 1; ; number++ {
				walked, err := roll.As(v).Sessions(ctx, q)
				require.NoError(t, err)
				byNumber := q
				byNumber.Page = rollcall.PageRequest{Limit: limit, Number: number}
				page, err := roll.As(v).Sessions(ctx, byNumber)
				require.NoError(t, err)
				require.Equal(t, walked.Items, page.Items, "page %d", number)
				require.Equal(t, walked.Total, page.Total)
				if q.Page.Cursor = walked.Next; walked.Next == "" {
					break
				}
			}
		}
	}
}

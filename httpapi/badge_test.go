package httpapi_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

func TestTheBadgeIsShownToEveryoneIfConfigured(t *testing.T) {
	s := newSite(t)
	w := s.call("", "GET", "/v1/online/badge", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "public, max-age=30", w.Header().Get("Cache-Control"))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.JSONEq(t, `{"count":0}`, w.Body.String())

	s.json(200, `{"count":0}`, "", "GET", "/v1/online/badge?format=json", "")
	r := s.request("", "GET", "/v1/online/badge", "")
	r.Header.Set("Accept", "image/svg+xml,*/*;q=0.8")
	w = s.serve(r)
	require.Equal(t, "image/svg+xml", w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), `aria-label="0 online"`)
	require.Contains(t, s.ok(200, "", "GET", "/v1/online/badge?format=svg", ""), "<svg ")
	require.Equal(t, "format", s.refused(400, rollcall.CodeInvalidArgument, "", "GET", "/v1/online/badge?format=png", "").Field)

	off := newSite(t, func(o *httpapi.Options) { o.Badge = false })
	off.refused(404, rollcall.CodeNotFound, "", "GET", "/v1/online/badge", "")
	off.refused(404, rollcall.CodeNotFound, "admin", "GET", "/v1/online/badge", "")
}

// TestTheBadgeRoundsAndIsCountedOnceIn30Seconds also has an invisible user, who does not count.
func TestTheBadgeRoundsAndIsCountedOnceIn30Seconds(t *testing.T) {
	s := newSite(t)
	beat := func(n int) {
		users := make([]string, n)
		for i := range users {
			users[i] = fmt.Sprint("u", i)
		}
		require.NoError(t, s.roll.Beat(t.Context(), users...))
	}
	beat(9)
	s.ok(200, "writer", "PUT", "/v1/users/u0", `{"invisible":true}`)
	for _, c := range []struct{ online, badge int }{{9, 8}, {43, 42}, {100, 99}, {101, 100}, {105, 100}, {106, 110}, {1286, 1300}} {
		beat(c.online)
		s.clock.Advance(30 * time.Second)
		beat(c.online)
		want := fmt.Sprintf(`{"count":%d}`, c.badge)
		s.json(200, want, "", "GET", "/v1/online/badge", "")
		beat(c.online + 1000)
		s.clock.Advance(30*time.Second - time.Millisecond)
		s.json(200, want, "", "GET", "/v1/online/badge", "")
		s.clock.Advance(time.Hour) // nobody is online
	}
	beat(1286)
	require.Contains(t, s.ok(200, "", "GET", "/v1/online/badge?format=svg", ""), ">1.3k<")
}

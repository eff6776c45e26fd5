package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// timelineAnswer is a page of a timeline as it comes over HTTP.
type timelineAnswer struct {
	Items []map[string]string `json:"items"`
	Next  string              `json:"next"`
}

// timeline asks for a page of a timeline.
func (s *site) timeline(as, target string) (out timelineAnswer) {
	s.t.Helper()
	s.decode(s.ok(200, as, "GET", target, ""), &out)
	return out
}

func TestATimelineSaysWhyAUserIsOffline(t *testing.T) {
	s := newSite(t)
	id, _ := s.login(`{"user":"alice","app":"shop","device":"ios","ip":"203.0.113.7","user_agent":"Shop/1"}`)
	s.clock.Advance(time.Minute)
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"alice","reason":"spam"}`)
	got := s.timeline("reader", "/v1/users/alice/timeline?types=session.ended,session.started")
	require.Empty(t, got.Next)
	require.Len(t, got.Items, 2)
	ended := got.Items[0]
	for name, want := range map[string]string{
		"type": "session.ended", "user": "alice", "session": id, "cause": "kicked", "reason": "spam",
		"app": "shop", "device": "ios", "ip": "203.0.113.7", "user_agent": "Shop/1",
	} {
		require.Equal(t, want, ended[name], name)
	}
	require.NotEmpty(t, ended["actor"])
	require.Equal(t, "session.started", got.Items[1]["type"])

	page := s.timeline("reader", "/v1/users/alice/timeline?limit=1&types=session.ended,session.started")
	require.Equal(t, got.Items[:1], page.Items)
	require.NotEmpty(t, page.Next)
	page = s.timeline("reader", "/v1/users/alice/timeline?limit=1&types=session.started,session.ended&cursor="+page.Next)
	require.Equal(t, got.Items[1:], page.Items, "the order of the types does not matter")
	since := s.timeline("reader", "/v1/users/alice/timeline?types=session.ended,session.started&since="+ended["at"])
	require.Equal(t, got.Items[:1], since.Items)
	until := s.timeline("reader", "/v1/users/alice/timeline?types=session.ended,session.started&until="+ended["at"])
	require.Equal(t, got.Items[1:], until.Items)
	s.json(200, `{"items":[]}`, "reader", "GET", "/v1/users/nobody/timeline", "")
}

func TestATimelineRefusesWhatItCannotMean(t *testing.T) {
	s := newSite(t)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "types=": "types", "types=x": "types", "types=session.ended,session.ended": "types",
		"since=yesterday": "since", "until=": "until", "since=2026-02-03T00:00:00Z&until=2026-02-03T00:00:00Z": "until", "cursor=x": "cursor",
	} {
		require.Equal(t, field, s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/users/alice/timeline?"+query, "").Field, query)
	}
}

// TestACursorOfATimelineIsNoUseElsewhere takes a cursor to other users, other roles and other lists.
func TestACursorOfATimelineIsNoUseElsewhere(t *testing.T) {
	s := newSite(t)
	for _, user := range []string{"alice", "bob"} {
		for range 3 {
			s.login(`{"user":"` + user + `"}`)
		}
	}
	next := s.timeline("admin", "/v1/users/alice/timeline?limit=1").Next
	require.NotEmpty(t, next)
	s.ok(200, "admin", "GET", "/v1/users/alice/timeline?limit=2&cursor="+next, "")
	for _, target := range []string{
		"/v1/users/bob/timeline?limit=1&cursor=", "/v1/users/alice/timeline?types=session.started&cursor=", "/v1/sessions?cursor=", "/v1/audit?cursor=",
	} {
		require.Equal(t, "cursor", s.refused(400, rollcall.CodeInvalidArgument, "admin", "GET", target+next, "").Field, target)
	}
	require.Equal(t, "cursor", s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/users/alice/timeline?cursor="+next, "").Field)
	for _, forged := range []string{next[:len(next)-1], next + "A", strings.ToLower(next), next[:22] + "AAAAAAAAAAAAAAAA"} {
		s.refused(400, rollcall.CodeInvalidArgument, "admin", "GET", "/v1/users/alice/timeline?cursor="+forged, "")
	}
}

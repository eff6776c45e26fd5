package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestTheListOfUsersTakesWindowAllAsTheCountDoes(t *testing.T) {
	s := newSite(t)
	for i := range 5 {
		id, _ := s.login(fmt.Sprintf(`{"user":"u%d"}`, i))
		if i == 2 {
			s.ok(200, "writer", "POST", "/v1/kicks", fmt.Sprintf(`{"session":%q}`, id))
		}
		s.clock.Advance(24 * time.Hour)
	}
	s.json(200, `{"count":5}`, "reader", "GET", "/v1/online/count?window=all", "")

	var users []string
	for next := ""; ; {
		var page struct {
			Items []struct{ User string }
			Total int
			Next  string
		}
		require.NoError(t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", "/v1/online?window=all&limit=2"+next, "")), &page))
		require.Equal(t, 5, page.Total)
		for _, u := range page.Items {
			users = append(users, u.User)
		}
		if page.Next == "" {
			break
		}
		next = "&cursor=" + page.Next
	}
	require.Equal(t, []string{"u4", "u3", "u2", "u1", "u0"}, users)

	for _, target := range []string{"/v1/online?window=ALL", "/v1/users/u1/friends/online?window=all"} {
		require.Equal(t, "window", s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", target, "").Field, target)
	}
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/online?window=1d12h", ""), `"total":1`)
}

package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// streaming answers each request for events with the next of some texts, and then
// with silence. It notes where each was to go on.
func streaming(after *[]string, texts ...string) wire {
	return func(r *http.Request) (*http.Response, error) {
		n := len(*after)
		*after = append(*after, r.Header.Get("Last-Event-ID"))
		if n >= len(texts) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return answer(200, texts[n]), nil
	}
}

func sent(id string) string {
	return fmt.Sprintf("id: %s\nevent: user.online\ndata: {\"id\":%q,\"type\":\"user.online\",\"at\":\"2026-02-03T04:05:06.789Z\",\"user\":\"ann\"}\n\n", id, id)
}

// told takes what a reader of events is told until it was so much.
func told(ctx context.Context, c *client.Client, after rollcall.EventID, most int) []string {
	var out []string
	for e, err := range c.Events(ctx, after, rollcall.EventFilter{}) {
		switch {
		case errors.Is(err, rollcall.ErrEventsGone):
			out = append(out, "gone")
		case err != nil:
			out = append(out, string(rollcall.CodeOf(err)))
		default:
			out = append(out, string(e.ID))
		}
		if len(out) == most {
			break
		}
	}
	return out
}

// TestEventsGoOnBehindTheLastOne: over connections that are lost, without those that
// come again, behind places that are no events, and behind a reset.
func TestEventsGoOnBehindTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after []string
		c := over(t, streaming(&after,
			": rollcall\nretry: 50\n\n"+sent("1")+sent("2")+"id: 3\nevent: user", // cut
			sent("2")+sent("4")+": beat\n\nid: 7\n\n",
			"id: 9\nevent: reset\ndata: {\"detail\":\"x\"}\n\n"+sent("2"),
			sent("10"),
		))
		require.Equal(t, []string{"1", "2", "4", "gone", "2", "10"}, told(t.Context(), c, "", 6))
		require.Equal(t, []string{"start", "2", "7", "2"}, after)

		after = nil
		require.Equal(t, []string{"5"}, told(t.Context(), over(t, streaming(&after, sent("5"))), "4", 1))
		require.Equal(t, []string{"4"}, after)
	})
}

func TestASilentStreamIsTakenForLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		c := over(t, func(r *http.Request) (*http.Response, error) {
			res := answer(200, sent(fmt.Sprint(attempts)))
			attempts++
			in, out := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = out.CloseWithError(r.Context().Err()) })
			res.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(res.Body, in), in}
			return res, nil
		})
		began := time.Now()
		require.Equal(t, []string{"0", "1", "2"}, told(t.Context(), c, "", 3))
		require.Greater(t, time.Since(began), 2*time.Minute)
	})
}

func TestEventsEndWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []*http.Request
		require.Equal(t, []string{"unavailable"}, told(t.Context(), over(t, failing(9, lost, "", &asked)), "", 9))
		require.Len(t, asked, 4, "as often as Attempts says")

		forbidden := func(*http.Request) (*http.Response, error) { return answer(403, `{"code":"forbidden"}`), nil }
		require.Equal(t, []string{"forbidden"}, told(t.Context(), over(t, forbidden), "", 9))

		nonsense := func(*http.Request) (*http.Response, error) { return answer(200, "data: {\n\n"), nil }
		require.Equal(t, []string{"internal"}, told(t.Context(), over(t, nonsense), "", 9))

		large := func(*http.Request) (*http.Response, error) { return answer(200, strings.Repeat("x", 2<<20)), nil }
		require.Equal(t, []string{"internal"}, told(t.Context(), over(t, large), "", 9))

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var after []string
		for _, err := range over(t, streaming(&after)).Events(ctx, "", rollcall.EventFilter{}) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

// TestEventsGoOnAfterAConnectionIsLost follows a real server whose connections are
// cut.
func TestEventsGoOnAfterAConnectionIsLost(t *testing.T) {
	s := newSide(t, rollcall.NewManualClock(noon), true)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	c := clientOf(t, s)
	_, err := c.Login(ctx, rollcall.Login{User: "nobody asks for"})
	require.NoError(t, err)

	const logins = 12
	login := func(n int) {
		_, err := c.Login(ctx, rollcall.Login{User: "ann", App: fmt.Sprint(n)})
		require.NoError(t, err)
	}
	login(0)
	seen := map[rollcall.SessionID]bool{}
	filter := rollcall.EventFilter{Types: []rollcall.EventType{rollcall.SessionStarted}, User: "ann"}
	for e, err := range c.Events(ctx, "", filter) {
		require.NoError(t, err)
		require.Equal(t, "ann", e.User)
		require.False(t, seen[e.Session], "an event was told twice")
		if seen[e.Session] = true; len(seen) == logins {
			break
		}
		if len(seen)%3 == 0 {
			s.server.CloseClientConnections()
		}
		login(len(seen))
	}
}

func TestAnEventWithoutEndIsRefusedAtOneMebibyte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var after []string
		line := "data: " + strings.Repeat("x", 100_000) + "\n"
		c := over(t, streaming(&after, strings.Repeat(line, 20)))
		require.Equal(t, []string{"internal"}, told(t.Context(), c, "", 2))
		require.Len(t, after, 1, "it is not asked for again")
	})
}

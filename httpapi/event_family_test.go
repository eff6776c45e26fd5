package httpapi_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// presenceGone is an engine that no longer keeps an event of presence which followed a place.
type presenceGone struct {
	rollcall.Engine
	place rollcall.EventID
}

func (e *presenceGone) EventsAfter(ctx context.Context, q rollcall.EventQuery) (rollcall.EventPart, error) {
	part, err := e.Engine.EventsAfter(ctx, q)
	if q.After == e.place && slices.Contains(q.Reads(), rollcall.PresenceEvents) {
		part.Gone = part.Next
	}
	return part, err
}

func TestAReaderOfSessionsGetsNoResetBecauseOfPresence(t *testing.T) {
	inMemory, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inMemory.Close()) })
	engine := &presenceGone{Engine: inMemory}
	s := newSiteOver(t, engine)
	s.login(`{"user":"alice"}`)
	require.NoError(t, engine.Flush(t.Context()))
	last, err := engine.LastEvent(t.Context(), rollcall.ViewerAdmin)
	require.NoError(t, err)
	s.login(`{"user":"bob"}`)
	engine.place = last

	for query, reset := range map[string]bool{
		"types=session.started": false, "types=session.started,session.ended&user=bob": false,
		"": true, "types=user.online": true, "types=session.started,user.online": true,
	} {
		var page struct {
			Items []told
			Reset bool
		}
		require.NoError(t, json.Unmarshal([]byte(s.page("reader", query+"&after="+string(last))), &page))
		require.Equal(t, reset, page.Reset, "%s", query)
		if !reset {
			require.Equal(t, "bob", page.Items[0].User)
		}
	}

	base := s.listen()
	require.Equal(t, "bob", s.open(base, "reader", "/v1/events?types=session.started", "Last-Event-ID", string(last)).event().User)
	require.Equal(t, "reset", s.open(base, "reader", "/v1/events", "Last-Event-ID", string(last)).next().Event)
}

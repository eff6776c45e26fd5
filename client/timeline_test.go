package client_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// timelineStep reads a timeline to its end.
func timelineStep(q rollcall.TimelineQuery) step {
	return step{"Timeline", func(ctx context.Context, one *side) (any, error) {
		var out []string
		for q := q; ; {
			found, err := one.Timeline(ctx, q)
			if err != nil {
				return nil, err
			}
			for _, e := range found.Items {
				out = append(out, fmt.Sprint(happened([]rollcall.Event{e.Event}), e.App, e.Device, e.IP, e.UserAgent))
			}
			if q.Cursor = found.Next; found.Next == "" {
				slices.Sort(out) // of one command the order is that of ids, which are random
				return out, nil
			}
		}
	}}
}

func TestATimelineIsWalkedByCursor(t *testing.T) {
	clock := rollcall.NewManualClock(noon)
	s := newSide(t, clock, true)
	ctx, c := t.Context(), clientOf(t, s)
	for range 4 {
		_, err := c.Login(ctx, rollcall.Login{User: "ann/bob", App: "shop", Device: "ios", IP: mustAddr("2001:db8::1"), UserAgent: "Shop/1"})
		require.NoError(t, err)
		_, err = c.Kick(ctx, rollcall.Kick{User: "ann/bob", Reason: "spam"})
		require.NoError(t, err)
		clock.Advance(time.Second)
	}
	q := rollcall.TimelineQuery{User: "ann/bob", Types: []rollcall.EventType{rollcall.SessionStarted, rollcall.SessionEnded}}
	all := gathered(t, c.WholeTimeline(ctx, q))
	require.Len(t, all, 8)
	require.Equal(t, rollcall.SessionEnded, all[0].Type)
	require.Equal(t, "spam", all[0].Reason)
	for i, e := range all {
		require.False(t, i > 0 && e.At.After(all[i-1].At), "newest first")
		require.Equal(t, []any{"shop", "ios", mustAddr("2001:db8::1"), "Shop/1"}, []any{e.App, e.Device, e.IP, e.UserAgent})
	}
	q.Limit = 3
	require.Equal(t, all, gathered(t, c.WholeTimeline(ctx, q)))
	q.User = ""
	require.Error(t, lastError(c.WholeTimeline(ctx, q)))
}

package httpapi

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/fanout"
)

// TestAPageThatWaitsAnswersAtOnceWhenMoreCameThanIsKept has more events come at once
// than wait for a reader. The log has them: the next page begins where this one did.
func TestAPageThatWaitsAnswersAtOnceWhenMoreCameThanIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := fanout.New[rollcall.Event](10)
		reader, _ := hub.Join(fanout.Want[rollcall.Event]{All: true})
		hub.Publish("2", &fanout.Message[rollcall.Event]{Data: make([]byte, 11), Of: rollcall.Event{ID: "2"}})
		p, began := pager{eventQuery: eventQuery{wait: time.Minute, limit: 10}}, time.Now()
		page, err := p.await(t.Context(), reader, eventPage{Next: "1"})
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
		require.Empty(t, page.Items)
		require.Equal(t, "1", page.Next)
	})
}

package takeover_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/takeover"
)

// shadow asks both sides for a moment.
func shadow(t *testing.T, m *takeover.Importer) map[string]takeover.Shadowed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	list, err := m.Shadow(ctx, time.Millisecond)
	require.NoError(t, err)
	out := make(map[string]takeover.Shadowed)
	for _, s := range list {
		require.Positive(t, s.Asked, s.Question)
		require.LessOrEqual(t, s.Old.Median, s.Old.P99)
		require.Positive(t, s.Here.P99)
		out[s.Question] = s
	}
	return out
}

func TestAShadowAsksBothSides(t *testing.T) {
	month := time.Now().UTC().AddDate(0, -1, 1-time.Now().UTC().Day())
	for layout, one := range map[takeover.Layout]struct {
		question     string
		fill, broken []string
	}{
		takeover.HeartbeatZset: {
			"last seen of a user",
			[]string{fmt.Sprintf("ZADD users %d alice", time.Now().Add(-time.Hour).UnixMilli())},
			[]string{fmt.Sprintf("ZADD users %d alice", time.Now().Add(-10*time.Minute).UnixMilli())},
		},
		takeover.OnlineZset: {
			"sessions of a user",
			[]string{fmt.Sprintf("ZADD online:user %d alice", time.Now().Add(-time.Hour).UnixMilli())},
			[]string{fmt.Sprintf("ZADD online:user %d alice", time.Now().UnixMilli())},
		},
		takeover.LoginBitmaps: {
			"days of a user in a month",
			[]string{"SETBIT loginLog_" + month.Format("2006-01") + "_client_7 3 1"},
			[]string{"SETBIT loginLog_" + month.Format("2006-01") + "_client_7 4 1"},
		},
	} {
		t.Run(string(layout), func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
				o := newOld(t, redistest.Options{})
				o.do(one.fill...)
				m := importer(t, o, roll, takeover.Options{Layout: layout})
				_, err := m.Run(t.Context())
				require.NoError(t, err)
				require.Zero(t, shadow(t, m)[one.question].Differences)
				o.do(one.broken...)
				found := shadow(t, m)[one.question]
				require.Equal(t, found.Asked, found.Differences, "each question is about the one that differs")
			})
		})
	}
}

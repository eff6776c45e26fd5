package takeover_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/takeover"
)

// late is a Roll that gives no answer to some questions about days.
type late struct {
	*rollcall.Roll
	refuse atomic.Int64
}

func (l *late) Attended(ctx context.Context, user, kind string, d rollcall.DayRange) (rollcall.Attended, error) {
	if l.refuse.Add(-1) >= 0 {
		return rollcall.Attended{}, rollcall.ErrUnavailable
	}
	return l.Roll.Attended(ctx, user, kind, d)
}

func newLate(t *testing.T) *late {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte("the secret of the tests of takeover")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return &late{Roll: roll}
}

func TestALateAnswerDoesNotEndAComparison(t *testing.T) {
	o := newOld(t, redistest.Options{})
	o.do("SETBIT loginLog_2026-01_client_7 3 1")
	to := newLate(t)
	m := importer(t, o, to, takeover.Options{Layout: takeover.LoginBitmaps})
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	to.refuse.Store(2)
	require.EqualValues(t, 1, clean(t, m).Compared)

	to.refuse.Store(3)
	_, err = m.Compare(t.Context())
	require.Equal(t, rollcall.CodeUnavailable, rollcall.CodeOf(err))
}

func TestALookReadsHoweverManyHaveOneScore(t *testing.T) {
	const users = 70_000
	o := newOld(t, redistest.Options{})
	to := newLate(t)
	m := importer(t, o, to, takeover.Options{Layout: takeover.LastSeenZset})
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	at := time.Now().Unix()
	o.do(fmt.Sprintf("ZADD last.seen %d before", at-1), fmt.Sprintf("ZADD last.seen %d behind", at+1))
	for from := 0; from < users; from += 10_000 {
		var line strings.Builder
		line.WriteString("ZADD last.seen")
		for i := range 10_000 {
			fmt.Fprintf(&line, " %d u%d", at, from+i)
		}
		o.do(line.String())
	}
	require.NoError(t, m.Look(t.Context(), true))
	known, err := to.KnownUsers(t.Context(), rollcall.PageRequest{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, users+2, known.Total)
}

// scans is how often the old Redis was asked for names of keys.
func scans(t *testing.T, o *old) (n int) {
	t.Helper()
	stats := o.ask("INFO commandstats")[0]
	if _, rest, found := strings.Cut(stats, "cmdstat_scan:calls="); found {
		_, err := fmt.Sscanf(rest, "%d", &n)
		require.NoError(t, err)
	}
	return n
}

func TestAFollowerWalksOverBitmapsOnceInTwelveLooks(t *testing.T) {
	o := newOld(t, redistest.Options{})
	to := newLate(t)
	m := importer(t, o, to, takeover.Options{Layout: takeover.LoginBitmaps, Every: 100 * time.Millisecond})
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	month := time.Now().UTC().Format("2006-01")
	o.do("SETBIT loginLog_" + month + "_client_7 0 1")

	before := scans(t, o)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, m.Follow(ctx, func(takeover.Summary) { stop() }))
	require.LessOrEqual(t, scans(t, o)-before, 2, "one look, at two months at most")
	require.EqualValues(t, 1, clean(t, m).Compared, "it has found the day")
}

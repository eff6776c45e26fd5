package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/takeover"
)

// counting counts the questions for days.
type counting struct {
	*rollcall.Roll
	asked atomic.Int64
}

func (c *counting) DaysOf(ctx context.Context, user, kind string, d rollcall.DayRange) ([]rollcall.Day, error) {
	c.asked.Add(1)
	return c.Roll.DaysOf(ctx, user, kind, d)
}

// Attended is for a user's page: it looks at all days of the user, for the streak.
func (*counting) Attended(context.Context, string, string, rollcall.DayRange) (rollcall.Attended, error) {
	return rollcall.Attended{}, errors.New("a comparison needs no streak")
}

// TestEachMonthIsComparedOnceAndAYearIsAskedForAtOnce has months with gaps, over the turn of
// years, of several kinds, up to now.
func TestEachMonthIsComparedOnceAndAYearIsAskedForAtOnce(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		now := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
		rng := rand.New(rand.NewPCG(11, 12))
		var lines, keys []string
		for user := range 60 {
			for _, kind := range []string{"client", "driver"} {
				for month := time.Date(2024, 10, 1, 0, 0, 0, 0, time.UTC); month.Before(now); month = month.AddDate(0, 1, 0) {
					if user > 0 && rng.IntN(4) == 0 { // the first has all
						continue
					}
					key := fmt.Sprintf("loginLog_%s_%s_%d", month.Format("2006-01"), kind, user)
					keys = append(keys, key)
					for range 1 + rng.IntN(4) {
						lines = append(lines, fmt.Sprintf("SETBIT %s %d 1", key, 1+rng.IntN(18)))
					}
				}
			}
		}
		o.do(lines...)
		to := &counting{Roll: roll}
		options := takeover.Options{Layout: takeover.LoginBitmaps, Kinds: map[string]string{"driver": "d:"}, Now: func() time.Time { return now }}
		m := importer(t, o, to, options)
		_, err := m.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, len(keys), clean(t, m).Compared)
		require.Less(t, to.asked.Load(), int64(len(keys))/2)

		// Of the user without gaps: three months of 2024, 2025, four of 2026, and the one of now.
		one := newOld(t, redistest.Options{})
		one.do("SETBIT loginLog_2024-12_client_1 3 1", "SETBIT loginLog_2025-01_client_1 3 1", "SETBIT loginLog_2025-02_client_1 4 1",
			"SETBIT loginLog_2026-04_client_1 3 1", "SETBIT loginLog_2026-05_client_1 3 1")
		few := importer(t, one, to, options)
		to.asked.Store(0)
		c, err := few.Compare(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 5, c.Compared)
		require.EqualValues(t, 4, to.asked.Load())

		// A day more in the middle of a run and one in the month of now; a month that goes takes nothing else with it.
		o.do("SETBIT loginLog_2025-06_client_0 27 1", "DEL loginLog_2025-01_driver_0", "SETBIT loginLog_2026-05_driver_0 29 1")
		c, err = m.Compare(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, len(keys)-1, c.Compared)
		require.EqualValues(t, 2, c.Differences)
		require.ElementsMatch(t, []string{"loginLog_2025-06_client_0", "loginLog_2026-05_driver_0"}, []string{c.First[0].Entry, c.First[1].Entry})
	})
}

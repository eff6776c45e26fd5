package rollcall

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestSystemClockFollowsTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c SystemClock
		before := c.Now()
		<-time.After(1500 * time.Millisecond)
		require.Equal(t, before.Add(1500*time.Millisecond), c.Now())
		require.Equal(t, time.UTC, c.Now().Location())
	})
}

func TestSystemClockNeverRunsBackwards(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		var c SystemClock
		wall := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		mono := wall
		last := c.at(wall, mono)
		for _, step := range rapid.SliceOfN(rapid.Int64Range(-7_200_000, 7_200_000), 1, 30).Draw(t, "steps") {
			wall, mono = wall.Add(time.Duration(step)*time.Millisecond), mono.Add(time.Second)
			now := c.at(wall, mono)
			require.False(t, now.Before(last), "%v after %v", now, last)
			if wall.After(last) {
				require.Equal(t, wall, now, "a clock set forward is followed")
			}
			last = now
		}
	})
}

func TestSystemClockCatchesUpAtHalfSpeed(t *testing.T) {
	var c SystemClock
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	setBack := func(passed time.Duration) time.Time { // by an hour, so long ago
		return c.at(start.Add(passed-time.Hour), start.Add(passed))
	}
	require.Equal(t, start, c.at(start, start))
	require.Equal(t, start.Add(5*time.Minute), setBack(10*time.Minute))
	require.Equal(t, start.Add(time.Hour), setBack(2*time.Hour))
	require.Equal(t, start.Add(2*time.Hour), setBack(3*time.Hour), "the wall is ahead again")
}

func TestSystemClockIsNotAheadAfterReadingsThatWereHeldUp(t *testing.T) {
	var c SystemClock
	start := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	after := func(d time.Duration) time.Time { return c.at(start.Add(d), start.Add(d)) }
	after(10 * time.Second)
	require.Equal(t, start.Add(10*time.Second), after(0), "it was read long before")
	require.Equal(t, start.Add(10*time.Second), after(9*time.Second), "so was this")
	require.Equal(t, start.Add(11*time.Second), after(11*time.Second))
}

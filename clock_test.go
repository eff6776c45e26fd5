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
		last := c.at(wall)
		for _, step := range rapid.SliceOfN(rapid.Int64Range(-7_200_000, 7_200_000), 1, 30).Draw(t, "steps") {
			wall = wall.Add(time.Duration(step) * time.Millisecond)
			now := c.at(wall)
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
	wall := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	start := c.at(wall)
	c.at(wall.Add(-time.Hour)) // set back
	require.Equal(t, start.Add(5*time.Minute), c.at(wall.Add(-50*time.Minute)), "10 minutes later")
	require.Equal(t, start.Add(time.Hour), c.at(wall.Add(time.Hour)), "the wall is ahead again")
}

package local

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestOutagesKeepTheOrderOfDeadlines(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		o := outages{grace: rapid.Int64Range(0, 90_000).Draw(t, "grace")}
		now := int64(1_000_000)
		o.note(now)
		require.Empty(t, o.all(), "no gap counts before the first tick")
		o.tick(now)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, 300_000), 1, 20).Draw(t, "gaps") {
			before := len(o.all())
			now += gap
			o.note(now)
			if gap <= maxGap {
				require.Len(t, o.all(), before)
			}
		}
		a := rapid.Int64Range(900_000, now+200_000).Draw(t, "a")
		b := rapid.Int64Range(a, now+200_000).Draw(t, "b")
		require.GreaterOrEqual(t, o.extend(a), a)
		require.LessOrEqual(t, o.extend(a), o.extend(b))
		require.LessOrEqual(t, o.floor(now), now)
		copied := outages{grace: o.grace}
		require.NoError(t, copied.decode(o.encode()))
		require.Equal(t, o.extend(a), copied.extend(a))
		require.Equal(t, o.count.Load(), copied.count.Load())
	})
}

func TestADeadlineInAnOutageMovesBehindItsGrace(t *testing.T) {
	o := outages{grace: 60_000}
	o.tick(100_000)
	o.note(105_000)
	require.Empty(t, o.all(), "5 s are no outage")
	o.note(200_000)
	require.Equal(t, []outage{{105_000, 200_000}}, o.all())
	for deadline, want := range map[int64]int64{
		104_999: 104_999,
		105_000: 105_000, // had passed when the outage began
		105_001: 260_000,
		199_999: 260_000,
		259_999: 260_000,
		260_000: 260_000,
		260_001: 260_001,
	} {
		require.Equal(t, want, o.extend(deadline), "deadline %d", deadline)
	}
	require.EqualValues(t, 105_000, o.floor(200_000))
	require.EqualValues(t, 105_000, o.floor(259_999))
	require.EqualValues(t, 260_000, o.floor(260_000))
}

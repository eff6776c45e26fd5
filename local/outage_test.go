package local

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestOutagesKeepTheOrderOfDeadlines(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		o := outages{grace: rapid.Int64Range(0, 90_000).Draw(t, "grace")}
		now := int64(1_000_000)
		o.signOfLife(now, false)
		require.Empty(t, o.all(), "no gap counts before the first tick")
		o.begin(now)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, 300_000), 1, 20).Draw(t, "gaps") {
			before := len(o.all())
			now += gap
			o.signOfLife(now, false)
			if gap <= maxGap {
				require.Len(t, o.all(), before)
			}
		}
		a := rapid.Int64Range(900_000, now+200_000).Draw(t, "a")
		b := rapid.Int64Range(a, now+200_000).Draw(t, "b")
		require.GreaterOrEqual(t, o.effectiveDeadline(a), a)
		require.LessOrEqual(t, o.effectiveDeadline(a), o.effectiveDeadline(b))
		require.LessOrEqual(t, o.effectiveNow(now), now)
		copied := outages{grace: o.grace}
		require.NoError(t, copied.decode(o.encode()))
		require.Equal(t, o.effectiveDeadline(a), copied.effectiveDeadline(a))
		require.Equal(t, o.count.Load(), copied.count.Load())
	})
}

// TestOutagesWhoseGracesTouchAnswerAsOne holds the bounded list to one that
// keeps every outage for itself.
func TestOutagesWhoseGracesTouchAnswerAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := outages{grace: rapid.Int64Range(0, 90_000).Draw(t, "grace")}
		var each []outage
		now := int64(1_000_000)
		o.begin(now)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(1, 100_000), 1, 100).Draw(t, "gaps") {
			if gap > maxGap {
				each = append(each, outage{now, now + gap + o.grace})
			}
			now += gap
			o.signOfLife(now, false)
			require.LessOrEqual(t, len(o.all()), keptOutages)

			deadline := rapid.Int64Range(now-200_000, now+200_000).Draw(t, "deadline")
			want, floor := deadline, now
			for _, x := range each {
				if x.from < want && want < x.until {
					want = x.until
				}
			}
			for _, x := range slices.Backward(each) {
				if x.from <= floor && floor < x.until {
					floor = x.from
				}
			}
			require.Equal(t, want > now, o.effectiveDeadline(deadline) > now, "who is alive")
			if want > now {
				require.Equal(t, want, o.effectiveDeadline(deadline))
			}
			require.Equal(t, floor, o.effectiveNow(now))
		}
		require.EqualValues(t, len(each), o.count.Load())
	})
}

func TestADeadlineInAnOutageMovesBehindItsGrace(t *testing.T) {
	o := outages{grace: 60_000}
	o.begin(100_000)
	o.signOfLife(105_000, false)
	require.Empty(t, o.all(), "5 s are no outage")
	o.signOfLife(200_000, false)
	require.Equal(t, []outage{{105_000, 260_000}}, o.all())
	for deadline, want := range map[int64]int64{
		104_999: 104_999,
		105_000: 105_000, // had passed when the outage began
		105_001: 260_000,
		199_999: 260_000,
		259_999: 260_000,
		260_000: 260_000,
		260_001: 260_001,
	} {
		require.Equal(t, want, o.effectiveDeadline(deadline), "deadline %d", deadline)
	}
	require.EqualValues(t, 105_000, o.effectiveNow(200_000))
	require.EqualValues(t, 105_000, o.effectiveNow(259_999))
	require.EqualValues(t, 260_000, o.effectiveNow(260_000))
}

func TestTimeInWhichWritesAreRefusedIsOneOutage(t *testing.T) {
	for _, grace := range []int64{0, 60_000} {
		o := outages{grace: grace}
		o.begin(100_000)
		o.setDurable(100_000)
		for now := int64(100_500); now <= 102_000; now += 500 {
			o.signOfLife(now, false)
		}
		for now := int64(102_001); now < 900_000; now += 700 {
			o.signOfLife(now, true)
			require.Greater(t, o.effectiveDeadline(100_001), now, "what was due since the last durable stamp waits")
			require.EqualValues(t, 100_000, o.effectiveDeadline(100_000), "what was due before has ended")
			require.EqualValues(t, 100_000, o.effectiveNow(now))
		}
		o.signOfLife(900_000, false)
		require.Equal(t, []outage{{100_000, 900_000 + grace}}, o.all())
		require.EqualValues(t, 1, o.count.Load())
		o.signOfLife(901_000, false)
		require.Len(t, o.all(), 1)
	}
}

func TestARefusalRevivesNobodyWhoLeftTheLists(t *testing.T) {
	o := outages{grace: 60_000}
	o.begin(100_000)
	o.setDurable(100_000)
	o.signOfLife(101_000, false)
	o.noteExpiry(100_900)
	o.signOfLife(102_000, true)
	require.EqualValues(t, 100_900, o.effectiveDeadline(100_900))
	require.EqualValues(t, 162_000, o.effectiveDeadline(100_901))
}

// TestAnOutageThatACrashForgotIsSeenByWhatIsLeft has the clock jump by a day, or the
// process stand still so long, and a command become durable before the next stamp.
func TestAnOutageThatACrashForgotIsSeenByWhatIsLeft(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Tick(r.ctx))
	alice := r.login("alice")
	r.second()
	r.NoError(r.roll.Tick(r.ctx))
	r.clock.Advance(25 * time.Hour)
	r.login("bob")
	r.crash()
	r.second()
	r.NoError(r.roll.Tick(r.ctx))
	_, err := r.roll.Verify(r.ctx, rollcall.SessionRef{Token: alice.Token})
	r.NoError(err, "her deadline fell into the outage")
	status, err := r.roll.Status(r.ctx, "alice")
	r.NoError(err)
	r.True(status[0].Online)
	for range rollcall.DefaultRestartGrace / time.Second {
		r.second()
		r.NoError(r.roll.Tick(r.ctx))
	}
	r.tokenEnded(alice)
}

package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

var begins = time.Date(2026, 3, 4, 15, 30, 0, 0, time.UTC)

func makeWorld(t *testing.T, seed uint64, users int) *World {
	t.Helper()
	w, err := New(Options{Seed: seed, Users: users}, begins)
	require.NoError(t, err)
	return w
}

// past is what a world enters as an import does.
func past(w *World) []rollcall.UserSnapshot {
	out := make([]rollcall.UserSnapshot, 0, len(w.people))
	for i := range w.people {
		out = append(out, w.snapshot(i, w.today))
	}
	w.befriend(out, w.begun.AddDate(0, 1, 0))
	return out
}

func TestWorldsOfOneSeedAreAlike(t *testing.T) {
	one, same, other := makeWorld(t, 7, 300), makeWorld(t, 7, 300), makeWorld(t, 8, 300)
	require.Equal(t, one.people, same.people)
	require.Equal(t, past(one), past(same))
	require.NotEqual(t, past(one), past(other))
}

func TestUsersAreThoseWhoHaveComeByTheBeginning(t *testing.T) {
	w := makeWorld(t, 1, 1000)
	came := 0
	ids := make(map[string]bool)
	for _, p := range w.people {
		if p.joined <= w.today {
			came++
		}
		ids[p.id] = true
	}
	require.Equal(t, 1000, came)
	require.Len(t, ids, len(w.people), "each has an id of their own")
	_, err := New(Options{Users: MaxUsers + 1}, begins)
	require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err))
}

func TestFewerComeBackAsTimeGoesOnAndOnSundays(t *testing.T) {
	w := makeWorld(t, 1, 3000)
	back := func(after rollcall.Day) float64 {
		people, there := 0, 0
		for i := range w.people {
			if w.people[i].joined+after >= w.today {
				continue
			}
			people++
			if w.comes(i, w.people[i].joined+after) {
				there++
			}
		}
		return float64(there) / float64(people)
	}
	require.InDelta(t, 1, back(0), 0)
	require.Greater(t, back(1), back(14))
	require.Greater(t, back(14), back(60)*1.1)
	require.Greater(t, back(60), 0.05, "some stay")

	var weekday [7]int
	for day := w.today - 28; day < w.today; day++ {
		for i := range w.people {
			if w.comes(i, day) {
				weekday[day.Start(time.UTC).Weekday()]++
			}
		}
	}
	require.Less(t, float64(weekday[time.Sunday]), 0.9*float64(weekday[time.Tuesday]))
}

func TestMostIDsAreNamesAndFewEndInManyDigits(t *testing.T) {
	w := makeWorld(t, 1, 5000)
	plain, long, users := 0, 0, 0
	for _, p := range w.people {
		if p.kind == "guest" {
			continue
		}
		users++
		switch name := strings.TrimRight(p.id, "0123456789"); len(p.id) - len(name) {
		case 0:
			plain++
		case 1, 2:
		default:
			long++
		}
	}
	require.Greater(t, plain, users/2)
	require.Less(t, long, users/50)
}

func TestTheBusiestHourIsTheFirst(t *testing.T) {
	busiest := 16*time.Hour + 10*time.Minute
	r := newRhythm(busiest)
	var hours [24]int
	for i := range 24_000 {
		hours[int(r.time((float64(i)+0.5)/24_000).Hours())]++
	}
	for hour, n := range hours {
		require.LessOrEqual(t, n, max(hours[15], hours[16]), "hour %d", hour)
		require.Positive(t, n, "hour %d", hour)
	}
}

func TestFillEndsAtThePresentWithoutAnOutage(t *testing.T) {
	w := makeWorld(t, 3, 60)
	engine, err := local.Open("", local.Options{InMemory: true, Durability: local.Interval})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })

	// The present moves while the past is played.
	asked := 0
	now := func() time.Time {
		asked++
		return begins.Add(time.Duration(min(asked, 5)) * 2 * time.Second)
	}
	o := rollcall.Options{Secret: make([]byte, 32)}
	require.NoError(t, w.Fill(t.Context(), engine, o, now))

	o.Clock = rollcall.NewManualClock(begins.Add(11 * time.Second))
	roll, err := rollcall.New(engine, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, roll.Close()) })
	require.NoError(t, roll.Tick(t.Context()))
	stats, err := roll.Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, stats.Outages)
	hours, err := roll.Samples(t.Context(), rollcall.SampleQuery{Step: rollcall.StepHour})
	require.NoError(t, err)
	require.Equal(t, heardDays*24+16, len(hours), "a sample of each hour, with the one under way")
	logins := 0
	for _, h := range hours {
		logins += h.Logins
	}
	require.Positive(t, logins)
	span, found, err := roll.AttendanceSpan(t.Context(), "")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, w.first(), span.From)
	require.Equal(t, w.today, span.To)
}

package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

// missingDay is in a zone that moved across the date line: there was no 2011-12-30.
func missingDay(h *harness) {
	h.fresh(rollcall.Options{Timezone: h.zone("Pacific/Apia")})
	missing := rollcall.DateOf(2011, 12, 30)
	days := func(user string, days ...rollcall.Day) (out []rollcall.Mark) {
		for _, d := range days {
			out = append(out, rollcall.Mark{User: user, Day: d})
		}
		return out
	}
	_, _, err := h.roll.ImportMarks(h.ctx, append(days("alice", missing-1), days("alice", missing)...)...)
	h.Equal("marks[1]", h.code(rollcall.CodeInvalidArgument, err).Field)
	h.Contains(err.Error(), "2011-12-30")

	marked, _, err := h.roll.ImportMarks(h.ctx, append(days("alice", missing-2, missing-1, missing+1, missing+2), days("bob", missing-1, missing+2)...)...)
	h.NoError(err)
	h.Equal(6, marked)
	span := rollcall.DayRange{From: missing - 2, To: missing + 2}
	h.Equal(rollcall.Streak{Longest: 4}, h.streak("alice", ""))
	top, err := h.roll.Streaks(h.ctx, "", span, 10)
	h.NoError(err)
	h.Equal([]rollcall.UserStreak{
		{User: "alice", Streak: rollcall.Streak{Longest: 4}}, {User: "bob", Streak: rollcall.Streak{Longest: 1}},
	}, top)
	h.Equal([]string{"alice"}, h.active("", rollcall.MatchEvery, span.From, span.To))
	h.Empty(h.active("", rollcall.MatchEvery, missing, missing))
}

func (h *harness) zone(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	h.NoError(err)
	return zone
}

// dayOfLogin logs a new user in at an instant and returns the day that marks.
func (h *harness) dayOfLogin(at time.Time) string {
	h.clock.Set(at)
	user := "u" + at.Format(time.RFC3339Nano)
	h.login(user)
	span, ok, err := h.engine.SpanOf(h.ctx, user, "")
	h.NoError(err)
	h.True(ok)
	h.Equal(span.From, span.To)
	h.Equal(span.From, h.roll.Today())
	return span.From.String()
}

func shanghaiDays(h *harness) {
	h.fresh(rollcall.Options{Timezone: h.zone("Asia/Shanghai")})
	midnight := time.Date(2026, time.March, 5, 16, 0, 0, 0, time.UTC)
	h.Equal("2026-03-05", h.dayOfLogin(midnight.Add(-time.Millisecond)))
	h.Equal("2026-03-06", h.dayOfLogin(midnight))
	h.Equal("2026-03-06", h.dayOfLogin(midnight.Add(24*time.Hour-time.Millisecond)))
	h.restart()
	h.Equal("2026-03-07", h.dayOfLogin(midnight.Add(24*time.Hour)))
}

func newYorkDays(h *harness) {
	h.fresh(rollcall.Options{Timezone: h.zone("America/New_York")})
	ms := time.Millisecond
	spring := time.Date(2026, time.March, 8, 5, 0, 0, 0, time.UTC) // the day has 23 hours
	h.Equal("2026-03-07", h.dayOfLogin(spring.Add(-ms)))
	h.Equal("2026-03-08", h.dayOfLogin(spring))
	h.Equal("2026-03-08", h.dayOfLogin(spring.Add(23*time.Hour-ms)))
	h.Equal("2026-03-09", h.dayOfLogin(spring.Add(23*time.Hour)))
	autumn := time.Date(2026, time.November, 1, 4, 0, 0, 0, time.UTC) // this one 25
	h.Equal("2026-10-31", h.dayOfLogin(autumn.Add(-ms)))
	h.Equal("2026-11-01", h.dayOfLogin(autumn))
	h.Equal("2026-11-01", h.dayOfLogin(autumn.Add(25*time.Hour-ms)))
	h.Equal("2026-11-02", h.dayOfLogin(autumn.Add(25*time.Hour)))
}

func otherZone(h *harness) {
	h.login("alice")
	h.close()
	engine, err := h.store.Open()
	h.NoError(err)
	_, err = rollcall.New(engine, rollcall.Options{Clock: h.clock, Timezone: h.zone("Asia/Shanghai")})
	h.code(rollcall.CodeConflict, err)
	h.NoError(engine.Close())
	h.open(rollcall.Options{})
	h.Equal([]int{0}, h.attended("alice", ""))
}

package enginetest

import (
	"time"

	"github.com/rollcall/rollcall"
)

func visitZoneTests() []test {
	return []test{
		{"hours begin when they do in Kolkata, half past in UTC", visitKolkata},
		{"days of 23 and of 25 hours in New York", visitNewYork},
		{"the half hour that the clock is put back in Lord Howe", visitLordHowe},
	}
}

func visitLastingTests() []test {
	return []test{
		{"visits survive a restart, and go on in the same hour", visitRestart},
		{"what was flushed survives a crash", visitCrash},
		{"hours are forgotten, and names with their last", visitForget},
		{"a name that was forgotten makes room for another", visitForgetRoom},
		{"a closed engine counts nobody", visitClosed},
	}
}

// came notes one visitor more at an instant.
func (h *harness) came(at time.Time, number int) {
	h.clock.Set(at)
	h.visitCrowd("", number, 1)
}

func visitKolkata(h *harness) {
	h.fresh(rollcall.Options{Timezone: h.zone("Asia/Kolkata")})
	midnight := time.Date(2026, time.March, 4, 18, 30, 0, 0, time.UTC) // 5 March
	for i, d := range []time.Duration{-24 * time.Hour, -time.Millisecond, 0, time.Hour - time.Millisecond, time.Hour} {
		h.came(midnight.Add(d), i)
	}
	h.visitsAre(4, []int{1, 2, 1}, "", rollcall.VisitsByHour, midnight.Add(-time.Minute), midnight.Add(time.Hour))
	h.visitsAre(5, []int{2, 3}, "", rollcall.VisitsByDay, midnight.Add(-24*time.Hour), midnight.Add(time.Hour))
	f := h.visitors("", rollcall.VisitsByDay, midnight.Add(-24*time.Hour), midnight.Add(23*time.Hour))
	h.True(f.Items[1].Start.Equal(midnight))
	_, err := h.roll.Visitors(h.ctx, rollcall.VisitQuery{From: midnight.Add(-30 * time.Minute), To: midnight})
	h.code(rollcall.CodeInvalidArgument, err)
	h.restart()
	h.visitsAre(5, []int{2, 3}, "", rollcall.VisitsByDay, midnight.Add(-24*time.Hour), midnight.Add(time.Hour))
}

func visitNewYork(h *harness) {
	h.fresh(rollcall.Options{Timezone: h.zone("America/New_York")})
	spring := time.Date(2026, time.March, 8, 5, 0, 0, 0, time.UTC) // the day has 23 hours
	for hour := -1; hour < 24; hour++ {
		h.came(spring.Add(time.Duration(hour)*time.Hour), 10+hour)
	}
	h.visitsAre(25, []int{1, 23, 1}, "", rollcall.VisitsByDay, spring.Add(-time.Hour), spring.Add(23*time.Hour))
	f := h.visitors("", rollcall.VisitsByDay, spring, spring.Add(23*time.Hour))
	h.True(f.Items[1].Start.Equal(spring.Add(23 * time.Hour)))
	h.Equal(spring.Add(23*time.Hour).UTC(), h.roll.DayStart(h.roll.DayAt(spring)+1).UTC())

	autumn := time.Date(2026, time.November, 1, 4, 0, 0, 0, time.UTC) // this one 25
	for hour := -1; hour < 26; hour++ {
		h.came(autumn.Add(time.Duration(hour)*time.Hour), 50+hour)
	}
	h.visitsAre(27, []int{1, 25, 1}, "", rollcall.VisitsByDay, autumn.Add(-time.Hour), autumn.Add(25*time.Hour))
	// From 1:00 to 2:00 comes twice, and is two hours.
	h.visitsAre(4, []int{1, 1, 1, 1}, "", rollcall.VisitsByHour, autumn, autumn.Add(3*time.Hour))
}

func visitLordHowe(h *harness) {
	h.fresh(rollcall.Options{Timezone: h.zone("Australia/Lord_Howe")})
	back := time.Date(2026, time.April, 4, 15, 0, 0, 0, time.UTC) // 2:00 becomes 1:30
	for i, d := range []time.Duration{-time.Hour, -time.Minute, 0, 29 * time.Minute, 30 * time.Minute, 89 * time.Minute, 90 * time.Minute} {
		h.came(back.Add(d), i)
	}
	h.visitsAre(7, []int{2, 2, 2, 1}, "", rollcall.VisitsByHour, back.Add(-time.Hour), back.Add(90*time.Minute))
	h.visitsAre(7, []int{7}, "", rollcall.VisitsByDay, back.Add(-time.Hour), back.Add(90*time.Minute))
	f := h.visitors("", rollcall.VisitsByHour, back, back.Add(30*time.Minute))
	h.True(f.Items[0].Start.Equal(back))
	h.True(f.Items[1].Start.Equal(back.Add(30 * time.Minute)))
}

func visitRestart(h *harness) {
	from := h.now()
	h.visitCrowd("big", 0, 30_000)
	h.advance(time.Hour)
	h.visitCrowd("", 0, 40)
	h.visitCrowd("big", 30_000, 30_000)
	big := h.visitors("big", rollcall.VisitsByHour, from, h.now())
	for range 2 {
		h.restart()
		h.Equal([]string{"", "big"}, h.visitNames())
		h.visitedNow(40, "")
		h.Equal(big, h.visitors("big", rollcall.VisitsByHour, from, h.now()))
	}
	h.visitCrowd("", 30, 40)
	h.visitedNow(70, "")
	h.restart()
	h.visitedNow(70, "")
	h.advance(time.Hour)
	h.visitCrowd("", 0, 70) // the same as in the hour before
	h.restart()
	h.advance(time.Hour)
	h.visitCrowd("", 60, 20)
	h.visitsAre(80, []int{0, 70, 70, 20}, "", rollcall.VisitsByHour, from, h.now())
}

func visitCrash(h *harness) {
	store, ok := h.store.(Crasher)
	if !ok {
		return // this store cannot fail like a machine
	}
	from := h.now()
	h.visitCrowd("", 0, 30)
	h.advance(time.Hour)
	h.visitCrowd("", 10, 30)
	h.NoError(h.engine.Flush(h.ctx))
	h.visitCrowd("", 40, 20) // within the last second
	store.Crash()
	_ = h.engine.Close() // it may fail: its files are gone
	h.open(h.options)
	f := h.visitors("", rollcall.VisitsByHour, from, h.now())
	h.InDelta(30, f.Items[0].Visitors, 1)
	h.GreaterOrEqual(f.Items[1].Visitors, 29)
	h.LessOrEqual(f.Items[1].Visitors, 51)
	h.visitCrowd("", 10, 50)
	h.visitsAre(60, []int{30, 50}, "", rollcall.VisitsByHour, from, h.now())
}

func visitForget(h *harness) {
	h.fresh(rollcall.Options{VisitsKeep: 48 * time.Hour})
	from := h.now()
	h.visitCrowd("old", 0, 5)
	h.visitCrowd("", 0, 10)
	h.advance(time.Hour)
	h.visitCrowd("", 5, 10)
	h.tick()
	h.clock.Set(from.Add(49*time.Hour - time.Millisecond))
	h.tick()
	h.visitsAre(15, []int{10, 10}, "", rollcall.VisitsByHour, from, from.Add(time.Hour))
	h.Equal([]string{"", "old"}, h.visitNames())
	h.advance(time.Millisecond) // the first hour ended 48 hours ago
	h.tick()
	for range 2 {
		h.visitsAre(10, []int{0, 10}, "", rollcall.VisitsByHour, from, from.Add(time.Hour))
		h.visitsAre(0, []int{0}, "old", rollcall.VisitsByHour, from, from)
		h.Equal([]string{""}, h.visitNames())
		h.restart()
	}
	h.visitCrowd("", 20, 5)
	h.advance(time.Hour)
	h.tick()
	h.Equal([]string{""}, h.visitNames(), "it has an hour that is kept")
	h.visitsAre(0, []int{0, 0}, "", rollcall.VisitsByHour, from, from.Add(time.Hour))
	h.advance(48 * time.Hour)
	h.tick()
	h.Empty(h.visitNames())
	h.restart()
	h.Empty(h.visitNames())
}

func visitForgetRoom(h *harness) {
	h.fresh(rollcall.Options{VisitsKeep: time.Hour})
	for _, name := range numbered("name", rollcall.MaxVisitNames) {
		h.visit(name, "a")
	}
	h.tick()
	h.visit("one more", "a")
	h.visitedNow(0, "one more")
	h.advance(2 * time.Hour)
	h.ticksUntil("all names are forgotten", func() bool { return len(h.visitNames()) == 0 })
	h.visit("one more", "a")
	h.Equal([]string{"one more"}, h.visitNames())
}

func visitClosed(h *harness) {
	h.visit("", "a")
	engine := h.engine
	h.close()
	_, err := engine.Visit(h.ctx, h.now(), "", []string{"b"})
	h.code(rollcall.CodeUnavailable, err)
	_, err = engine.Visitors(h.ctx, rollcall.VisitQuery{From: h.now(), To: h.now().Add(time.Hour), By: rollcall.VisitsByHour})
	h.code(rollcall.CodeUnavailable, err)
	_, err = engine.VisitNames(h.ctx)
	h.code(rollcall.CodeUnavailable, err)
	h.open(h.options)
	h.visitedNow(1, "")
}

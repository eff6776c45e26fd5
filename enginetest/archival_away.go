package enginetest

import "github.com/rollcall/rollcall"

// What is answered while the archive is away, or has marks of its own.

func archiveAway(h *harness) {
	s, b, today := h.withArchivedMarks(60)
	h.offloadAll(s, b.daysBetween(today-59, today-30))
	for range 2 {
		s.goAway(true)
		h.restart()
		hot, cold := rollcall.DayRange{From: today - 20, To: today}, rollcall.DayRange{From: today - 35, To: today - 25}
		for _, kind := range []string{"", "user"} {
			r := b[kind]
			h.Equal(len(r.union(hot.From, hot.To)), len(h.active(kind, rollcall.MatchAny, hot.From, hot.To)))
			got, err := h.roll.ActiveDays(h.ctx, kind, hot)
			h.NoError(err)
			h.Equal(r.activeDays(hot), got[:len(r.activeDays(hot))])
			_, err = h.roll.Streaks(h.ctx, kind, hot, 10)
			h.NoError(err)
			cycle := rollcall.LifecycleQuery{Range: hot, Kind: kind, Period: rollcall.PeriodDay}
			rows, err := h.roll.Lifecycle(h.ctx, cycle)
			h.NoError(err)
			h.Equal(r.lifecycle(cycle), rows, "who was new is known here")
			q := rollcall.RetentionQuery{Range: hot, Kind: kind, Period: rollcall.PeriodDay, Cohort: rollcall.CohortFirst, Measure: rollcall.MeasureOnOrAfter}
			cohorts, err := h.engine.Retention(h.ctx, q)
			h.NoError(err)
			for i := range cohorts {
				cohorts[i].Complete, cohorts[i].Begun = nil, nil
			}
			h.Equal(r.retention(q), cohorts)

			_, err = h.roll.Active(h.ctx, rollcall.ActiveQuery{Range: cold, Kind: kind, Page: all()})
			h.Contains(h.code(rollcall.CodeUnavailable, err).Detail, "archive")
			_, err = h.roll.ActiveDays(h.ctx, kind, cold)
			h.code(rollcall.CodeUnavailable, err)
			_, err = h.roll.Streaks(h.ctx, kind, cold, 10)
			h.code(rollcall.CodeUnavailable, err)
			_, err = h.roll.Retention(h.ctx, rollcall.RetentionQuery{Range: cold, Kind: kind})
			h.code(rollcall.CodeUnavailable, err)
		}
		_, err := h.roll.Attended(h.ctx, "u1", "", cold)
		h.code(rollcall.CodeUnavailable, err)
		h.mark(h.on("u1", -31), h.on("new", -31), h.on("passing", 0))
		h.login("new")
		h.unmarked(1, h.on("passing", 0))
		n, err := h.roll.Unmark(h.ctx, true, h.on("u2", -40), h.on("passing", 0))
		h.Contains(h.code(rollcall.CodeUnavailable, err).Detail, "archive")
		h.Zero(n)
		s.goAway(false)
		b.add(rollcall.Mark{User: "u1", Kind: "user", Day: today - 31})
		b.add(rollcall.Mark{User: "new", Kind: "user", Day: today - 31})
		b.add(rollcall.Mark{User: "new", Kind: "user", Day: today})
		h.asks(b, h.about())
	}
}

func figuresStayHot(h *harness) {
	s, b, today := h.withArchivedMarks(70)
	h.offloadAll(s, b.daysBetween(today-69, today-35))
	for range 2 {
		before := s.questions()
		for kind, r := range b {
			for _, mau := range []rollcall.MAU{rollcall.MAU28, rollcall.MAU30, rollcall.MAUMonth} {
				q := rollcall.SeriesQuery{Range: rollcall.DayRange{From: today - 69, To: today}, Kind: kind, MAU: mau}
				got, err := h.roll.Series(h.ctx, q)
				h.NoError(err)
				h.Equal(r.series(q), got)
			}
		}
		h.LessOrEqual(s.questions(), before+1, "which days left may have been asked, but not who was there")
		h.restart()
	}
}

func unmarkWhileOffloaded(h *harness) {
	today := h.roll.Today()
	for _, leaves := range []bool{true, false} { // or it is only noted yet
		s := h.withArchive()
		var marks []rollcall.Mark
		for _, u := range numbered("u", 10) {
			marks = append(marks, h.on(u, -50))
		}
		h.mark(append(marks, h.on("stays", -50))...)
		h.copyDirty(s)
		s.taken = func() {
			s.note("user", today-50, true)
			if leaves {
				h.offload(s, "user", today-50)
			}
		}
		h.unmarked(10, append(marks, h.on("nobody", -50))...)
		h.Equal([]string{"stays"}, h.active("", rollcall.MatchAny, today-50, today-50))
		h.unmarked(0, marks...)
	}
}

func markArchived(h *harness) {
	s := h.withArchive()
	today := h.roll.Today()
	guest := rollcall.Mark{User: "alice", Kind: "guest", Day: today - 50}
	h.mark(h.on("alice", -50), h.on("bob", -49), guest)
	h.copyDirty(s)
	h.offload(s, "user", today-50)
	h.restart() // nothing is known of what left
	for range 2 {
		marked, already, err := h.roll.ImportMarks(h.ctx, h.on("alice", -50), guest, h.on("bob", -49))
		h.NoError(err)
		h.Zero(marked)
		h.Equal(3, already)
		h.Empty(h.dirty(10), "nothing came in that was not there")
	}
	marked, already, err := h.roll.ImportMarks(h.ctx, h.on("carol", -50), h.on("alice", -50))
	h.NoError(err)
	h.Equal(1, marked)
	h.Equal(1, already)
	s.goAway(true) // it is taken in all the same
	marked, _, err = h.roll.ImportMarks(h.ctx, h.on("dave", -50))
	h.NoError(err)
	h.Equal(1, marked)
	s.goAway(false)
	h.Equal([]string{"alice", "carol", "dave"}, h.active("", rollcall.MatchAny, today-50, today-50))
}

func streakUnavailable(h *harness) {
	s := h.withArchive()
	today := h.roll.Today()
	h.mark(h.on("old", -50), h.on("old", -1), h.on("old", 0), h.on("young", 0), h.on("away", -50))
	h.copyDirty(s)
	h.offload(s, "user", today-50)
	hot := rollcall.DayRange{From: today - 10, To: today}
	for _, away := range []bool{true, false} {
		s.goAway(away)
		h.restart()
		for user, streak := range map[string]rollcall.Streak{"old": {Current: 2, Longest: 2}, "young": {Current: 1, Longest: 1}} {
			hidden := away && user == "old"
			if hidden {
				streak = rollcall.Streak{}
			}
			got, err := h.roll.Attended(h.ctx, user, "", hot)
			h.NoError(err)
			h.Equal(hidden, got.StreakUnavailable, user)
			h.Equal(streak, got.Streak, user)
			h.Contains(got.Days, today)
			view, err := h.roll.User(h.ctx, user)
			h.NoError(err)
			h.Equal(hidden, view.StreakUnavailable, user)
			h.Equal(streak, view.Streak, user)
		}
		_, err := h.roll.Attended(h.ctx, "old", "", rollcall.DayRange{From: today - 50, To: today})
		if away {
			h.code(rollcall.CodeUnavailable, err)
		} else {
			h.NoError(err)
		}
	}
}

func figuresGoStale(h *harness) {
	s, b, today := h.withArchivedMarks(70)
	h.offloadAll(s, b.daysBetween(today-69, today-35))
	whole := rollcall.DayRange{From: today - 69, To: today}
	all := rollcall.SeriesQuery{Range: whole, MAU: rollcall.MAU30}
	before := b[""].series(all)
	// check asks with the archive away and back again. Of the days up to touched, and
	// from 31 days later on, all is exact; the others may be as they were before.
	check := func(touched rollcall.Day) {
		s.goAway(true)
		for range 2 {
			got, err := h.roll.Series(h.ctx, all)
			h.NoError(err)
			want := b[""].series(all)
			for i, f := range got {
				if touched <= f.Day && f.Day < touched+31 && f.Stale {
					f.Stale = false
					h.Equal(before[i], f, "touched %s", touched)
				} else {
					h.Equal(want[i], f, "touched %s", touched)
				}
			}
			h.True(got[touched-whole.From].Stale, "%s was changed", touched)
			h.restart()
		}
		h.NoError(h.roll.Beat(h.ctx, "someone")) // from here on the engine knows what day it is
		s.goAway(false)
		got, err := h.roll.Series(h.ctx, all)
		h.NoError(err)
		before = b[""].series(all)
		h.Equal(before, got)
		s.goAway(true) // what was counted anew is known from now on
		got, err = h.roll.Series(h.ctx, all)
		h.NoError(err)
		h.Equal(before, got)
		s.goAway(false)
	}
	late := rollcall.Mark{User: "late", Kind: "user", Day: today - 50}
	h.enter(b, late)
	check(today - 50)
	h.True(b.remove(late))
	h.unmarked(1, late)
	check(today - 50)

	// An erasure may have touched every day since the user's first.
	h.erase("u1")
	b.erase("u1")
	s.goAway(true)
	got, err := h.roll.Series(h.ctx, all)
	h.NoError(err)
	for i, want := range b[""].series(all) {
		if !got[i].Stale {
			h.Equal(want, got[i])
		}
	}
	s.goAway(false)
	got, err = h.roll.Series(h.ctx, all)
	h.NoError(err)
	h.Equal(b[""].series(all), got)
}

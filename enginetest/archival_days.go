package enginetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// daysBetween is the kinds and days of the reference marks that are between two days.
func (b referenceMarks) daysBetween(from, to rollcall.Day) (out []rollcall.Mark) {
	for _, kind := range slices.Sorted(maps.Keys(b)) {
		for _, d := range slices.Sorted(keys(b[kind])) {
			if kind != "" && from <= d && d <= to {
				out = append(out, rollcall.Mark{Kind: kind, Day: d})
			}
		}
	}
	return out
}

// withArchivedMarks begins again with an archive and marks of some days up to today. It
// returns the archive, the same marks in the plainest form, and today.
func (h *harness) withArchivedMarks(days int) (*memoryArchive, referenceMarks, rollcall.Day) {
	s := h.withArchive()
	return s, referenceMarks(h.populate(days)), h.roll.Today()
}

// enter marks a day on the engine and in the reference marks.
func (h *harness) enter(b referenceMarks, m rollcall.Mark) {
	h.mark(m)
	b.add(m)
}

func (h *harness) offloadAll(s *memoryArchive, days []rollcall.Mark) {
	h.copyDirty(s)
	for _, d := range days {
		h.offload(s, d.Kind, d.Day)
	}
}

// about is a range that cuts weeks and months and reaches past the data.
func (h *harness) about() rollcall.DayRange {
	return rollcall.DayRange{From: h.roll.Today() - 75, To: h.roll.Today()}
}

func offloadFigures(h *harness) {
	s, b, today := h.withArchivedMarks(70)
	h.asks(b, h.about())
	h.offloadAll(s, b.daysBetween(today-69, today-60)) // the first ones
	h.asks(b, h.about())
	some := b.daysBetween(today-50, today-10)
	h.offloadAll(s, slices.DeleteFunc(some, func(m rollcall.Mark) bool { return m.Day%3 != 0 }))
	h.asks(b, h.about())
	h.asks(b, rollcall.DayRange{From: today - 55, To: today - 20})
	h.offloadAll(s, b.daysBetween(today-69, today)) // all, today as well
	h.Empty(h.hotDays())
	h.asks(b, h.about())
	page := func(p rollcall.PageRequest) (rollcall.Page[string], error) {
		return h.roll.Active(h.ctx, rollcall.ActiveQuery{Range: h.about(), Page: p})
	}
	walked := walk(h, 7, page, nil)
	h.Len(walked, len(b[""].union(today-75, today)))
	h.mark(h.on("u1", 0))
	b.add(rollcall.Mark{User: "u1", Kind: "user", Day: today})
	h.asks(b, h.about())
}

func offloadLate(h *harness) {
	s, b, today := h.withArchivedMarks(40)
	h.offloadAll(s, b.daysBetween(today-39, today-20))
	h.asks(b, h.about())
	for _, m := range []rollcall.Mark{
		{User: "u1", Kind: "user", Day: today - 30},
		{User: "late", Kind: "user", Day: today - 30},
		{User: "u2", Kind: "guest", Day: today - 45}, // earlier than any
	} {
		h.enter(b, m)
	}
	h.Len(h.dirty(10), 3)
	h.asks(b, h.about())
	h.restart()
	h.asks(b, h.about())
	h.copyDirty(s)
	h.asks(b, h.about())
	h.offload(s, "user", today-30)
	h.asks(b, h.about())
	h.restart()
	h.asks(b, h.about())
}

func offloadUnmark(h *harness) {
	s, b, today := h.withArchivedMarks(40)
	h.offloadAll(s, b.daysBetween(today-39, today-20))
	h.asks(b, h.about())
	var gone []rollcall.Mark
	for i, m := range b["user"].marks("user") {
		if i%9 == 0 || m.Day == today-39 { // here and there, and the first day whole
			gone = append(gone, m)
		}
	}
	both := gone[0] // stands in the archive and came in late as well
	h.mark(both)
	for _, m := range gone {
		h.True(b.remove(m))
	}
	h.unmarked(len(gone), append(gone, rollcall.Mark{User: "nobody", Kind: "user", Day: today - 30})...)
	h.asks(b, h.about())
	h.unmarked(0, gone...)
	h.restart()
	h.asks(b, h.about())
	own := b["user"].marks("user")[0]
	h.True(b.remove(own))
	own.Kind = "" // the user's own
	h.unmarked(1, own)
	h.asks(b, h.about())
	h.copyDirty(s)
	h.asks(b, h.about())
}

func offloadFirstDay(h *harness) {
	s := h.withArchive()
	today := h.roll.Today()
	b := newReferenceMarks("user", "guest")
	for _, d := range []int{-60, -55, -40, -12, 0} {
		for _, kind := range []string{"user", "guest"} {
			b.add(rollcall.Mark{User: "alice", Kind: kind, Day: today + rollcall.Day(d)})
		}
	}
	b.add(rollcall.Mark{User: "bob", Kind: "user", Day: today - 61})
	b.add(rollcall.Mark{User: "bob", Kind: "user", Day: today - 1})
	h.mark(append(b["user"].marks("user"), b["guest"].marks("guest")...)...)
	h.offloadAll(s, b.daysBetween(today-60, today-40))
	take := func(user, kind string, days ...int) {
		var marks []rollcall.Mark
		for _, d := range days {
			m := rollcall.Mark{User: user, Kind: kind, Day: today + rollcall.Day(d)}
			h.True(b.remove(m))
			marks = append(marks, m)
		}
		h.unmarked(len(marks), marks...)
		h.asks(b, h.about())
	}
	take("bob", "user", -61) // hot, and nothing of theirs is in the archive
	take("alice", "user", -60)
	h.restart()
	h.asks(b, h.about())
	take("alice", "user", -55, -40)
	early := rollcall.Mark{User: "alice", Kind: "user", Day: today - 62}
	h.enter(b, early)
	take("alice", "guest", -60, -12, 0)
	take("alice", "user", -62) // hot, and the archive has others
	take("alice", "guest", -55, -40)
	h.restart()
	h.asks(b, h.about())
}

func offloadErase(h *harness) {
	s, b, today := h.withArchivedMarks(40)
	h.offloadAll(s, b.daysBetween(today-39, today-20))
	h.asks(b, h.about())
	for _, user := range []string{"u1", "u2", "u3", "u4"} {
		h.erase(user)
		b.erase(user)
	}
	h.asks(b, h.about())
	for i := range 200 { // some of them get numbers that were others'
		h.enter(b, rollcall.Mark{User: fmt.Sprint("new", i), Kind: "user", Day: today})
	}
	again := rollcall.Mark{User: "u2", Kind: "guest", Day: today - 1}
	h.enter(b, again)
	h.asks(b, h.about())
	h.offloadAll(s, b.daysBetween(today, today)) // with those who have others' numbers
	h.asks(b, h.about())
	h.restart()
	h.asks(b, h.about())

	s.goAway(true)
	h.code(rollcall.CodeUnavailable, h.roll.Erase(h.ctx, "u5"))
	s.goAway(false)
	h.asks(b, h.about())
	h.erase("u5")
	b.erase("u5")
	h.asks(b, h.about())
}

func offloadRestart(h *harness) {
	s, b, today := h.withArchivedMarks(40)
	check := func() {
		h.restart()
		h.asks(b, h.about())
	}
	copied := h.dirty(20)
	s.copy(copied)
	check()
	n, err := h.engine.ClearDirty(h.ctx, copied)
	h.NoError(err)
	h.Zero(n)
	check()
	h.Empty(h.dirty(10))
	for _, d := range b.daysBetween(today-39, today-35) {
		s.note(d.Kind, d.Day, true)
		h.restart()
		h.offload(s, d.Kind, d.Day)
	}
	check()
	h.NoError(h.engine.Restore(h.ctx, s.listed()))
	check()
	h.restoreAll(s)
	check()
	h.offloadAll(s, b.daysBetween(today-39, today-1))
	check()
	if store, ok := h.store.(Crasher); ok {
		store.Crash()
		_ = h.engine.Close() // it may fail: its files are gone
		h.open(h.options)
		h.asks(b, h.about())
	}
}

func restoredDays(h *harness) {
	s, b, today := h.withArchivedMarks(40)
	active := func() rollcall.Page[string] {
		page, err := h.roll.Active(h.ctx, rollcall.ActiveQuery{Range: h.about(), Page: rollcall.PageRequest{Limit: 20}})
		h.NoError(err)
		return page
	}
	hot, listed := h.hotDays(), active()
	for range 2 {
		h.offloadAll(s, b.daysBetween(today-39, today-10))
		h.asks(b, h.about())
		h.Equal(listed, active())
		h.restoreAll(s)
		h.Empty(h.dirty(10), "what is read back is no change")
		h.Equal(hot, h.hotDays())
		h.asks(b, h.about())
		h.Equal(listed, active())
		s.goAway(true)
		h.restart()
		h.asksCohorts(b[""], "", h.about())
		s.goAway(false)
	}
	back := b["user"].marks("user")[0]
	h.True(b.remove(back))
	h.unmarked(1, back)
	h.asks(b, h.about())
	h.copyDirty(s)
	h.offloadAll(s, b.daysBetween(today-39, today-10))
	h.asks(b, h.about())
}

// offloadRandom plays random histories on an engine and on plain sets.
func offloadRandom(h *harness) {
	for seed := range testbudget.Rounds(h.outer, testbudget.Budget{Least: 1, Most: 3, Time: time.Second}) {
		s := h.withArchive()
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		b := newReferenceMarks("user", "guest")
		today := h.roll.Today()
		some := func() rollcall.Mark {
			kind := []string{"user", "user", "guest"}[r.IntN(3)]
			return rollcall.Mark{User: fmt.Sprint("u", r.IntN(25)), Kind: kind, Day: today - rollcall.Day(r.IntN(45))}
		}
		for step := range 60 {
			switch what := r.IntN(20); {
			case what < 8:
				for range 12 {
					m := some()
					h.enter(b, m)
				}
			case what < 11:
				m := some()
				want := 0
				if b.remove(m) {
					want = 1
				}
				h.unmarked(want, m)
			case what < 16:
				from := today - rollcall.Day(r.IntN(45))
				h.offloadAll(s, b.daysBetween(from, from+rollcall.Day(r.IntN(8))))
			case what < 17:
				h.restoreAll(s)
			case what < 18:
				user := some().User
				h.erase(user)
				b.erase(user)
			case what < 19:
				h.restart()
			default:
				h.copyDirty(s)
			}
			if step%10 == 9 {
				h.asks(b, rollcall.DayRange{From: today - 50, To: today})
			}
		}
	}
}

// offloadZones marks by instants in zones, and compares with their civil dates.
func offloadZones(h *harness) {
	for _, name := range []string{"Asia/Shanghai", "America/New_York"} {
		zone := h.zone(name)
		s := newMemoryArchive()
		h.fresh(rollcall.Options{Archive: s, Timezone: zone})
		h.clock.Set(time.Date(2026, time.April, 9, 3, 30, 0, 0, time.UTC)) // yesterday in New York
		r := rand.New(rand.NewPCG(3, 4))
		b := newReferenceMarks("user")
		var marks []rollcall.Mark
		for range 600 { // over the end of winter time in New York
			at := h.now().Add(-time.Duration(r.Int64N(int64(60 * 24 * time.Hour))))
			y, m, d := at.In(zone).Date()
			mark := rollcall.Mark{User: fmt.Sprint("u", r.IntN(40)), Kind: "user", Day: h.roll.DayAt(at)}
			h.Equal(rollcall.DateOf(y, m, d), mark.Day)
			marks = append(marks, mark)
			b.add(mark)
		}
		h.mark(marks...)
		today := h.roll.Today()
		h.asks(b, rollcall.DayRange{From: today - 65, To: today})
		h.offloadAll(s, b.daysBetween(today-65, today-20))
		h.asks(b, rollcall.DayRange{From: today - 65, To: today})
		h.restart()
		h.clock.Set(h.roll.DayStart(today + 1))
		h.login("u1")
		b.add(rollcall.Mark{User: "u1", Kind: "user", Day: today + 1})
		h.offloadAll(s, b.daysBetween(today-65, today))
		h.asks(b, rollcall.DayRange{From: today - 64, To: today + 1})
	}
}

// offloadFirstDayMeanwhile takes back the first mark of a user, and has the next one
// taken back or leave while the archive says what it has.
func offloadFirstDayMeanwhile(h *harness) {
	for _, leaves := range []bool{false, true} {
		s := h.withArchive()
		today := h.roll.Today()
		b := newReferenceMarks("user")
		first, next := rollcall.Mark{User: "alice", Kind: "user", Day: today - 60}, rollcall.Mark{User: "alice", Kind: "user", Day: today - 50}
		for _, m := range []rollcall.Mark{first, next, {User: "alice", Kind: "user", Day: today - 3}, {User: "bob", Kind: "user", Day: today - 50}} {
			h.enter(b, m)
		}
		h.offloadAll(s, b.daysBetween(today-60, today-60))
		if !leaves {
			h.offloadAll(s, b.daysBetween(today-50, today-50))
		}
		h.asks(b, h.about())
		h.copyDirty(s)
		s.between = func() {
			if leaves {
				h.offload(s, "user", today-50)
				return
			}
			n, err := h.roll.Unmark(h.ctx, true, next)
			h.NoError(err)
			h.Equal(1, n)
			h.True(b.remove(next))
		}
		n, err := h.roll.Unmark(h.ctx, true, first)
		h.NoError(err)
		h.Equal(1, n)
		h.True(b.remove(first))
		h.asks(b, h.about())
	}
}

func offloadCopied(h *harness) {
	s, b, today := h.withArchivedMarks(40)
	h.offloadAll(s, b.daysBetween(today-39, today-30))
	late := rollcall.Mark{User: "late", Kind: "user", Day: today - 35}
	h.enter(b, late)
	h.copyDirty(s) // and the run ends here
	h.asks(b, h.about())
	h.unmarked(1, late)
	h.True(b.remove(late))
	h.asks(b, h.about())
	other := rollcall.Mark{User: "late", Kind: "user", Day: today - 20}
	h.enter(b, other)
	h.offloadAll(s, b.daysBetween(today-20, today-20))
	h.asks(b, h.about())

	gone := rollcall.Mark{User: "gone", Kind: "user", Day: today - 36}
	h.enter(b, gone)
	h.copyDirty(s)
	h.asks(b, h.about())
	h.erase("gone")
	b.erase("gone")
	for i := range 200 {
		h.enter(b, rollcall.Mark{User: fmt.Sprint("new", i), Kind: "user", Day: today - 19})
	}
	h.offloadAll(s, b.daysBetween(today-19, today-19))
	h.asks(b, h.about())
}

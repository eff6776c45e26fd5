package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rollcall/rollcall"
)

func archivalTests() []test {
	return []test{
		{"dirty maps are listed as they are now, also empty ones, until they are cleared", dirtyListed},
		{"a walk of dirty maps from cursor to cursor lists each once", dirtyWalk},
		{"a walk shows maps as they are when it comes to them", dirtyMeanwhile},
		{"a map that changed again stays dirty", clearChanged},
		{"a day's maps are listed again when they are to be copied again", markedDirty},
		{"hot days are listed with their users, by kind, then day", hotDays},
		{"a day is offloaded with its marks, and is not offloaded again", offloadDay},
		{"a user has archived days if marks of theirs were offloaded from the range, of the kind or of any", archivedDays},
		{"a day with a dirty map stays", offloadDirty},
		{"every figure is as before, whichever days are offloaded", offloadFigures},
		{"a mark is counted once that is taken back while its day is offloaded", unmarkWhileOffloaded},
		{"a mark that stands in the archive stands already", markArchived},
		{"a user is answered for without the archive but for the streak", streakUnavailable},
		{"a first day that is taken back is sought in the archive", offloadFirstDay},
		{"a first day is right whatever happens while the archive is asked", offloadFirstDayMeanwhile},
		{"random marks, offloads and returns are as plain sets", offloadRandom},
	}
}

// longArchivalTests are cases whose steps the random history of [archivalTests]
// takes as well, in any order.
func longArchivalTests() []test {
	return []test{
		{"a late mark of an offloaded day counts, and is offloaded in its turn", offloadLate},
		{"a mark of an offloaded day is taken back", offloadUnmark},
		{"a late mark that was copied and taken back before it left counts no more", offloadCopied},
		{"an erased user is gone from offloaded days, and a new one has none", offloadErase},
		{"days that left are as they were after a restart at any step", offloadRestart},
		{"without the archive what is hot is answered, and nothing else", archiveAway},
		{"series and first days do not ask the archive", figuresStayHot},
		{"figures that marks changed are answered without the archive, and say so", figuresGoStale},
		{"restored days are as they were, and no change", restoredDays},
		{"civil days of zones are offloaded as they are", offloadZones},
	}
}

// withArchive begins again with an empty store and an archive.
func (h *harness) withArchive() *memoryArchive {
	s := newMemoryArchive()
	h.fresh(rollcall.Options{Archive: s})
	return s
}

// dirty returns all dirty maps, by kind, month and user.
func (h *harness) dirty(limit int) []rollcall.MonthMap {
	var out []rollcall.MonthMap
	for cursor, steps := "", 0; ; steps++ {
		page, next, err := h.engine.ListDirty(h.ctx, cursor, limit)
		h.NoError(err)
		h.LessOrEqual(len(page), limit)
		h.Less(steps, 100_000, "the walk ends")
		out = append(out, page...)
		if next == "" {
			break
		}
		cursor = next
	}
	slices.SortFunc(out, compareMaps)
	return out
}

func compareMaps(a, b rollcall.MonthMap) int {
	if c := strings.Compare(a.Kind, b.Kind); c != 0 {
		return c
	}
	if a.Month != b.Month {
		return int(a.Month - b.Month)
	}
	return strings.Compare(a.User, b.User)
}

// copyDirty copies the dirty maps to the archive.
func (h *harness) copyDirty(s *memoryArchive) {
	maps := h.dirty(50)
	s.copy(maps)
	n, err := h.engine.ClearDirty(h.ctx, maps)
	h.NoError(err)
	h.Zero(n)
	h.Empty(h.dirty(50))
}

// offload lets a day go as a run of the archive does.
func (h *harness) offload(s *memoryArchive, kind string, day rollcall.Day) int {
	h.NoError(h.engine.FinalizeFigures(h.ctx, kind, rollcall.DayRange{From: day, To: day}))
	s.note(kind, day, true)
	n, complete, err := h.engine.Offload(h.ctx, kind, day)
	h.NoError(err)
	h.True(complete)
	return n
}

// restoreAll calls back all days that were offloaded.
func (h *harness) restoreAll(s *memoryArchive) {
	for some := range slices.Chunk(s.listed(), 40) {
		h.NoError(h.engine.Restore(h.ctx, some))
	}
	for m := range maps.Clone(s.offloaded) {
		s.note(m.Kind, m.Day, false)
	}
}

func (h *harness) hotDays() []rollcall.HotDay {
	days, err := h.engine.HotDays(h.ctx)
	h.NoError(err)
	return days
}

func (h *harness) unmarked(want int, marks ...rollcall.Mark) {
	n, err := h.roll.Unmark(h.ctx, true, marks...)
	h.NoError(err)
	h.Equal(want, n)
}

func monthMap(user, kind string, month rollcall.Month, days ...int) rollcall.MonthMap {
	m := rollcall.MonthMap{User: user, Kind: kind, Month: month}
	for _, d := range days {
		m.Days |= 1 << (d - 1)
	}
	return m
}

func dirtyListed(h *harness) {
	h.Empty(h.dirty(10))
	staff := rollcall.Mark{User: "alice", Kind: "staff", Day: h.roll.Today()}
	h.mark(h.on("alice", 0), h.on("alice", -1), h.on("alice", -4), h.on("bob", -40), staff)
	h.login("carol")
	want := []rollcall.MonthMap{
		monthMap("alice", "staff", 202603, 4),
		monthMap("bob", "user", 202601, 23),
		monthMap("alice", "user", 202602, 28),
		monthMap("alice", "user", 202603, 3, 4),
		monthMap("carol", "user", 202603, 4),
	}
	h.Equal(want, h.dirty(10))
	h.restart()
	h.Equal(want, h.dirty(10))
	h.unmarked(2, h.on("bob", -40), h.on("alice", -1))
	want[1].Days, want[3].Days = 0, 1<<3
	h.Equal(want, h.dirty(10), "an empty map has to be told as well")
	n, err := h.engine.ClearDirty(h.ctx, want[1:])
	h.NoError(err)
	h.Zero(n)
	h.Equal(want[:1], h.dirty(10))
	h.restart()
	h.Equal(want[:1], h.dirty(10))
	h.mark(h.on("alice", 0))
	h.Equal(want[:1], h.dirty(10), "a mark that stands is no change")
	h.unmarked(0, h.on("nobody", 0), h.on("alice", -2))
	h.Equal(want[:1], h.dirty(10), "nor is one that is not there")
	h.mark(h.on("bob", -41))
	h.Equal([]rollcall.MonthMap{want[0], monthMap("bob", "user", 202601, 22)}, h.dirty(10))
	h.erase("bob")
	h.Equal(want[:1], h.dirty(10), "nothing is left of who was erased")
}

func dirtyWalk(h *harness) {
	b := h.populate(70)
	want := h.dirty(1000)
	h.NotEmpty(want)
	for _, m := range want {
		r := b[m.Kind]
		for _, d := range m.Month.Days(m.Month.Mask()) {
			h.Equal(r[d][m.User], m.Days&rollcall.Bit(d) != 0, "%s of %s on %s", m.User, m.Kind, d)
		}
	}
	for _, limit := range []int{1, 7, 64} {
		h.Equal(want, h.dirty(limit))
	}
	var cleared int // while the walk is under way, as a copy does it
	for cursor := ""; ; {
		page, next, err := h.engine.ListDirty(h.ctx, cursor, 13)
		h.NoError(err)
		n, err := h.engine.ClearDirty(h.ctx, page)
		h.NoError(err)
		h.Zero(n)
		cleared += len(page)
		if next == "" {
			break
		}
		cursor = next
	}
	h.Equal(len(want), cleared)
	h.Empty(h.dirty(10))
}

func clearChanged(h *harness) {
	h.mark(h.on("alice", 0), h.on("bob", 0), h.on("carol", 0), h.on("dave", 0))
	before := h.dirty(10)
	h.mark(h.on("alice", -1))
	h.unmarked(1, h.on("bob", 0))
	h.unmarked(1, h.on("carol", 0))
	h.mark(h.on("carol", 0)) // and is as it was
	h.erase("dave")
	n, err := h.engine.ClearDirty(h.ctx, before)
	h.NoError(err)
	h.Equal(2, n)
	h.Equal([]rollcall.MonthMap{monthMap("alice", "user", 202603, 3, 4), monthMap("bob", "user", 202603)}, h.dirty(10))
	n, err = h.engine.ClearDirty(h.ctx, []rollcall.MonthMap{monthMap("nobody", "user", 202603, 1), monthMap("alice", "none", 202603, 1)})
	h.NoError(err)
	h.LessOrEqual(n, 1, "maps of nobody wait for nothing")
}

func hotDays(h *harness) {
	h.Empty(h.hotDays())
	today := h.roll.Today()
	h.mark(h.on("alice", 0), h.on("bob", 0), h.on("carol", 0), h.on("alice", -1), h.on("bob", -70),
		rollcall.Mark{User: "alice", Kind: "staff", Day: today})
	h.unmarked(1, h.on("alice", -1))
	want := []rollcall.HotDay{
		{Kind: "staff", Day: today, Users: 1}, {Kind: "user", Day: today - 70, Users: 1}, {Kind: "user", Day: today, Users: 3},
	}
	h.Equal(want, h.hotDays())
	h.restart()
	h.Equal(want, h.hotDays())
}

func archivedDays(h *harness) {
	s := h.withArchive()
	today := h.roll.Today()
	h.mark(h.on("alice", -50), h.on("alice", 0), h.on("bob", 0), rollcall.Mark{User: "alice", Kind: "staff", Day: today - 40})
	h.copyDirty(s)
	has := func(user, kind string, from, to rollcall.Day) bool {
		some, err := h.engine.HasArchivedDays(h.ctx, user, kind, rollcall.DayRange{From: from, To: to})
		h.NoError(err)
		return some
	}
	h.False(has("alice", "", today-60, today))
	h.offload(s, "user", today-50)
	s.goAway(true) // the archive is not asked
	for range 2 {
		h.True(has("alice", "", today-60, today))
		h.True(has("alice", "user", today-50, today-50))
		h.False(has("alice", "staff", today-60, today))
		h.False(has("alice", "", today-49, today))
		h.False(has("bob", "", today-60, today))
		h.False(has("nobody", "", today-60, today))
		h.restart()
	}
}

func offloadDay(h *harness) {
	s := h.withArchive()
	today := h.roll.Today()
	for _, u := range numbered("u", 100) {
		h.mark(h.on(u, -50), h.on(u, -49))
	}
	h.mark(rollcall.Mark{User: "u0003", Kind: "staff", Day: today - 50})
	h.copyDirty(s)
	h.Equal(100, h.offload(s, "user", today-50))
	h.Equal([]rollcall.HotDay{{Kind: "staff", Day: today - 50, Users: 1}, {Kind: "user", Day: today - 49, Users: 100}}, h.hotDays())
	h.Empty(h.dirty(10), "that a day left is no change")
	h.Zero(h.offload(s, "user", today-50))
	h.Zero(h.offload(s, "user", today-51))
	h.Zero(h.offload(s, "none", today-50))
	h.Len(h.active("", rollcall.MatchEvery, today-50, today-49), 100)
	days, err := h.engine.Days(h.ctx, "u0003", "", rollcall.DayRange{From: today - 60, To: today})
	h.NoError(err)
	h.Equal([]rollcall.Day{today - 50, today - 49}, days, "the mark of the other kind is hot")
	days, err = h.engine.Days(h.ctx, "u0004", "", rollcall.DayRange{From: today - 60, To: today})
	h.NoError(err)
	h.Equal([]rollcall.Day{today - 49}, days)
}

func offloadDirty(h *harness) {
	s := h.withArchive()
	today := h.roll.Today()
	users := numbered("u", 60)
	for _, u := range users {
		h.mark(h.on(u, -50))
	}
	h.copyDirty(s)
	h.mark(h.on("u0007", -49)) // of the same month
	s.note("user", today-50, true)
	n, complete, err := h.engine.Offload(h.ctx, "user", today-50)
	h.NoError(err)
	h.False(complete)
	h.Less(n, 60)
	h.Equal(users, h.active("", rollcall.MatchAny, today-50, today-50))
	hot := 0
	for _, d := range h.hotDays() {
		if d.Day == today-50 {
			hot = d.Users
		}
	}
	h.Equal(60, n+hot, "a partition lets all its marks go or none")
	h.Positive(hot)
	h.copyDirty(s)
	h.Equal(hot, h.offload(s, "user", today-50))
	h.Equal(users, h.active("", rollcall.MatchAny, today-50, today-50))
	h.Equal([]string{"u0007"}, h.active("", rollcall.MatchEvery, today-50, today-49))
}

func markedDirty(h *harness) {
	s := h.withArchive()
	for i, u := range numbered("u", 30) {
		h.mark(h.on(u, -50), h.on(u, -50-i))
	}
	h.copyDirty(s)
	today := h.roll.Today()
	h.NoError(h.engine.MarkDirty(h.ctx, "user", today-50))
	h.NoError(h.engine.MarkDirty(h.ctx, "user", today-300))
	h.NoError(h.engine.MarkDirty(h.ctx, "none", today-50))
	month := rollcall.MonthOf(today - 50)
	want := h.dirty(7)
	h.Len(want, 30)
	for _, m := range want {
		h.Equal(month, m.Month)
		h.NotZero(m.Days & rollcall.Bit(today-50))
	}
	h.restart()
	h.Equal(want, h.dirty(7))
	s.note("user", today-50, true)
	_, complete, err := h.engine.Offload(h.ctx, "user", today-50)
	h.NoError(err)
	h.False(complete)
	s.note("user", today-50, false)
	h.copyDirty(s)
	h.Equal(30, h.offload(s, "user", today-50))
}

func dirtyMeanwhile(h *harness) {
	users := numbered("u", 60)
	for _, u := range users {
		h.mark(h.on(u, 0), h.on(u, -1))
	}
	now := make(map[string]uint32)
	met := 0
	for cursor, page := "", 0; ; page++ {
		maps, next, err := h.engine.ListDirty(h.ctx, cursor, 7)
		h.NoError(err)
		for _, m := range maps {
			want, changed := now[m.User]
			if !changed {
				want = 1<<3 | 1<<2
			}
			h.Equal(want, m.Days, m.User)
			met++
		}
		if next == "" {
			break
		}
		if cursor = next; page == 0 {
			for i, u := range users {
				switch i % 3 {
				case 0:
					h.unmarked(1, h.on(u, -1))
					now[u] = 1 << 3
				case 1:
					h.erase(u)
					again := fmt.Sprint("new ", i)
					h.mark(h.on(again, 0)) // perhaps with the other's number
					now[again] = 1 << 3
				}
			}
		}
	}
	h.GreaterOrEqual(met, 40)
	h.Len(h.dirty(9), 60)
}

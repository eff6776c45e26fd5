package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

func visitTests() []test {
	return slices.Concat([]test{
		{"up to 100 visitors are counted to within 1", visitFew},
		{"many are estimated to within three standard errors", visitMany},
		{"noting a visitor again changes nothing", visitAgain},
		{"whoever came in several hours counts once in the day and once in the total", visitHours},
		{"calls at the same time all count", visitAtOnce},
		{"names are counted apart, and listed in the order of their bytes", visitNames},
		{"naming no visitors does not make a name known", visitNobody},
		{"visitors of one name too many are noted under other", visitTooManyNames},
		{"a name is listed with the hour it had visitors last", visitLast},
		{"a name can be forgotten with its visitors, and makes room", visitNameDeleted},
		{"a range has its first hour and not the one it ends with", visitRanges},
		{"a day that lies in the range in part counts in part", visitPartOfDay},
		{"an hour or day without visitors is in the answer", visitEmptyParts},
		{"a range has whole hours, and not too many", visitBadRanges},
		{"names and visitors are text, either all valid or none noted", visitBadTexts},
		{"visitors are not users, and an erasure does not concern them", visitorsAreNotUsers},
	}, visitZoneTests(), visitLastingTests())
}

func (h *harness) visit(name string, visitors ...string) {
	h.NoError(h.roll.Visit(h.ctx, name, visitors...))
}

// visitCrowd notes n visitors, from the one numbered first on.
func (h *harness) visitCrowd(name string, first, n int) {
	visitors := make([]string, 0, rollcall.MaxVisitors)
	for i := first; i < first+n; i++ {
		if visitors = append(visitors, fmt.Sprintf("visitor-%d", i)); len(visitors) == cap(visitors) {
			h.visit(name, visitors...)
			visitors = visitors[:0]
		}
	}
	h.visit(name, visitors...)
}

// visitors asks for a range that begins with the hour of from and ends with
// that of to.
func (h *harness) visitors(name string, by rollcall.VisitUnit, from, to time.Time) rollcall.VisitFigures {
	start, _ := h.roll.HourAt(from)
	_, end := h.roll.HourAt(to)
	f, err := h.roll.Visitors(h.ctx, rollcall.VisitQuery{Name: name, From: start, To: end, By: by})
	h.NoError(err)
	h.InDelta(1.04/128, f.StandardError, 0.004)
	return f
}

// visitsAre requires that few visitors are counted by a unit like this.
func (h *harness) visitsAre(total int, parts []int, name string, by rollcall.VisitUnit, from, to time.Time) {
	f := h.visitors(name, by, from, to)
	h.InDelta(total, f.Total, 1)
	h.Len(f.Items, len(parts))
	for i, item := range f.Items {
		h.InDelta(parts[i], item.Visitors, 1, "from %v", item.Start)
		if parts[i] == 0 {
			h.Zero(item.Visitors, "from %v", item.Start)
		}
	}
}

// visitedNow requires that so few were counted in the hour it is.
func (h *harness) visitedNow(n int, name string) {
	h.visitsAre(n, []int{n}, name, rollcall.VisitsByHour, h.now(), h.now())
}

func (h *harness) visitNames() []string {
	names, err := h.roll.VisitNames(h.ctx)
	h.NoError(err)
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = n.Name
	}
	return out
}

func visitFew(h *harness) {
	last := 0
	for _, n := range []int{0, 1, 2, 5, 10, 25, 50, 75, 100} {
		h.visitCrowd("", last, n-last)
		h.visitedNow(n, "")
		last = n
	}
	h.visitedNow(0, "another")
}

func visitMany(h *harness) {
	last := 0
	for _, n := range []int{1000, 5000, 20_000, 60_000, 200_000} {
		h.visitCrowd("", last, n-last)
		f := h.visitors("", rollcall.VisitsByHour, h.now(), h.now())
		h.InDelta(n, f.Total, 3*f.StandardError*float64(n))
		h.Len(f.Items, 1)
		h.Equal(f.Total, f.Items[0].Visitors)
		last = n
	}
}

func visitAgain(h *harness) {
	h.visit("", "a", "b", "a")
	for range 3 {
		h.visit("", "b", "a")
		h.tick()
		h.visitedNow(2, "")
	}
	h.visitCrowd("big", 0, 20_000)
	before := h.visitors("big", rollcall.VisitsByHour, h.now(), h.now())
	h.visitCrowd("big", 0, 20_000)
	h.Equal(before, h.visitors("big", rollcall.VisitsByHour, h.now(), h.now()))
}

func visitHours(h *harness) {
	from := h.now()
	for hour := range 4 { // 0–29, 10–39, 20–49, 30–59
		h.visitCrowd("", 10*hour, 30)
		h.advance(time.Hour)
	}
	h.clock.Set(from.Add(24 * time.Hour))
	h.visitCrowd("", 50, 20)
	h.visitsAre(70, []int{60, 20}, "", rollcall.VisitsByDay, from, h.now())
	h.visitsAre(60, []int{30, 30, 30, 30}, "", rollcall.VisitsByHour, from, from.Add(3*time.Hour))
}

func visitAtOnce(h *harness) {
	const callers, each = 8, 12
	var wg sync.WaitGroup
	faults := make([]error, callers)
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if err := h.roll.Visit(h.ctx, "busy", fmt.Sprintf("%d of %d", i, c), "everybody"); err != nil {
					faults[c] = err
				}
			}
		})
	}
	wg.Wait()
	for _, err := range faults {
		h.NoError(err)
	}
	h.visitedNow(callers*each+1, "busy")
}

func visitNames(h *harness) {
	h.Empty(h.visitNames())
	names := []string{"", " ", "/a?b=c&d", "B", "a", "a/b", "b", strings.Repeat("n", rollcall.MaxVisitNameLen), "é", "日本", "😀"}
	for i, name := range names {
		h.visitCrowd(name, i, i+1)
	}
	h.Equal(names, h.visitNames())
	for i, name := range names {
		h.visitedNow(i+1, name)
	}
	h.visitedNow(0, "nobody's")
	h.Equal(names, h.visitNames(), "a question makes nothing known")
}

func visitNobody(h *harness) {
	h.visit("empty")
	h.Empty(h.visitNames())
	h.visit("full", "a")
	h.visit("full")
	h.Equal([]string{"full"}, h.visitNames())
	h.visitedNow(1, "full")
}

func visitTooManyNames(h *harness) {
	names := numbered("name", rollcall.MaxVisitNames)
	for _, name := range names {
		h.visit(name, "a")
	}
	h.tick()
	h.visit("one more", "x")
	h.visit("and another", "y")
	h.visitedNow(0, "one more")
	h.visitedNow(2, rollcall.VisitsOther)
	h.Equal(append(names, rollcall.VisitsOther), h.visitNames())
	h.visit(names[7], "b")
	h.visitedNow(2, names[7])
	st, serr := h.roll.Stats(h.ctx)
	h.NoError(serr)
	h.Equal(rollcall.MaxVisitNames+1, st.VisitNames)
	h.Equal(int64(2), st.OtherVisits)
	h.NoError(h.roll.DeleteVisitName(h.ctx, names[3]))
	h.visit("one more", "x")
	h.visitedNow(1, "one more")
}

func visitLast(h *harness) {
	h.visit("page", "a")
	last := func() []rollcall.VisitName {
		names, err := h.roll.VisitNames(h.ctx)
		h.NoError(err)
		return names
	}
	h.Equal([]rollcall.VisitName{{Name: "page", Last: start()}}, last())
	h.advance(90 * time.Minute)
	h.visit("page", "b")
	h.Equal([]rollcall.VisitName{{Name: "page", Last: start().Add(time.Hour)}}, last())
	h.restart()
	h.Equal([]rollcall.VisitName{{Name: "page", Last: start().Add(time.Hour)}}, last())
}

func visitNameDeleted(h *harness) {
	for range 3 {
		h.visit("page", "a", "b")
		h.visit("page two", "c")
		h.tick()
		h.advance(time.Hour)
	}
	h.code(rollcall.CodeNotFound, h.roll.DeleteVisitName(h.ctx, "pag"))
	h.NoError(h.roll.DeleteVisitName(h.ctx, "page"))
	h.code(rollcall.CodeNotFound, h.roll.DeleteVisitName(h.ctx, "page"))
	check := func() {
		h.Equal([]string{"page two"}, h.visitNames())
		h.Zero(h.visitors("page", rollcall.VisitsByHour, start(), h.now()).Total)
		h.Equal(1, h.visitors("page two", rollcall.VisitsByHour, start(), h.now()).Total)
	}
	check()
	h.restart()
	check()
}

func visitRanges(h *harness) {
	first := h.now().Add(-12 * time.Hour)
	h.clock.Set(first)
	for hour := range 48 {
		h.visitCrowd("", hour, 1)
		h.advance(time.Hour - time.Millisecond)
		h.visitCrowd("", 100+hour, 1)
		h.advance(time.Millisecond)
	}
	for _, r := range []struct{ from, to int }{{0, 0}, {0, 47}, {5, 7}, {23, 24}, {47, 47}, {-3, 1}, {46, 50}} {
		n := max(0, min(r.to, 47)-max(r.from, 0)+1)
		f := h.visitors("", rollcall.VisitsByHour, first.Add(time.Duration(r.from)*time.Hour), first.Add(time.Duration(r.to)*time.Hour))
		h.InDelta(2*n, f.Total, 1, "%v", r)
		h.Len(f.Items, r.to-r.from+1)
		for i, item := range f.Items {
			h.True(item.Start.Equal(first.Add(time.Duration(r.from+i)*time.Hour)), "%v", item.Start)
		}
	}
	h.visitsAre(96, []int{48, 48}, "", rollcall.VisitsByDay, first, first.Add(47*time.Hour))
}

func visitPartOfDay(h *harness) {
	noon := h.now()
	for hour := range 36 {
		h.clock.Set(noon.Add(time.Duration(hour) * time.Hour))
		h.visitCrowd("", hour, 1)
	}
	h.visitsAre(36, []int{12, 24}, "", rollcall.VisitsByDay, noon, noon.Add(35*time.Hour))
	f := h.visitors("", rollcall.VisitsByDay, noon.Add(2*time.Hour), noon.Add(14*time.Hour))
	h.Len(f.Items, 2)
	h.True(f.Items[0].Start.Equal(noon.Add(2*time.Hour)), "the range begins within the day")
	h.True(f.Items[1].Start.Equal(noon.Add(12*time.Hour)), "midnight")
	h.InDelta(10, f.Items[0].Visitors, 1)
	h.InDelta(3, f.Items[1].Visitors, 1)
	h.InDelta(13, f.Total, 1)
}

func visitEmptyParts(h *harness) {
	from := h.now()
	h.visit("", "a")
	h.advance(50 * time.Hour)
	h.visit("", "a")
	h.visitsAre(1, []int{1, 0, 1, 0, 0}, "", rollcall.VisitsByDay, from, from.Add(4*24*time.Hour))
	h.visitsAre(1, []int{0, 1, 0}, "", rollcall.VisitsByHour, h.now().Add(-time.Hour), h.now().Add(time.Hour))
	h.visitsAre(0, []int{0, 0}, "", rollcall.VisitsByHour, from.Add(-2*time.Hour), from.Add(-time.Hour))
	h.visitsAre(0, make([]int, rollcall.MaxVisitDays), "never", rollcall.VisitsByDay,
		from.AddDate(0, 0, 1-rollcall.MaxVisitDays), from)
}

func visitBadRanges(h *harness) {
	day := h.roll.DayStart(h.roll.Today())
	refused := func(field string, from, to time.Time, by rollcall.VisitUnit) {
		_, err := h.roll.Visitors(h.ctx, rollcall.VisitQuery{From: from, To: to, By: by})
		h.Equal(field, h.code(rollcall.CodeInvalidArgument, err).Field)
	}
	answered := func(from, to time.Time, by rollcall.VisitUnit, parts int) {
		f, err := h.roll.Visitors(h.ctx, rollcall.VisitQuery{From: from, To: to, By: by})
		h.NoError(err)
		h.Len(f.Items, parts)
	}
	refused("to", day, day, "")
	refused("to", day, day.Add(-time.Hour), "")
	refused("from", day.Add(time.Millisecond), day.Add(time.Hour), "")
	refused("to", day, day.Add(90*time.Minute), "")
	refused("from", time.Time{}, day, "")
	refused("from", time.Unix(-3600, 0), day, "")
	refused("to", day, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), "")
	refused("by", day, day.Add(time.Hour), "week")
	answered(day, day.AddDate(0, 0, rollcall.MaxVisitDays), "", rollcall.MaxVisitDays)
	refused("to", day, day.AddDate(0, 0, rollcall.MaxVisitDays).Add(time.Hour), "")
	answered(day, day.AddDate(0, 0, rollcall.MaxVisitDaysByHour), rollcall.VisitsByHour, 24*rollcall.MaxVisitDaysByHour)
	refused("to", day, day.AddDate(0, 0, rollcall.MaxVisitDaysByHour).Add(time.Hour), rollcall.VisitsByHour)
	answered(time.Unix(0, 0), time.Unix(7200, 0), rollcall.VisitsByHour, 2)
}

func visitBadTexts(h *harness) {
	for _, name := range []string{strings.Repeat("n", rollcall.MaxVisitNameLen+1), "a\nb", "\xff", "\x00"} {
		h.Equal("name", h.code(rollcall.CodeInvalidArgument, h.roll.Visit(h.ctx, name, "a")).Field)
		_, err := h.roll.Visitors(h.ctx, rollcall.VisitQuery{Name: name, From: start(), To: start().Add(time.Hour)})
		h.Equal("name", h.code(rollcall.CodeInvalidArgument, err).Field)
	}
	for _, visitor := range []string{"", strings.Repeat("v", rollcall.MaxVisitorLen+1), "a\tb", "\xff"} {
		h.Equal("visitors[1]", h.code(rollcall.CodeInvalidArgument, h.roll.Visit(h.ctx, "", "a", visitor)).Field)
	}
	h.Equal("visitors", h.code(rollcall.CodeInvalidArgument, h.roll.Visit(h.ctx, "", make([]string, rollcall.MaxVisitors+1)...)).Field)
	h.Empty(h.visitNames())
	h.visit("", strings.Repeat("v", rollcall.MaxVisitorLen), "é", "007", "7")
	h.visitedNow(4, "")
}

func visitorsAreNotUsers(h *harness) {
	h.visit("", "alice", "bob")
	h.Zero(h.known())
	h.False(h.status("alice").Online)
	h.Empty(h.attended("alice", ""))
	st, err := h.roll.Stats(h.ctx)
	h.NoError(err)
	h.Zero(st.Users)
	h.Equal(1, st.VisitNames)
	h.beat("alice", "carol")
	h.visitedNow(2, "")
	h.erase("alice")
	h.visitedNow(2, "")
}

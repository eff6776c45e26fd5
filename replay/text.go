package replay

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Widths that the text report keeps to.
const (
	minWidth   = 60
	shownWeeks = 9  // columns of the retention table
	shownRows  = 12 // rows of tables that could go on
	shownBad   = 5  // rejected lines
)

// textReport writes the report for a person.
type textReport struct {
	*Report
	w     *bufio.Writer
	width int
}

// WriteText writes the report for a person, on a terminal of that many columns
// (at least 60).
func (r *Report) WriteText(w io.Writer, width int) error {
	t := &textReport{Report: r, w: bufio.NewWriter(w), width: max(width, minWidth)}
	t.head()
	if len(t.Series) > 0 {
		t.days()
		t.retention()
		t.lifecycle()
		t.streaks()
		t.activeDays()
	}
	t.probes()
	t.rejected()
	return t.w.Flush()
}

func (t *textReport) printf(format string, args ...any) { fmt.Fprintf(t.w, format, args...) }

func (t *textReport) title(text string) {
	t.printf("\n%s\n%s\n", text, strings.Repeat("─", len([]rune(text))))
}

func (t *textReport) moment(unix int64) string {
	return time.Unix(unix, 0).In(t.zone).Format("Mon 2 Jan 2006, 15:04:05")
}

func (t *textReport) head() {
	if t.Rows == 0 {
		t.printf("No row could be read.\n")
		return
	}
	t.printf("%s %s of %s %s, from %s\nto %s (%s)\n\n",
		thousands(t.Rows), plural(t.Rows, "row", "rows"), thousands(t.Users), plural(t.Users, "visitor", "visitors"), t.moment(t.From), t.moment(t.To), t.zone)
	t.printf("  Peak online   %8s   %s\n", thousands(t.Peak.Online), t.moment(time.Time(t.Peak.At).Unix()))
	t.printf("  Sessions      %8s   %.1f a visitor\n", thousands(t.Sessions), float64(t.Sessions)/float64(t.Users))
	t.printf("  Days          %8s\n", thousands(len(t.Series)))
}

// days draws the active users by day, and their figures.
func (t *textReport) days() {
	t.title("Active visitors by day")
	for _, row := range []struct {
		name string
		of   func(Point) int
	}{
		{"day", func(p Point) int { return p.DAU }},
		{"7 days", func(p Point) int { return p.WAU }},
		{"28 days", func(p Point) int { return p.MAU }},
	} {
		values := make([]int, len(t.Series))
		for i, p := range t.Series {
			values[i] = row.of(p)
		}
		most := slices.Max(values)
		t.printf("  %-8s %s  max %s\n", row.name, spark(values, t.width-26), thousands(most))
	}
	first, last := t.Series[0].Day, t.Series[len(t.Series)-1].Day
	if room := min(len(t.Series), t.width-26); room > 22 {
		t.printf("  %-8s %-*s%s\n", "", room-10, first, last)
	} else {
		t.printf("  %-8s %s to %s\n", "", first, last)
	}
}

func (t *textReport) retention() {
	t.title("Retention by week: share of a week's new visitors who came k weeks later")
	columns := min(shownWeeks, (t.width-18)/6)
	t.printf("  %-10s %5s", "week of", "new")
	for k := range columns {
		t.printf(" %5s", "+"+strconv.Itoa(k))
	}
	t.printf("\n")
	rows := t.Retention.On.Cohorts
	for _, c := range rows[:min(len(rows), shownRows)] {
		t.printf("  %-10s %5d", c.Start, c.Size)
		for k := range min(columns, len(c.Retained)) {
			t.printf(" %5s", share(c, k))
		}
		t.printf("\n")
	}
	t.more(len(rows) - shownRows)
	t.printf("  %-10s %5s", "mean", "")
	for k := range min(columns, len(t.Retention.On.Mean)) {
		if m := t.Retention.On.Mean[k]; m != nil {
			t.printf(" %4.0f%%", 100**m)
		} else {
			t.printf(" %5s", "·")
		}
	}
	t.printf("\n  * the week is not over in this log\n")
}

func share(c Cohort, k int) string {
	if c.Size == 0 {
		return "·"
	}
	text := fmt.Sprintf("%.0f%%", 100*float64(c.Retained[k])/float64(c.Size))
	if !c.Complete[k] {
		text += "*"
	}
	return text
}

func (t *textReport) lifecycle() {
	t.title("Life cycle by week")
	t.printf("  %-10s %8s %10s %13s %9s\n", "week of", "new", "returning", "resurrecting", "dormant")
	for _, l := range t.Lifecycle[:min(len(t.Lifecycle), shownRows)] {
		t.printf("  %-10s %8d %10d %13d %9d\n", l.Start, l.New, l.Returning, l.Resurrecting, l.Dormant)
	}
	t.more(len(t.Lifecycle) - shownRows)
}

func (t *textReport) streaks() {
	t.title("Longest streaks")
	const shown = 5
	room := t.width - 20
	for _, s := range t.Streaks[:min(len(t.Streaks), shown)] {
		t.printf("  %4d %s  %s\n", s.Longest, plural(s.Longest, "day ", "days"), clip(s.User, room))
	}
	t.more(len(t.Streaks) - shown)
}

func (t *textReport) activeDays() {
	t.title("Visitors by number of active days")
	buckets := []struct {
		name     string
		from, to int
	}{
		{"1", 1, 1}, {"2", 2, 2}, {"3", 3, 3}, {"4–7", 4, 7}, {"8–14", 8, 14}, {"15–30", 15, 30}, {"31+", 31, 1 << 30},
	}
	counts := make([]int, len(buckets))
	for days, n := range t.ActiveDays {
		d, err := strconv.Atoi(days)
		if err != nil {
			continue
		}
		for i, b := range buckets {
			if b.from <= d && d <= b.to {
				counts[i] += n
			}
		}
	}
	most := max(1, slices.Max(counts))
	for i, b := range buckets {
		if counts[i] == 0 {
			continue
		}
		t.printf("  %-6s %8s  %s\n", b.name, thousands(counts[i]), strings.Repeat("█", max(1, counts[i]*(t.width-22)/most)))
	}
}

func (t *textReport) probes() {
	if len(t.Probes) == 0 {
		return
	}
	t.title("Probes")
	for _, p := range t.Probes {
		t.printf("  %s (%d): %s live %s\n", t.moment(p.At), p.At, thousands(p.SessionsTotal), plural(p.SessionsTotal, "session", "sessions"))
		windows := make([]int, 0, len(p.Online))
		for w := range p.Online {
			n, err := strconv.Atoi(w)
			if err == nil {
				windows = append(windows, n)
			}
		}
		slices.Sort(windows)
		t.printf("    online within")
		for _, w := range windows {
			t.printf("  %ds: %s", w, thousands(p.Online[strconv.Itoa(w)]))
		}
		t.printf("\n")
		for _, user := range slices.Sorted(maps.Keys(p.Friends)) {
			friends := p.Friends[user]
			t.printf("    %s\n", clip(fmt.Sprintf("friends of %s online (%d): %s", user, len(friends), strings.Join(friends, " ")), t.width-6))
		}
	}
}

func (t *textReport) rejected() {
	if t.Rejected == 0 {
		return
	}
	t.title(fmt.Sprintf("%s %s could not be read", thousands(t.Rejected), plural(t.Rejected, "line", "lines")))
	for _, bad := range t.First[:min(len(t.First), shownBad)] {
		t.printf("  line %d: %s\n", bad.Line, clip(bad.Reason, t.width-16))
	}
	t.more(t.Rejected - shownBad)
}

func (t *textReport) more(n int) {
	if n > 0 {
		t.printf("  … and %s more\n", thousands(n))
	}
}

// spark draws values as a line of bars, each the highest of those it stands
// for.
func spark(values []int, width int) string {
	const bars = " ▁▂▃▄▅▆▇█"
	levels := []rune(bars)
	width = min(width, len(values))
	most := max(1, slices.Max(values))
	out := make([]rune, width)
	for i := range out {
		part := values[i*len(values)/width : (i+1)*len(values)/width]
		top := slices.Max(part)
		level := (top*(len(levels)-1) + most - 1) / most
		out[i] = levels[level]
	}
	return string(out)
}

func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// clip shortens a text to a number of characters.
func clip(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

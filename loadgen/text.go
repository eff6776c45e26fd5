package loadgen

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
)

// textReport writes a report for a person, on 80 columns.
type textReport struct {
	*Report
	w *bufio.Writer
}

// WriteText writes the report for a person, on a terminal of 80 columns.
func (r *Report) WriteText(w io.Writer) error {
	t := &textReport{Report: r, w: bufio.NewWriter(w)}
	t.head()
	t.table()
	t.errors()
	t.schedule()
	t.arrived()
	return t.w.Flush()
}

func (t *textReport) printf(format string, args ...any) { fmt.Fprintf(t.w, format, args...) }

// head says what was measured.
func (t *textReport) head() {
	t.printf("%s", t.Target)
	if t.Where != "" {
		t.printf(", %s", t.Where)
	}
	t.printf("\n%s users, %s logged in, %s connections", comma(t.Users), comma(t.Sessions), comma(t.Connections))
	t.printf("\n%s s measured after %s s of warm-up, ", seconds(t.Seconds), seconds(t.WarmUp))
	if t.Schedule != nil {
		t.printf("%s operations a second\n\n", humanize.Commaf(t.Schedule.Rate))
	} else {
		t.printf("as fast as can be\n\n")
	}
}

// table has a row for each operation.
func (t *textReport) table() {
	const row = "%-9s %9s %11s %7s %7s %7s %7s %7s %7s\n"
	t.printf(row, "OPERATION", "RATE/S", "OK", "ERRORS", "P50", "P90", "P99", "P99.9", "MAX")
	rows := t.Operations
	if len(rows) > 1 {
		rows = append(slices.Clone(rows), t.All)
	}
	for _, f := range rows {
		cells := []any{string(f.Operation), humanize.Comma(int64(f.Rate)), humanize.Comma(f.OK), humanize.Comma(f.Failed())}
		for _, ms := range f.percentiles() {
			cells = append(cells, ms)
		}
		t.printf(row, cells...)
	}
	if t.All.Users > 0 && t.Seconds > 0 {
		t.printf("\nBeats saw %s users a second, %s at a time.\n", humanize.Comma(int64(float64(t.All.Users)/t.Seconds)), comma(t.Batch))
	}
}

func (f *Figures) percentiles() []string {
	if f.Latency == nil {
		return []string{"-", "-", "-", "-", "-"}
	}
	l := f.Latency
	return []string{short(l.P50), short(l.P90), short(l.P99), short(l.P999), short(l.Max)}
}

// short writes milliseconds in at most seven columns: 3µs, 1.2ms, 12ms, 1.2s.
func short(ms float64) string {
	switch d := time.Duration(ms * 1e6); {
	case d < time.Millisecond:
		return fmt.Sprintf("%.0fµs", ms*1e3)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2fms", ms)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1fms", ms)
	case d < time.Second:
		return fmt.Sprintf("%.0fms", ms)
	default:
		return fmt.Sprintf("%.2fs", ms/1e3)
	}
}

// errors counts what failed, and says what to do about the common codes.
func (t *textReport) errors() {
	if t.All.Failed() == 0 {
		return
	}
	t.printf("\nErrors:\n")
	for _, f := range t.Operations {
		for _, code := range slices.Sorted(maps.Keys(f.Errors)) {
			t.printf("  %-9s %11s  %s\n", f.Operation, humanize.Comma(f.Errors[code]), code)
		}
	}
	if t.All.Errors[rollcall.CodeRateLimited] > 0 {
		t.printf("The server limits how much one API key may ask: raise rate_limits.key, or turn\nit off, to see what the server can do.\n")
	}
	if t.All.Errors[rollcall.CodeUnavailable] > 0 {
		t.printf("Unavailable: no answer came in time, the server refused the connection, or its\nengine could not answer; its log says which.\n")
	}
}

// schedule says how well a rate was kept.
func (t *textReport) schedule() {
	s := t.Schedule
	switch {
	case s == nil:
	case s.NotBegun > 0:
		t.printf("\nThe rate was not kept. %s operations were due at the end and had not begun:\n%s s of the rate. Those that began did so up to %s s late.\n",
			humanize.Comma(s.NotBegun), seconds(s.Behind), seconds(s.Latest))
	default:
		t.printf("\nThe rate was kept. Operations began up to %s late.\n", short(s.Latest*1e3))
	}
}

// arrived says what became of beats that nobody answers.
func (t *textReport) arrived() {
	a := t.Arrived
	if a == nil {
		return
	}
	t.printf("\nOf %s users in all beats, the warm-up's too, %s were counted.\n", humanize.Comma(a.Sent), humanize.Comma(a.Counted))
	for _, reason := range slices.Sorted(maps.Keys(a.Dropped)) {
		t.printf("  %-15s %11s  dropped by the server\n", reason, humanize.Comma(a.Dropped[reason]))
	}
	if lost := a.Lost(); lost > 0 {
		t.printf("  %-15s %11s  never came to the server: the system dropped them\n", "lost", humanize.Comma(lost))
	}
}

func comma(n int) string { return humanize.Comma(int64(n)) }

// seconds writes seconds in as few digits as say something.
func seconds(s float64) string {
	text := fmt.Sprintf("%.2f", s)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/rollcall/rollcall"
)

// table is a list for a person, or one JSON object a line for a program.
type table struct {
	head   []string
	rows   [][]string
	values []any // what stands for a row in JSON
	right  int   // columns from this one on hold numbers
	gap    int
	foot   string // a line below the table
}

// newTable begins a table with the names of its columns.
func newTable(head ...string) *table { return &table{head: head, right: math.MaxInt, gap: 2} }

// add adds a row, and what it is in JSON.
func (t *table) add(value any, cells ...string) {
	t.rows, t.values = append(t.rows, cells), append(t.values, value)
}

// print writes the table, or empty if it has no rows.
func (t *table) print(a *app, asJSON bool, empty string) error {
	if asJSON {
		return printJSON(a.stdout, t.values...)
	}
	if len(t.rows) == 0 {
		fmt.Fprintln(a.stdout, empty)
		return nil
	}
	for _, line := range t.lines(a.columns()) {
		if _, err := fmt.Fprintln(a.stdout, line); err != nil {
			return err
		}
	}
	if t.foot != "" {
		fmt.Fprintln(a.stdout, t.foot)
	}
	return nil
}

// printJSON writes an object a line.
func printJSON(w io.Writer, values ...any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// columns is how wide the output may be. What goes to a program is not cut, unless
// COLUMNS says so.
func (a *app) columns() int {
	if n, err := strconv.Atoi(a.variable("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if !isTerminal(a.stdout) {
		return math.MaxInt
	}
	if n := widthOf(a.stdout); n > 0 {
		return n
	}
	return 80 // of a terminal that knows no size
}

// lines lays the table out. Columns without anything in them are left out, and the
// widest give way until a line fits.
func (t *table) lines(width int) []string {
	widths := make([]int, len(t.head))
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = printable(cell)
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
	}
	var shown []int
	for i, w := range widths {
		if w > 0 {
			shown = append(shown, i)
			widths[i] = max(w, uniseg.StringWidth(t.head[i]))
		}
	}
	t.fit(widths, shown, width)
	out := make([]string, 0, len(t.rows)+1)
	head := make([]string, len(t.head))
	for i, name := range t.head {
		head[i] = strings.ToUpper(name)
	}
	for _, row := range append([][]string{head}, t.rows...) {
		out = append(out, t.line(row, widths, shown))
	}
	return out
}

// narrow is how far a column gives way.
const narrow = 6

// keepsWidth reports whether a column keeps its width: half an id, an instant or the name of an
// act is of no use.
func keepsWidth(column string) bool { return column == "id" || column == "at" || column == "action" }

// fit makes the widest columns narrower until a line fits the width.
func (t *table) fit(widths, shown []int, width int) {
	total := t.gap * (len(shown) - 1)
	for _, i := range shown {
		total += widths[i]
	}
	for total > width {
		widest := -1
		for _, i := range shown {
			if !keepsWidth(t.head[i]) && widths[i] > narrow && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
		total--
	}
}

func (t *table) line(row []string, widths, shown []int) string {
	var b strings.Builder
	for n, i := range shown {
		if n > 0 {
			b.WriteString(strings.Repeat(" ", t.gap))
		}
		cell := clipped(row[i], widths[i])
		pad := strings.Repeat(" ", max(0, widths[i]-uniseg.StringWidth(cell)))
		if i >= t.right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// clipped cuts a text to a width in columns, between what readers take for letters.
func clipped(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	for used, rest, state := 1, text, -1; rest != ""; { // 1 for the mark of the cut
		var letter string
		var columns int
		letter, rest, columns, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used += columns; used > width {
			break
		}
		b.WriteString(letter)
	}
	return b.String() + "…"
}

// printable replaces what would move the cursor of a terminal, or turn the
// direction of the text.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, text)
}

// age words how long ago something was: <1m, 5m, 3h, 12d.
func age(now, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	switch d := now.Sub(at); {
	case d < time.Minute:
		return "<1m"
	case d < time.Hour:
		return fmt.Sprint(int(d/time.Minute), "m")
	case d < 48*time.Hour:
		return fmt.Sprint(int(d/time.Hour), "h")
	default:
		return fmt.Sprint(int(d/(24*time.Hour)), "d")
	}
}

// moment writes an instant in the local time zone, to the minute.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04")
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// some are the flags of every list.
type some struct {
	Limit int  `default:"20" placeholder:"20" help:"How many to show, up to 1000."`
	Every bool `name:"all" help:"Show all there are."`
	JSON  bool `help:"As JSON, a line for each."`
}

// gather goes through a list as far as it was asked for, and returns how many items
// the whole has.
func gather[T any](s *some, page func(rollcall.PageRequest) (rollcall.Page[T], error), every iter.Seq2[T, error], visit func(T)) (int, error) {
	if s.Limit < 0 || s.Limit > rollcall.MaxLimit {
		return 0, usageError{fmt.Errorf("--limit: must be between 0 and %d, is %d; --all shows all", rollcall.MaxLimit, s.Limit)}
	}
	if !s.Every {
		p, err := page(rollcall.PageRequest{Limit: s.Limit})
		for _, item := range p.Items {
			visit(item)
		}
		return p.Total, err
	}
	n := 0
	for item, err := range every {
		if err != nil {
			return n, err
		}
		n++
		visit(item)
	}
	return n, nil
}

// ofAll is the line below a list that shows a part.
func (t *table) ofAll(total int, thing string) {
	if total > len(t.rows) {
		t.foot = fmt.Sprintf("%d of %s: --limit and --all show more.", len(t.rows), counted(int64(total), thing))
	}
}

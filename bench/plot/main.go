// Command plot draws the pictures of the README and of the page on performance from the
// figures of RESULTS.md:
//
//	go -C bench run ./plot
//
// It invents nothing: each bar and each dot is a cell of a table, and says so in the same digits.
package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// figure is a figure of both sides: two cells of a row of a table.
type figure struct {
	section     string // heading of the table
	row         string // how its row begins, cells joined by |
	ours, redis string // names of columns; of two with one name the second is Redis's
}

// panel compares one figure of both sides.
type panel struct {
	title, note string
	figure      figure
}

func panels() []panel {
	return []panel{
		{"Memory of a user seen", "10 million users; less is better", figure{"Memory of one user seen", "10M", "a user", "a user"}},
		{"Memory of a session", "1 million sessions; less is better", figure{"Memory of one session", "1M", "a session", "a session"}},
		{"Heartbeats a second", "10 million users; more is better", figure{"Heartbeats of random users", "10M", "Rollcall", "Redis"}},
		{"Durable logins a second", "200,000 logins, 64 callers; more is better", figure{"Durable logins", "200k|64", "Rollcall", "Redis"}},
	}
}

func main() {
	if err := run("RESULTS.md", "../docs"); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// run draws the pictures of a report into a folder.
func run(report, folder string) error {
	text, err := os.ReadFile(report)
	if err != nil {
		return err
	}
	for name, draw := range map[string]func(w *bytes.Buffer, report string) error{"results.svg": compare, "growth.svg": grow} {
		var picture bytes.Buffer
		if err := draw(&picture, string(text)); err != nil {
			return err
		}
		picture.WriteString("</svg>\n")
		if err := os.WriteFile(filepath.Join(folder, name), picture.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everyone to read
			return err
		}
	}
	return nil
}

// compare draws each panel's two bars.
func compare(w *bytes.Buffer, report string) error {
	begin(w, 336, "The embedded engine, and the usual design on Redis", "")
	for i, p := range panels() {
		ours, redis, err := p.figure.find(report)
		if err != nil {
			return err
		}
		if err := p.draw(w, 20+(i%2)*420, 76+(i/2)*132, ours, redis); err != nil {
			return err
		}
	}
	return nil
}

// The colours follow the reader's light or dark page.
const style = `<style>
text { font: 13px -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px } .head { font-weight: 600; font-size: 17px }
.note { fill: #59636e; font-size: 12px } .ours { fill: #1a7f64 } .redis { fill: #afb8c1 }
.line { fill: none; stroke-width: 2 } .line.ours { stroke: #1a7f64 } .line.redis { stroke: #afb8c1 } .axis { stroke: #d1d9e0 }
@media (prefers-color-scheme: dark) { text { fill: #f0f6fc } .note { fill: #9198a1 } .ours { fill: #2ea98a } .redis { fill: #656c76 }
.line { fill: none } .line.ours { stroke: #2ea98a } .line.redis { stroke: #656c76 } .axis { stroke: #3d444d } }
</style>
`

// begin writes what stands above the panels.
func begin(w *bytes.Buffer, height int, head, more string) {
	fmt.Fprintf(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"840\" height=\"%[1]d\" viewBox=\"0 0 840 %[1]d\" role=\"img\" aria-label=\"%[2]s\">\n", height, html.EscapeString(head))
	w.WriteString(style)
	fmt.Fprintf(w, "<text class=\"head\" x=\"20\" y=\"28\">%s</text>\n", html.EscapeString(head))
	fmt.Fprintf(w, "<text class=\"note\" x=\"20\" y=\"48\">The same machine and run, two processors. bench/RESULTS.md says how, and has more.%s</text>\n", html.EscapeString(more))
}

// find returns the two cells.
func (f figure) find(text string) (ours, redis string, err error) {
	_, section, found := strings.Cut(text, "\n## "+f.section+"\n")
	if !found {
		return "", "", fmt.Errorf("there is no section %q", f.section)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for line := range strings.Lines(section) {
		cells := cellsOf(line)
		switch {
		case len(cells) == 0:
			names = nil // a table ends
		case names == nil:
			names = cells
		case strings.HasPrefix(strings.Join(cells, "|"), f.row+"|"):
			first := slices.Index(names, f.ours)
			last := len(names) - 1
			for last >= 0 && names[last] != f.redis {
				last--
			}
			if first < 0 || last <= first || len(cells) != len(names) {
				return "", "", fmt.Errorf("%s: the table has other columns: %v", f.section, names)
			}
			return cells[first], cells[last], nil
		}
	}
	return "", "", fmt.Errorf("%s: there is no row %q", f.section, f.row)
}

// cellsOf splits a row of a table; none of another line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

// draw writes the panel with its upper left corner at x and y.
func (p panel) draw(w *bytes.Buffer, x, y int, ours, redis string) error {
	a, err := value(ours)
	if err != nil {
		return err
	}
	b, err := value(redis)
	if err != nil {
		return err
	}
	const longest = 220
	fmt.Fprintf(w, "<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", x, y+14, html.EscapeString(p.title))
	fmt.Fprintf(w, "<text class=\"note\" x=\"%d\" y=\"%d\">%s</text>\n", x, y+32, html.EscapeString(p.note))
	for i, bar := range []struct {
		name, class, text string
		value             float64
	}{{"Rollcall", "ours", ours, a}, {"Redis", "redis", redis, b}} {
		top := y + 44 + i*28
		width := max(bar.value/max(a, b)*longest, 2)
		fmt.Fprintf(w, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, top+15, bar.name)
		fmt.Fprintf(w, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"20\" rx=\"3\"/>\n", bar.class, x+66, top, width)
		fmt.Fprintf(w, "<text class=\"value\" x=\"%.1f\" y=\"%d\">%s</text>\n", float64(x+74)+width, top+15, bar.text)
	}
	return nil
}

var number = regexp.MustCompile(`^([\d.]+) ?(B|M/s|k/s|/s|µs|ms)$`)

// value reads a cell such as 12.9M/s.
func value(cell string) (float64, error) {
	m := number.FindStringSubmatch(cell)
	if m == nil {
		return 0, fmt.Errorf("%q is no figure", cell)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	return v * map[string]float64{"B": 1, "/s": 1, "k/s": 1e3, "M/s": 1e6, "µs": 1e-6, "ms": 1e-3}[m[2]], err
}

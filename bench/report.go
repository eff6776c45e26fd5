package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// section is what is reported of one part.
type section struct {
	title  string
	about  string // how it was measured
	tables []table
	flags  string // given besides -what
	took   time.Duration

	targets []target // what was measured of them
}

type table struct {
	head []string
	rows [][]string
	note string // under the table; "" for none
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// markdown returns the section with its columns aligned, so that it reads well
// on a terminal too.
func (s *section) markdown(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n`go -C bench run . %s-what %s` (took %v on %d processors, %s, %s)\n\n%s\n",
		s.title, s.flags, name, s.took.Round(time.Second), runtime.NumCPU(), runtime.Version(), redisVersion(), s.about)
	for _, t := range s.tables {
		b.WriteByte('\n')
		t.write(&b)
		if t.note != "" {
			fmt.Fprintf(&b, "\n%s\n", t.note)
		}
	}
	return b.String()
}

func (t *table) write(b *strings.Builder) {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-len([]rune(cell)))
			if i == 0 {
				cell += gap
			} else {
				cell = gap + cell
			}
			fmt.Fprintf(b, "| %s ", cell)
		}
		b.WriteString("|\n")
	}
	line(t.head)
	for i, w := range widths {
		if i == 0 {
			fmt.Fprintf(b, "| %s ", strings.Repeat("-", w))
		} else {
			fmt.Fprintf(b, "| %s: ", strings.Repeat("-", w-1))
		}
	}
	b.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
}

const preface = `# Results

Both sides of a ratio come from the same run on the same machine; rates are
medians of three. An absolute figure only says the order of magnitude: take the
ratios, and how the cost grows from one size to the next.
`

// writeSection puts a section into the report, in the place of the one it had; a new one goes
// before those of the parts that follow. All else in the report stays.
func writeSection(path, name string, s section) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	texts := []string{preface}
	if len(old) > 0 {
		texts = strings.Split(string(old), "\n## ")
	}
	order := names()
	place, at := slices.Index(order, name), len(texts)
	for i, text := range texts[1:] {
		of := slices.IndexFunc(order, func(other string) bool { return strings.Contains(text, "-what "+other+"` (took") })
		if of == place {
			texts, at = slices.Delete(texts, i+1, i+2), i+1
			break
		}
		if of > place {
			at = min(at, i+1)
		}
	}
	own := strings.TrimPrefix(s.markdown(name), "## ")
	texts = slices.Insert(texts, at, own)
	for i := range texts {
		texts[i] = strings.TrimSpace(texts[i]) + "\n"
	}
	return os.WriteFile(path, []byte(strings.Join(texts, "\n## ")), 0o644) //nolint:gosec // a report for everyone
}

func median[T cmp.Ordered](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// percentile returns the smallest value that p of 100 do not exceed.
func percentile(list []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// count writes a number as people read it: 10k, 1.5M.
func count(n float64) string {
	switch {
	case n >= 1e6:
		return trimmed(n/1e6) + "M"
	case n >= 1e3:
		return trimmed(n/1e3) + "k"
	default:
		return trimmed(n)
	}
}

func trimmed(n float64) string {
	text := fmt.Sprintf("%.1f", n)
	return strings.TrimSuffix(text, ".0")
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

func times(ratio float64) string {
	if ratio < 10 {
		return fmt.Sprintf("%.2f×", ratio)
	}
	return fmt.Sprintf("%.0f×", ratio)
}

func took(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	default:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
}

package takeover

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Report is what Doctor found.
type Report struct {
	At       time.Time `json:"at"`
	Keyspace int64     `json:"keyspace"` // keys there are
	Walked   int64     `json:"walked"`   // keys whose names were seen
	CutShort bool      `json:"cut_short"`
	Faults   int       `json:"faults"`
	Findings []Finding `json:"findings"`
}

// Finding is one part of a hand-built system.
type Finding struct {
	Layout   Layout   `json:"layout,omitempty"` // "" for lists of friends
	Key      string   `json:"key"`
	Entries  int64    `json:"entries"` // members, or keys of a family
	Sampled  int      `json:"sampled"` // how many of them were looked at
	Memory   Bytes    `json:"memory"`
	Rollcall int64    `json:"rollcall_bytes"` // by the formula of docs/performance.md
	Facts    []string `json:"facts"`
	Faults   []Fault  `json:"faults"`
	Commands []string `json:"commands"` // that move it
}

// Fault is something that is wrong.
type Fault struct {
	Code  string `json:"code"`
	Count Count  `json:"count"`
	Text  string `json:"text"`
}

// Count is how many of a whole. If it is estimated from a sample, it lies between Low
// and High in 95 of 100 samples.
type Count struct {
	N         int64 `json:"n"`
	Of        int64 `json:"of"`
	Estimated bool  `json:"estimated"`
	Low       int64 `json:"low"`
	High      int64 `json:"high"`
}

// String says it in words.
func (c Count) String() string {
	text := fmt.Sprintf("%s of %s", humanize.Comma(c.N), humanize.Comma(c.Of))
	if c.Estimated {
		text = fmt.Sprintf("about %s (%s to %s)", text, humanize.Comma(c.Low), humanize.Comma(c.High))
	}
	return text
}

// exactly is a count that is no estimate.
func exactly(n, of int64) Count { return Count{N: n, Of: of, Low: n, High: n} }

// Bytes is an amount of memory, the half of its 95 % interval beside it.
type Bytes struct {
	N         int64 `json:"n"`
	Estimated bool  `json:"estimated"`
	PlusMinus int64 `json:"plus_minus"`
}

// String says it in words.
func (b Bytes) String() string {
	text := humanize.IBytes(uint64(max(0, b.N)))
	if b.Estimated {
		return fmt.Sprintf("about %s (± %s)", text, humanize.IBytes(uint64(max(0, b.PlusMinus))))
	}
	return text
}

// fault notes a fault of which there are more than none.
func (f *Finding) fault(code string, c Count, format string, args ...any) {
	if c.N > 0 {
		f.Faults = append(f.Faults, Fault{code, c, c.String() + " " + fmt.Sprintf(format, args...)})
	}
}

func (f *Finding) fact(format string, args ...any) {
	f.Facts = append(f.Facts, fmt.Sprintf(format, args...))
}

// WriteText writes the report for a terminal of 80 columns. Names of keys come from
// strangers, so they are quoted where they hold more than plain characters.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Looked at %s of %s keys, and changed nothing.\n", humanize.Comma(r.Walked), humanize.Comma(r.Keyspace))
	if r.CutShort {
		b.WriteString("The walk over their names was CUT SHORT: give it more with --time.\n")
	}
	if len(r.Findings) == 0 {
		b.WriteString("None of the five layouts was found. Name one with --layout and --key.\n")
	}
	for i := range r.Findings {
		r.Findings[i].write(&b)
	}
	fmt.Fprintf(&b, "\n%s found.\n", plural(r.Faults, "fault"))
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *Finding) write(b *strings.Builder) {
	name := string(f.Layout)
	if name == "" {
		name = "friends"
	}
	fmt.Fprintf(b, "\n%s  %s\n", name, quoted(visible(f.Key)))
	line := func(mark, text string) {
		for i, l := range wrapped(text, 74) {
			if i > 0 {
				mark = " "
			}
			fmt.Fprintf(b, "  %s %s\n", mark, l)
		}
	}
	line(" ", fmt.Sprintf("%s entries; memory %s, in Rollcall about %s", humanize.Comma(f.Entries), f.Memory, humanize.IBytes(uint64(max(0, f.Rollcall)))))
	for _, fact := range f.Facts {
		line(" ", fact)
	}
	for _, fault := range f.Faults {
		line("!", fault.Text)
	}
	for _, c := range f.Commands {
		if !strings.HasPrefix(c, "rollcall ") { // advice
			line(" ", c)
			continue
		}
		lines := wrappedCommand(c, 74)
		for i, l := range lines {
			mark := "$"
			if i > 0 {
				mark = " "
			}
			if i < len(lines)-1 {
				l += ` \`
			}
			fmt.Fprintf(b, "  %s %s\n", mark, l)
		}
	}
}

// wrappedCommand breaks a command before its flags, so that a shell can be given the lines, each
// but the last with a backslash behind it.
func wrappedCommand(text string, width int) []string {
	var lines []string
	line, inQuotes, from := "", false, 0
	add := func(part string) {
		if line != "" && len([]rune(line))+len([]rune(part))+len(` \`) > width {
			lines, line = append(lines, line), "  "+strings.TrimSpace(part)
			return
		}
		line += part
	}
	for i, r := range text {
		if r == '\'' {
			inQuotes = !inQuotes
		}
		if !inQuotes && strings.HasPrefix(text[i:], " --") {
			add(text[from:i])
			from = i
		}
	}
	add(text[from:])
	return append(lines, line)
}

// visible replaces what a terminal would take for a command.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, text)
}

func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return humanize.Comma(int64(n)) + " " + thing
}

// wrapped breaks a text into lines between its words.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

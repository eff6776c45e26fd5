package history

import (
	"slices"
	"strings"

	"github.com/rollcall/rollcall"
)

// chunkBytes is how much of a file one chunk holds, but for the rest of a line.
const chunkBytes = 1 << 20

// chunk is some whole lines of a file, and what parsing made of them. Rows and
// rejections refer to its text, which no row is copied out of.
type chunk struct {
	text   string
	first  bool  // it begins the file
	over   bool  // it is the beginning of one line that is too long for any chunk
	offset int64 // where it ends in the file, unpacked
	read   int64 // bytes of the file read by then, as it lies there
	err    error // reading stopped behind it

	parsed   chan struct{} // closed when the rest is set
	lines    int
	rows     []row
	kinds    []string // those of the rows; the first stands for none
	rejected []Rejected
}

// row is a line that holds a mark.
type row struct {
	user string
	day  rollcall.Day
	line uint32 // of the chunk, from 0
	at   uint32 // where the line begins in the text
	kind uint32 // index
}

// line returns the text of the line that begins at an offset.
func (c *chunk) line(at uint32) string {
	text, _, _ := strings.Cut(c.text[at:], "\n")
	return strings.TrimSuffix(text, "\r")
}

// parse reads the lines of the chunk. Line numbers of rejections are the
// chunk's, from 0.
func (c *chunk) parse(days *calendar) {
	defer close(c.parsed)
	c.kinds = append(c.kinds, "")
	if c.over {
		c.lines = 1
		c.reject(0, TooLong, c.text)
		return
	}
	const likely = 24 // bytes of a line
	c.rows = make([]row, 0, len(c.text)/likely)
	rest := c.text
	for ; rest != ""; c.lines++ {
		at := len(c.text) - len(rest)
		end := strings.IndexByte(rest, '\n')
		line := rest
		if end < 0 {
			rest = ""
		} else {
			line, rest = rest[:end], rest[end+1:]
		}
		line = strings.TrimSuffix(line, "\r")
		if c.first && c.lines == 0 {
			line = strings.TrimPrefix(line, "\ufeff")
			if isHeader(line) {
				continue
			}
		}
		if line == "" {
			continue
		}
		if why := c.add(uint32(at), line, days); why != "" {
			c.reject(int64(c.lines), why, line)
		}
	}
}

// add parses a line; the reason is "" if it became a row.
func (c *chunk) add(at uint32, line string, days *calendar) Reason {
	if len(line) > maxLine {
		return TooLong
	}
	when, user, kind, why := split(line)
	if why != "" {
		return why
	}
	day, why := days.day(when)
	if why != "" {
		return why
	}
	if !validUser(user) {
		return BadUser
	}
	k, ok := c.kind(kind)
	if !ok {
		return BadKind
	}
	c.rows = append(c.rows, row{user: user, day: day, line: uint32(c.lines), at: at, kind: k})
	return ""
}

// kind returns the index of a kind in the chunk; false if it cannot be one.
func (c *chunk) kind(kind string) (uint32, bool) {
	if kind == "" {
		return 0, true
	}
	// The kinds of a store are few. Of more the rest will be refused anyway, and
	// may stand here twice.
	if i := slices.Index(c.kinds[:min(len(c.kinds), 2*rollcall.MaxKinds)], kind); i >= 0 {
		return uint32(i), true
	}
	if rollcall.CheckKind(kind) != nil {
		return 0, false
	}
	c.kinds = append(c.kinds, kind)
	return uint32(len(c.kinds) - 1), true
}

func (c *chunk) reject(line int64, why Reason, text string) {
	c.rejected = append(c.rejected, Rejected{Line: line, Reason: why, Text: cut(text)})
}

// drop moves the rows that why gives a reason for to the rejected ones.
func (c *chunk) drop(why func(i int) Reason) {
	kept := c.rows[:0]
	for i, r := range c.rows {
		if reason := why(i); reason != "" {
			c.reject(int64(r.line), reason, c.line(r.at))
		} else {
			kept = append(kept, r)
		}
	}
	c.rows = kept
}

package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// WriteHelp writes the help of a command in lines of at most width columns.
func (c *Command) WriteHelp(w io.Writer, width int) error {
	p := page{width: width}
	p.add("", "Usage: "+c.usage())
	p.text(c.Help)
	p.text(c.Detail)
	p.args(c)
	p.flags(c)
	p.commands(c)
	if c.Parent == nil {
		p.add("", "")
		p.add("", fmt.Sprintf("Run \"%s <command> --help\" for more information on a command.", c.Name))
	}
	_, err := io.WriteString(w, strings.Join(p.lines, "\n")+"\n")
	return err
}

// usage returns how the command is written: its name, the flags that it needs, its
// arguments.
func (c *Command) usage() string {
	words := []string{c.program().Name}
	if c.Parent != nil {
		words = append(words, c.Path())
	}
	optional := false
	for _, f := range c.Flags() {
		if f.Required {
			words = append(words, f.sample())
		} else if f.Name != "help" {
			optional = true
		}
	}
	for _, arg := range c.Args {
		words = append(words, arg.String())
	}
	if len(c.Commands) > 0 {
		words = append(words, "<command>")
	}
	if optional {
		words = append(words, "[flags]")
	}
	return strings.Join(words, " ")
}

// page is a help text in the making.
type page struct {
	width int
	lines []string
}

// row is a line of two columns.
type row struct{ left, right string }

func (p *page) add(indent, text string) {
	p.lines = append(p.lines, strings.TrimRight(indent+text, " "))
}

// text adds paragraphs, behind an empty line each. Lines that begin with a blank stay
// as they are, indented by four.
func (p *page) text(text string) {
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			p.add("", "")
			for _, line := range wrap(strings.Join(paragraph, " "), p.width) {
				p.add("", line)
			}
		}
		paragraph = nil
	}
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, " "):
			flush()
			if !verbatim {
				p.add("", "")
			}
			p.add("    ", strings.TrimLeft(line, " "))
		case line == "":
			flush()
		default:
			paragraph = append(paragraph, line)
		}
		verbatim = strings.HasPrefix(line, " ")
	}
	flush()
}

func (p *page) args(c *Command) {
	if len(c.Args) == 0 {
		return
	}
	var rows []row
	for _, arg := range c.Args {
		rows = append(rows, row{arg.String(), arg.Help})
	}
	p.add("", "")
	p.add("", "Arguments:")
	p.columns(rows)
}

// flags lists the flags below the headings of their groups; those in none come first.
func (p *page) flags(c *Command) {
	groups, rows := []string{""}, make(map[string][]row)
	short := make(map[string]bool) // groups in which a flag has a letter
	for _, f := range c.Flags() {
		short[f.group] = short[f.group] || f.Short != 0 && !f.hidden
	}
	for level := c.program(); level != nil; level = level.below(c) {
		begun := make(map[string]bool)
		for _, f := range level.flags {
			if f.hidden {
				continue
			}
			if len(rows[f.group]) == 0 && f.group != "" {
				groups = append(groups, f.group)
			}
			if len(rows[f.group]) > 0 && !begun[f.group] {
				rows[f.group] = append(rows[f.group], row{}) // between the flags of a verb and those above it
			}
			begun[f.group] = true
			rows[f.group] = append(rows[f.group], row{f.letter(short[f.group]) + f.sample(), f.Help})
		}
	}
	p.listed(c, groups, rows, "Flags:")
}

// letter returns the short form of a flag, or as much room, if others have one.
func (v *Value) letter(others bool) string {
	switch {
	case v.Short != 0:
		return "-" + string(v.Short) + ", "
	case others:
		return "    "
	default:
		return ""
	}
}

// below returns the command between c and a command further down, which is on the way
// to that; nil below the last.
func (c *Command) below(last *Command) *Command {
	for at := last; at != nil && at != c; at = at.Parent {
		if at.Parent == c {
			return at
		}
	}
	return nil
}

// commands lists the verbs below the headings of their groups; those in none come first.
func (p *page) commands(c *Command) {
	groups, rows := []string{""}, make(map[string][]row)
	for _, leaf := range c.leaves() {
		group := leaf.heading()
		if len(rows[group]) == 0 && group != "" {
			groups = append(groups, group)
		}
		rows[group] = append(rows[group], row{leaf.Path(), leaf.Help})
	}
	p.listed(c, groups, rows, "Commands:")
}

// listed adds the rows of each group below its title; those of no group have another.
func (p *page) listed(c *Command, groups []string, rows map[string][]row, none string) {
	for _, key := range groups {
		if len(rows[key]) == 0 {
			continue
		}
		p.add("", "")
		p.add("", c.title(key, none))
		p.columns(rows[key])
	}
}

// title returns the heading of a group.
func (c *Command) title(key, none string) string {
	for _, g := range c.program().groups {
		if g.Key == key {
			return g.Title
		}
	}
	if key == "" {
		return none
	}
	return key
}

// columns adds rows, indented by two. The left column is as wide as its longest entry
// of those that leave the right one enough room; a longer one has a line to itself.
func (p *page) columns(rows []row) {
	const indent, gap = "  ", 4
	room := p.width - len(indent)
	most := max(30, room*3/8)
	left := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r.left); n < most {
			left = max(left, n)
		}
	}
	for _, r := range rows {
		lines := wrap(r.right, room-left-gap)
		line := r.left
		if n := utf8.RuneCountInString(r.left); n < most && len(lines) > 0 {
			line += strings.Repeat(" ", left-n+gap) + lines[0]
			lines = lines[1:]
		}
		p.add(indent, line)
		for _, more := range lines {
			p.add(indent+strings.Repeat(" ", left+gap), more)
		}
	}
}

// wrap breaks a text into lines of at most width columns; a longer word has a line to
// itself.
func wrap(text string, width int) []string {
	var lines []string
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

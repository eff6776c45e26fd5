package main

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rivo/uniseg"
)

// screen lays out what top knows in so many columns and lines, without any
// sequence of a terminal.
func (l *topLook) screen(width, height int) []string {
	title := "Rollcall  " + l.server
	clock := l.now.UTC().Format("2006-01-02 15:04:05") + " UTC"
	out := []string{spread(title, clock, width), ""}
	out = append(out, fmt.Sprintf("Online %s   Sessions %s   Logins/min %s   Ends/min %s",
		comma(l.online), comma(l.sessions), comma(l.logins), comma(l.ends)), sparkline(l.history, width), "")
	out = append(out, l.sharesBeside(width)...)
	out = append(out, "", "Newest sessions")

	newest := newTable("user", "device", "app", "ip", "login", "id")
	for _, s := range l.newest {
		newest.add(nil, s.User, s.Device, s.App, addressText(s.IP), age(l.now, s.LoginAt), s.ID.String())
	}
	rows := newest.lines(width)
	if len(l.newest) == 0 {
		rows = []string{"There are none."}
	}
	foot := "q quits"
	if l.fault != nil {
		foot = "The server does not answer; these are the last figures. " + foot
	}
	out = append(out, rows[:min(len(rows), max(0, height-len(out)-2))]...)
	out = append(out, "", foot)
	for i := range out {
		out[i] = clipped(out[i], width)
	}
	return out[:min(len(out), height)]
}

func comma(n int) string { return humanize.Comma(int64(n)) }

// spread puts two texts at the ends of a line.
func spread(left, right string, width int) string {
	gap := width - uniseg.StringWidth(left) - uniseg.StringWidth(right)
	return left + strings.Repeat(" ", max(2, gap)) + right
}

// sharesBeside draws the sessions by app and by device beside each other.
func (l *topLook) sharesBeside(width int) []string {
	half := (width - 2) / 2
	left, right := l.apps.bars("By app", half), l.devices.bars("By device", half)
	var out []string
	for i := range max(len(left), len(right)) {
		var a, b string
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		out = append(out, strings.TrimRight(a+strings.Repeat(" ", max(0, half-uniseg.StringWidth(a)))+"  "+b, " "))
	}
	return out
}

// bars draws a bar for each name, the longest being the one of the most sessions.
func (s *shares) bars(title string, width int) []string {
	out := []string{title}
	if len(s.counts) == 0 {
		return append(out, "none has one")
	}
	const nameWidth, countWidth = 12, 9
	room := max(1, width-nameWidth-countWidth-2)
	for _, one := range s.counts {
		name := clipped(printable(one.name), nameWidth)
		pad := strings.Repeat(" ", max(0, nameWidth-uniseg.StringWidth(name)))
		bar := strings.Repeat("█", max(1, room*one.sessions/s.counts[0].sessions))
		out = append(out, fmt.Sprintf("%s%s %*s %s", name, pad, countWidth, comma(one.sessions), bar))
	}
	return out
}

// sparkline draws numbers as blocks, the last ones that fit.
func sparkline(numbers []int, width int) string {
	numbers = numbers[max(0, len(numbers)-width):]
	blocks := []rune("▁▂▃▄▅▆▇█")
	most := 1
	for _, n := range numbers {
		most = max(most, n)
	}
	var b strings.Builder
	for _, n := range numbers {
		b.WriteRune(blocks[n*(len(blocks)-1)/most])
	}
	return b.String()
}

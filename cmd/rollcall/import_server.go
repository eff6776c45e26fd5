package main

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall/history"
)

// importing shows how far an import has come.
type importing struct {
	progress                  // began is the first word of progress
	first    history.Progress // where this run began
}

func newImporting(a *app) *importing {
	return &importing{progress: progress{w: a.stderr, terminal: isTerminal(a.stderr)}}
}

// show takes the word of an import.
func (i *importing) show(p history.Progress) {
	now := time.Now()
	switch {
	case i.began.IsZero():
		i.began, i.told, i.first = now, now, p
	case !i.due(now):
	case i.terminal:
		i.draw(p.Bytes, p.Size, i.rate(p, now)+i.left(p, now))
	default:
		fmt.Fprintln(i.w, i.line(p, now))
	}
}

func (i *importing) line(p history.Progress, now time.Time) string {
	if p.Size <= 0 {
		return i.rate(p, now) + ", " + humanize.IBytes(uint64(p.Bytes)) + " read"
	}
	return fmt.Sprintf("%s, %d%% of %s%s", i.rate(p, now), 100*p.Bytes/p.Size, humanize.IBytes(uint64(p.Size)), i.left(p, now))
}

// rate tells of rows, and how many a second this run takes.
func (i *importing) rate(p history.Progress, now time.Time) string {
	rate := float64(p.Rows-i.first.Rows) / max(0.001, now.Sub(i.began).Seconds())
	text := fmt.Sprintf("%s rows, %s rows/s", humanize.Comma(p.Rows), humanize.Comma(int64(rate)))
	if p.Rejected > 0 {
		text += fmt.Sprintf(", %s rejected", humanize.Comma(p.Rejected))
	}
	return text
}

// left tells how long it is going to take, if that can be told.
func (i *importing) left(p history.Progress, now time.Time) string {
	done := p.Bytes - i.first.Bytes
	if p.Size <= 0 || done <= 0 {
		return ""
	}
	left := time.Duration(float64(now.Sub(i.began)) / float64(done) * float64(p.Size-p.Bytes))
	return fmt.Sprintf(", about %s to go", left.Round(time.Second))
}

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/rollcall/rollcall/history"
)

const (
	barAfter  = 2 * time.Second // what takes less needs no bar
	drawEvery = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// importing shows how far an import has come: by a bar on a terminal, else by a
// line now and then.
type importing struct {
	w        io.Writer
	terminal bool
	began    time.Time // the first word of progress
	told     time.Time
	first    history.Progress // where this run began
	bar      *progressbar.ProgressBar
}

func newImporting(a *app) *importing {
	return &importing{w: a.stderr, terminal: isTerminal(a.stderr)}
}

// show takes the word of an import.
func (i *importing) show(p history.Progress) {
	now := time.Now()
	switch {
	case i.began.IsZero():
		i.began, i.told, i.first = now, now, p
	case i.terminal && now.Sub(i.began) > barAfter && now.Sub(i.told) >= drawEvery:
		i.told = now
		i.draw(p, now)
	case !i.terminal && now.Sub(i.told) >= lineEvery:
		i.told = now
		fmt.Fprintln(i.w, i.line(p, now))
	}
}

func (i *importing) draw(p history.Progress, now time.Time) {
	if i.bar == nil {
		i.bar = progressbar.NewOptions64(p.Size, progressbar.OptionSetWriter(i.w), progressbar.OptionSetWidth(20),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false), // it began before the bar
			progressbar.OptionClearOnFinish())
	}
	_ = i.bar.Set64(p.Bytes) // it only shows
	i.bar.Describe(i.rate(p, now) + i.left(p, now))
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

// finish takes the bar away.
func (i *importing) finish() {
	if i.bar != nil {
		_ = i.bar.Clear() // it only shows
	}
}

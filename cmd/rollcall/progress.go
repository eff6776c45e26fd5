package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/rollcall/rollcall/transfer"
)

const (
	barAfter  = 2 * time.Second // what takes less needs no bar
	drawEvery = 200 * time.Millisecond
	lineEvery = 5 * time.Second
)

// progress shows how far something long has come: on a terminal by a bar, else by a
// line now and then.
type progress struct {
	w        io.Writer
	terminal bool
	began    time.Time
	told     time.Time
	bar      *progressbar.ProgressBar
}

func newProgress(a *app) *progress {
	now := time.Now()
	return &progress{w: a.stderr, terminal: isTerminal(a.stderr), began: now, told: now}
}

// due reports whether it is time for a bar or a line, and takes it for shown.
func (p *progress) due(now time.Time) bool {
	every := lineEvery
	if p.terminal {
		every = drawEvery
	}
	if now.Sub(p.told) < every || p.terminal && now.Sub(p.began) <= barAfter {
		return false
	}
	p.told = now
	return true
}

// draw draws the bar, with a text beside it; a total of -1 is not known.
func (p *progress) draw(done, total int64, text string) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(20),
			progressbar.OptionSetElapsedTime(false), progressbar.OptionSetPredictTime(false), // it began before the bar
			progressbar.OptionClearOnFinish())
	}
	p.bar.ChangeMax64(total)
	_ = p.bar.Set64(done) // it only shows
	p.bar.Describe(text)
}

// finish takes the bar away.
func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear() // it only shows
	}
}

// steps returns what draws a bar of steps; it writes no lines.
func (p *progress) steps(what string) func(done, total int) {
	return func(done, total int) {
		if p.terminal && p.due(time.Now()) {
			p.draw(int64(done), int64(total), what)
		}
	}
}

// users shows how far an export or import of everything has come.
func (p *progress) users(at transfer.Progress) {
	now := time.Now()
	if !p.due(now) {
		return
	}
	rate := float64(at.Snapshots) / max(0.001, now.Sub(p.began).Seconds())
	text := fmt.Sprintf("%s of about %s users, %s users/s",
		humanize.Comma(int64(at.Snapshots)), humanize.Comma(int64(at.Total)), humanize.Comma(int64(rate)))
	if p.terminal {
		p.draw(int64(at.Snapshots), int64(at.Total), text)
	} else {
		fmt.Fprintln(p.w, text)
	}
}

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"github.com/rollcall/rollcall/transfer"
)

// moving shows how far an export or import of everything has come: by a bar on
// a terminal, else by a line now and then.
type moving struct {
	w        io.Writer
	terminal bool
	began    time.Time
	told     time.Time
	bar      *progressbar.ProgressBar
}

func newMoving(a *app) *moving {
	now := time.Now()
	return &moving{w: a.stderr, terminal: isTerminal(a.stderr), began: now, told: now}
}

// show takes the word of a move.
func (m *moving) show(p transfer.Progress) {
	now := time.Now()
	switch {
	case m.terminal && now.Sub(m.began) > barAfter:
		if m.bar == nil {
			m.bar = progressbar.NewOptions(p.Total, progressbar.OptionSetWriter(m.w), progressbar.OptionSetDescription("users"),
				progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
		}
		m.bar.ChangeMax(p.Total)
		_ = m.bar.Set(p.Snapshots) // it only shows
	case !m.terminal && now.Sub(m.told) >= lineEvery:
		m.told = now
		rate := float64(p.Snapshots) / max(0.001, now.Sub(m.began).Seconds())
		fmt.Fprintf(m.w, "%s of about %s users, %s users/s\n",
			humanize.Comma(int64(p.Snapshots)), humanize.Comma(int64(p.Total)), humanize.Comma(int64(rate)))
	}
}

// finish takes the bar away.
func (m *moving) finish() {
	if m.bar != nil {
		_ = m.bar.Clear() // it only shows
	}
}

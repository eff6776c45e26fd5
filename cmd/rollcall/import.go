package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/history"
	"github.com/rollcall/rollcall/local"
)

type importCmd struct {
	CSV   importCSVCmd   `cmd:"" name:"csv" help:"Take in rows time,user[,kind] as days of attendance."`
	Store importStoreCmd `cmd:"" name:"store" help:"Take in what \"rollcall export\" wrote."`
	Redis importRedisCmd `cmd:"" name:"redis" help:"Take over a system built by hand on Redis."`
}

type importCSVCmd struct {
	settings
	Kind     string `help:"Kind of rows that name none (default: the user's own)."`
	Rejected string `type:"path" placeholder:"FILE" help:"List all rejected lines in this file, as CSV."`
	Resume   bool   `help:"Go on where an import of the same file was cut short."`
	DryRun   bool   `help:"Only read the file, and say what is wrong with it."`
	Batch    int    `default:"1000000" placeholder:"1000000" help:"Rows taken in at a time, 1000 to 10000000."`
	Create   bool   `help:"Make new data if there is none in the data directory."`
	JSON     bool   `help:"As JSON."`
	File     string `arg:"" help:"The file, plain or gzip; - for standard input."`
}

// Help is the verb's own part of its help.
func (importCSVCmd) Help() string {
	return `Takes in who was there when, in any order and of any age. A time is RFC 3339,
unix seconds or milliseconds, or a date such as 2017-10-05; days are those of
the time zone of the data. A header line is skipped. Repeating an import
changes nothing, so one that was cut short may just be run again; with --resume
it goes on where all before is on disk.

Lines that cannot be read are rejected, counted by reason, and the rest is
taken in: the exit status is then 0, and 1 if all were rejected or the file
could not be read to its end. With the embedded engine, stop the server first.`
}

// Run imports the file.
func (c *importCSVCmd) Run(a *app) error {
	opts, err := c.options()
	if err != nil {
		return usageError{err}
	}
	source, err := c.open(a)
	if err != nil {
		return err
	}
	began := time.Now()
	importing := newImporting(a)
	opts.Progress = importing.show
	summary, err := c.take(a, source, opts)
	importing.finish()
	err = errors.Join(err, source.Close())
	taken := time.Since(began)
	if summary.Rows > 0 || err == nil {
		err = errors.Join(err, c.report(a, &summary, taken))
		c.warn(a.stderr, &summary)
	}
	switch {
	case err != nil:
		if !c.DryRun && c.File != "-" && summary.Rows > 0 {
			fmt.Fprintf(a.stderr, "The import is not complete: run it again with --resume to go on.\n")
		}
		return err
	case summary.AllRejected():
		return errors.New("every row was rejected: nothing was taken in")
	default:
		return nil
	}
}

func (c *importCSVCmd) options() (history.Options, error) {
	o := history.Options{Kind: c.Kind, Window: c.Batch, DryRun: c.DryRun, Resume: c.Resume, Rejected: c.Rejected}
	switch {
	case c.File == "-" && c.Resume:
		return o, errors.New("--resume: standard input cannot be read from the middle")
	case c.Resume && c.DryRun:
		return o, errors.New("--resume and --dry-run exclude each other")
	case c.Batch < 1_000 || c.Batch > 10_000_000:
		return o, fmt.Errorf("--batch: must be between 1000 and 10000000, is %d", c.Batch)
	}
	var bad *rollcall.Error
	if errors.As(rollcall.CheckKind(c.Kind), &bad) {
		return o, fmt.Errorf("--kind: %s", bad.Detail)
	}
	return o, nil
}

func (c *importCSVCmd) open(a *app) (*history.Source, error) {
	if c.File == "-" {
		return history.Stream(a.stdin), nil
	}
	return history.Open(c.File)
}

// take imports into the data, or only reads.
func (c *importCSVCmd) take(a *app, s *history.Source, o history.Options) (summary history.Summary, err error) {
	conf, err := c.load(a)
	if err != nil {
		return summary, err
	}
	if c.DryRun {
		return history.Import(a.ctx, dryRoll{conf.roll.Timezone}, s, o)
	}
	o.StateDir = conf.dataDir
	conf.create = c.Create
	// A checkpoint must not know more than the disk does, and a sync for many
	// thousands of rows costs nothing.
	conf.local.Durability = local.Always
	err = conf.withRoll(a, func(r *rollcall.Roll) error {
		ctx := a.ctx
		if c.File != "-" { // a signal cannot end the wait for standard input
			var stop context.CancelFunc
			ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // the second one ends the process
		}
		summary, err = history.Import(ctx, r, s, o)
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted")
		}
		return err
	})
	return summary, err
}

// dryRoll knows the day and nothing else.
type dryRoll struct{ zone *time.Location }

func (dryRoll) ImportMarks(context.Context, ...rollcall.Mark) (marked, already int, err error) {
	return 0, 0, errors.New("a dry run makes no marks")
}

func (d dryRoll) Today() rollcall.Day      { return rollcall.DayOf(time.Now(), d.zone) }
func (d dryRoll) Timezone() *time.Location { return d.zone }

// report says what was done.
func (c *importCSVCmd) report(a *app, s *history.Summary, taken time.Duration) error {
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(struct {
			File string `json:"file"`
			*history.Summary
			Accepted int64   `json:"accepted"`
			DryRun   bool    `json:"dry_run"`
			Seconds  float64 `json:"seconds"`
		}{c.File, s, s.Accepted(), c.DryRun, taken.Seconds()})
	}
	verb := "Imported"
	if c.DryRun {
		verb = "Read"
	}
	fmt.Fprintf(a.stdout, "%s %s rows from %s in %s.\n", verb, humanize.Comma(s.Accepted()), c.File, taken.Round(10*time.Millisecond))
	if s.ResumedAt > 0 {
		fmt.Fprintf(a.stdout, "Went on at line %s; the figures are those of the whole import.\n", humanize.Comma(s.ResumedAt))
	}
	if s.FirstDay != nil {
		fmt.Fprintf(a.stdout, "Days %s to %s", s.FirstDay, s.LastDay)
		if !c.DryRun {
			fmt.Fprintf(a.stdout, "; %s, %s known before", counted(s.Marked, "new mark"), humanize.Comma(s.Already))
		}
		fmt.Fprintln(a.stdout, ".")
	}
	return nil
}

// warn tells loudly of rejected rows.
func (c *importCSVCmd) warn(w io.Writer, s *history.Summary) {
	if s.Rejected == 0 {
		return
	}
	fmt.Fprintf(w, "WARNING: %s of %s rows were rejected.\n", humanize.Comma(s.Rejected), humanize.Comma(s.Rows))
	for _, reason := range history.Reasons() {
		if n := s.Reasons[reason]; n > 0 {
			fmt.Fprintf(w, "%10s  %s\n", humanize.Comma(n), reason)
		}
	}
	const shown = 5
	for i, r := range s.FirstRejected {
		if i == shown {
			break
		}
		fmt.Fprintf(w, "  line %s (%s): %.60q\n", humanize.Comma(r.Line), string(r.Reason), r.Text)
	}
	switch {
	case c.Rejected != "":
		fmt.Fprintf(w, "All of them are listed in %s.\n", c.Rejected)
	case s.Rejected > shown:
		fmt.Fprintf(w, "With --rejected FILE all of them are listed.\n")
	}
}

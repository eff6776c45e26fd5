package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/transfer"
)

type exportCmd struct {
	settings
	Resume     bool   `help:"Go on where an export to the same file was cut short."`
	SecretLost bool   `help:"The secret is lost: export without it. Bans of erased users are given up."`
	JSON       bool   `help:"As JSON."`
	File       string `arg:"" help:"The file to write; - for standard output."`
}

// Help is the verb's own part of its help.
func (exportCmd) Help() string {
	return `Writes users, last-seen times, friends, days, sessions, bans, API keys and
webhooks, as JSON Lines packed with zstd. "rollcall import store" takes it into
an empty engine: with both, data moves from the embedded engine to Redis and
back. Events, what webhooks have not delivered yet, visits and outages stay
behind. Sessions go on under the same secret; copy it too. The file holds no
token, but it does hold names and addresses: keep it safe.

With the embedded engine the server must be stopped. With Redis stop all
servers, or what happens meanwhile may be missing.

Until it is whole the file is called FILE.part. If the export is cut short, also
by a kill, --resume goes on behind the last part that is in it whole. Sessions
must not have begun or ended since.

  rollcall export - | rollcall import store --engine redis --redis-url … -`
}

// Run writes the file.
func (c *exportCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	if err := c.check(a, conf); err != nil {
		return err
	}
	if conf.secretLost = c.SecretLost; conf.secretLost {
		conf.secret = nil
	}
	began := time.Now()
	shown := newProgress(a)
	var counts transfer.Counts
	var resumed transfer.Resumed
	err = conf.withRoll(a, func(r *rollcall.Roll) error {
		ctx, stop := interruptible(a.ctx)
		defer stop()
		if c.File == "-" {
			out := bufio.NewWriterSize(a.stdout, 1<<20)
			counts, err = transfer.Export(ctx, r, out, shown.users)
			return errors.Join(err, out.Flush())
		}
		counts, resumed, err = c.write(ctx, r, shown.users)
		return err
	})
	shown.finish()
	if err != nil {
		if c.File != "-" && counts.Snapshots > 0 && !errors.Is(err, transfer.ErrChanged) {
			fmt.Fprintf(a.stderr, "The export is not complete: run it again with --resume to go on with %s.\n", c.part())
		}
		return err
	}
	return c.report(a, counts, resumed, time.Since(began))
}

// part is the name of the file until it is whole.
func (c *exportCmd) part() string { return c.File + ".part" }

// write writes the file, or goes on with it.
func (c *exportCmd) write(ctx context.Context, r *rollcall.Roll, shown func(transfer.Progress)) (counts transfer.Counts, at transfer.Resumed, err error) {
	flags := os.O_RDWR | os.O_CREATE
	if !c.Resume {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(c.part(), flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return counts, at, fmt.Errorf("%s is an export that was cut short, or one that is under way: go on with it by --resume, or remove it", c.part())
	}
	if err != nil {
		return counts, at, err
	}
	if c.Resume {
		counts, at, err = transfer.Resume(ctx, r, f, shown)
	} else {
		counts, err = transfer.Export(ctx, r, f, shown)
	}
	if errors.Is(err, transfer.ErrChanged) {
		err = fmt.Errorf("%w: remove %s, and export anew", err, c.part())
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(c.part(), c.File)
	}
	if err != nil {
		return counts, at, err
	}
	return counts, at, syncDir(filepath.Dir(c.File))
}

// check refuses what cannot be meant.
func (c *exportCmd) check(a *app, conf *config) error {
	if c.File == "-" && isTerminal(a.stdout) {
		return usageError{errors.New("the export is packed, and no text for a terminal: name a file, or pipe it")}
	}
	if c.File == "-" && c.Resume {
		return usageError{errors.New("--resume: standard output cannot be gone on with")}
	}
	if c.File != "-" {
		if _, err := os.Stat(c.File); err == nil {
			return fmt.Errorf("%s exists already", c.File)
		}
	}
	if conf.redis == nil {
		if _, err := os.Stat(filepath.Join(conf.dataDir, storeDir)); err != nil {
			return fmt.Errorf("there is no data in %s", conf.dataDir)
		}
	}
	return nil
}

func (c *exportCmd) report(a *app, counts transfer.Counts, at transfer.Resumed, taken time.Duration) error {
	out := a.stdout
	if c.File == "-" {
		out = a.stderr
	}
	if c.JSON {
		return json.NewEncoder(out).Encode(struct {
			File string `json:"file"`
			transfer.Counts
			Before  int     `json:"before"`
			Seconds float64 `json:"seconds"`
		}{c.File, counts, at.Snapshots, taken.Seconds()})
	}
	if at.Snapshots > 0 {
		fmt.Fprintf(out, "Went on behind %s; the figures are those of the whole export.\n", counted(int64(at.Snapshots), "user snapshot"))
	}
	fmt.Fprintf(out, "Exported %s in %s.\n", countsText(counts), taken.Round(100*time.Millisecond))
	return nil
}

// countsText says how much was moved, in words.
func countsText(c transfer.Counts) string {
	return fmt.Sprintf("%s with %s, %s, %s, %s and %s, %s and %s",
		counted(int64(c.Snapshots), "user snapshot"), counted(int64(c.Sessions), "session"), counted(int64(c.Ended), "ended session"),
		counted(int64(c.Friends), "friend"), counted(int64(c.Days), "day"), counted(int64(c.Bans), "ban"), counted(int64(c.APIKeys), "API key"),
		counted(int64(c.Webhooks), "webhook"))
}

// interruptible returns a context that the first signal ends; the second one
// ends the process.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// createPrivate writes a file that only its owner can read, whole or not at
// all.
func createPrivate(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

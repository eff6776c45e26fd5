package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/internal/backupfile"
	"github.com/rollcall/rollcall/local"
)

type backupCmd struct {
	target
	Quick bool   `help:"Do not read every record of the backup afterwards."`
	JSON  bool   `help:"As JSON."`
	File  string `arg:"" help:"The file to write; - for standard output."`
}

// Help is the verb's own part of its help.
func (backupCmd) Help() string {
	return `Fetches a backup of a server that runs with the embedded engine: the store as of
one instant, the archive and the offload log of its data directory. The server
goes on meanwhile. The file is a tar archive packed with zstd; "rollcall restore"
makes a data directory of it.

Every file in it is compared with its checksum. Then the backup is unpacked beside
its file and every record is read, unless --quick says not to. Exits with 1 if
anything is wrong.

Keep the file "secret" of the data directory as well, apart from the backup: the
backup does not hold it, and is of no use without it. It does hold ids, names and
addresses: keep it safe.

With the data in Redis, back up Redis.`
}

// backupReport is what became of a backup.
type backupReport struct {
	File     string  `json:"file"`
	Files    int     `json:"files"`
	Bytes    int64   `json:"bytes"` // unpacked
	Packed   int64   `json:"packed"`
	Checked  bool    `json:"checked"`
	Records  int     `json:"records,omitempty"`
	Users    int     `json:"users,omitempty"`
	Sessions int     `json:"sessions,omitempty"`
	Seconds  float64 `json:"seconds"`
}

// Run fetches a backup and checks it.
func (c *backupCmd) Run(a *app) error {
	if c.File == "-" && isTerminal(a.stdout) {
		return usageError{errors.New("a backup is packed, and no text for a terminal: name a file, or pipe it")}
	}
	if _, err := os.Lstat(c.File); c.File != "-" && err == nil {
		return fmt.Errorf("%s exists already", c.File)
	}
	began, report := time.Now(), backupReport{File: c.File}
	err := c.ask(a, func(asked *client.Client) error {
		ctx, stop := interruptible(a.ctx)
		defer stop()
		fetch := func(w io.Writer) error {
			return report.fetch(w, newProgress(a), func(w io.Writer) error { return asked.Backup(ctx, w) })
		}
		if c.File == "-" {
			return fetch(a.stdout)
		}
		return createPrivate(c.File, fetch)
	})
	var faults error
	if err == nil && c.File != "-" && !c.Quick {
		faults, err = report.check(c.File)
	}
	if err != nil {
		return err
	}
	report.Seconds = time.Since(began).Seconds()
	return cmp.Or(report.print(a, c.JSON), faults)
}

// fetch writes a backup, and verifies it as it comes.
func (r *backupReport) fetch(w io.Writer, shown *progress, send func(io.Writer) error) error {
	defer shown.finish()
	in, out := io.Pipe()
	verified := make(chan error, 1)
	go func() {
		found, err := backupfile.Verify(in)
		r.Files, r.Bytes = found.Files, found.Bytes
		_, _ = io.Copy(io.Discard, in) // what follows a fault, or nothing
		verified <- err
	}()
	counted := &shownWriter{countedWriter{Writer: io.MultiWriter(w, out)}, shown}
	err := send(counted)
	_ = out.Close() // never fails
	r.Packed = counted.n
	return cmp.Or(err, <-verified)
}

// shownWriter shows how much has been written.
type shownWriter struct {
	countedWriter
	shown *progress
}

func (w *shownWriter) Write(b []byte) (int, error) {
	n, err := w.countedWriter.Write(b)
	if w.shown.due(time.Now()) {
		text := humanize.IBytes(uint64(w.n)) + " fetched"
		if w.shown.terminal {
			w.shown.draw(w.n, -1, text)
		} else {
			fmt.Fprintln(w.shown.w, text)
		}
	}
	return n, err
}

// check unpacks the backup beside its file and reads every record. faults says that the backup
// is whole and the store in it is not sound.
func (r *backupReport) check(file string) (faults, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".check-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	_, err = backupfile.Extract(f, dir)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	found, err := local.Check(filepath.Join(dir, storeDir), local.Options{}, (&rollcall.SystemClock{}).Now())
	if err != nil {
		return nil, err
	}
	r.Checked, r.Records, r.Users, r.Sessions = true, found.Records, found.Users, found.Sessions
	if found.Faulty > 0 {
		faults = fmt.Errorf("%s found in the store that was backed up, the first: %s", counted(int64(found.Faulty), "fault"), found.Faults[0])
	}
	return faults, nil
}

// print tells of the backup; beside one on standard output, on the other.
func (r *backupReport) print(a *app, asJSON bool) error {
	out := a.stdout
	if r.File == "-" {
		out = a.stderr
	}
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	fmt.Fprintf(out, "Backed up %s, %s, packed %s, in %.1f s.\n", counted(int64(r.Files), "file"), humanize.IBytes(uint64(r.Bytes)),
		humanize.IBytes(uint64(r.Packed)), r.Seconds)
	if r.Checked {
		fmt.Fprintf(out, "Read %s: %s, %s.\n", counted(int64(r.Records), "record"), counted(int64(r.Users), "user"), counted(int64(r.Sessions), "live session"))
	}
	fill(out, "", "Keep the server's secret too, apart from this file: it is not in the backup.")
	return nil
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/backupfile"
	"github.com/rollcall/rollcall/local"
)

type restoreCmd struct {
	settings
	JSON bool   `help:"As JSON."`
	File string `arg:"" help:"The backup; - for standard input."`
}

// Help is the verb's own part of its help.
func (restoreCmd) Help() string {
	return `Makes a data directory of a backup. There must be no data in it yet: no store, no
archive and no offload log. The backup is compared with its checksums and every
record is read before anything gets its name; if anything is wrong, nothing is
there afterwards.

Put the file "secret" of the server that was backed up into the directory, mode
600, or configure the secret: without it the server does not start on the data.
What happened after the backup is not in it: sessions that began are unknown,
those that ended since live again until they expire.`
}

// Run restores a backup.
func (c *restoreCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	if conf.redis != nil {
		return usageError{errors.New("restore makes a data directory, and with engine redis the data is in Redis")}
	}
	if err := conf.removeCutRestore(); err != nil {
		return err
	}
	if err := conf.isEmpty(); err != nil {
		return err
	}
	in := a.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	found, report, err := conf.restore(in)
	if err != nil {
		return err
	}
	return c.report(a, conf, found, &report)
}

// restoredNames are what a backup may hold.
var restoredNames = []string{offloadDir, archiveFile, storeDir} //nolint:gochecknoglobals // a constant list

// isEmpty refuses a data directory that has data.
func (c *config) isEmpty() error {
	for _, name := range restoredNames {
		path := filepath.Join(c.dataDir, name)
		entries, err := os.ReadDir(path)
		if _, missing := os.Lstat(path); missing != nil || (err == nil && len(entries) == 0) {
			continue
		}
		return fmt.Errorf("%s is there already: a backup is restored into a directory without data", path)
	}
	return nil
}

// restore unpacks a backup beside where it belongs, checks it, and puts it in place.
func (c *config) restore(in io.Reader) (found backupfile.Summary, report local.Report, err error) {
	if err := os.MkdirAll(c.dataDir, 0o700); err != nil {
		return found, report, err
	}
	dir, err := os.MkdirTemp(c.dataDir, restoreDirs+"*")
	if err != nil {
		return found, report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if found, err = backupfile.Extract(in, dir); err != nil {
		return found, report, fmt.Errorf("nothing was restored: %w", err)
	}

	// Nothing but what a backup holds, and a sound store.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, report, err
	}
	for _, e := range entries {
		if !slices.Contains(restoredNames, e.Name()) {
			return found, report, fmt.Errorf("nothing was restored: the file holds %q and is no backup of Rollcall", e.Name())
		}
	}
	report, err = local.Check(filepath.Join(dir, storeDir), c.local, (&rollcall.SystemClock{}).Now())
	if err == nil && report.Faulty > 0 {
		err = fmt.Errorf("%s, the first: %s (unpack it with tar, and \"rollcall check --repair\" keeps what can be read)",
			counted(int64(report.Faulty), "fault"), report.Faults[0])
	}
	if err != nil {
		return found, report, fmt.Errorf("nothing was restored: the store in the backup: %w", err)
	}

	return found, report, c.publish(dir)
}

// restoringFile stands in the data directory while a restore gives what it has read its names.
// Where it stands nothing is opened: a part of a backup is no data.
const restoringFile = ".restoring"

// restoreDirs begins the names of directories in which backups are unpacked.
const restoreDirs = ".restore-"

func (c *config) restoringPath() string { return filepath.Join(c.dataDir, restoringFile) }

// publish gives what was restored its names.
//
//	crash before 1  nothing is there but a directory that the next restore removes
//	crash before 4  nothing opens what is there, and the next restore removes it
func (c *config) publish(dir string) error {
	// 1. From here on the directory is not opened.
	if err := writePrivate(c.restoringPath(), ""); err != nil {
		return err
	}

	// 2. Everything gets its name,
	for _, name := range restoredNames {
		from, to := filepath.Join(dir, name), filepath.Join(c.dataDir, name)
		if _, err := os.Lstat(from); err != nil {
			continue
		}
		if err := os.Remove(to); err != nil && !os.IsNotExist(err) { // an empty directory
			return err
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}

	// 3. and keeps it.
	if err := syncDir(c.dataDir); err != nil {
		return err
	}

	// 4. It is data.
	if err := os.Remove(c.restoringPath()); err != nil {
		return err
	}
	return syncDir(c.dataDir)
}

// refuseCutRestore refuses a data directory in which a restore was cut short.
func (c *config) refuseCutRestore() error {
	if _, err := os.Lstat(c.restoringPath()); err != nil {
		return nil //nolint:nilerr // none was, or opening the directory says more
	}
	return fmt.Errorf("a restore into %s was cut short: run \"rollcall restore\" again", c.dataDir)
}

// removeCutRestore removes what a restore that was cut short has left.
func (c *config) removeCutRestore() error {
	var left []string
	if c.refuseCutRestore() != nil {
		for _, name := range restoredNames {
			left = append(left, filepath.Join(c.dataDir, name))
		}
	}
	entries, err := os.ReadDir(c.dataDir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), restoreDirs) {
			left = append(left, filepath.Join(c.dataDir, e.Name()))
		}
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func (c *restoreCmd) report(a *app, conf *config, found backupfile.Summary, report *local.Report) error {
	missing := secretFault(conf)
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(struct {
			DataDir  string `json:"data_dir"`
			Files    int    `json:"files"`
			Bytes    int64  `json:"bytes"`
			Records  int    `json:"records"`
			Users    int    `json:"users"`
			Sessions int    `json:"sessions"`
			Secret   bool   `json:"secret"`
		}{conf.dataDir, found.Files, found.Bytes, report.Records, report.Users, report.Sessions, missing == ""})
	}
	fmt.Fprintf(a.stdout, "Restored %s, %s, into %s: %s, %s.\n", counted(int64(found.Files), "file"), humanize.IBytes(uint64(found.Bytes)),
		conf.dataDir, counted(int64(report.Users), "user"), counted(int64(report.Sessions), "live session"))
	if missing != "" {
		fill(a.stdout, "", "Put the secret of the server that was backed up into "+filepath.Join(conf.dataDir, secretFile)+
			", mode 600, before you start on the data.")
	}
	return nil
}

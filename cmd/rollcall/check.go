package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

type checkCmd struct {
	settings
	JSON bool `help:"As JSON."`
}

// Help implements kong's HelpProvider.
func (checkCmd) Help() string {
	return `Reads every record of the data directory, changes nothing, and exits with 1 if
anything is wrong. The server must be stopped.`
}

// Run verifies the data directory.
func (c *checkCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	if conf.redis != nil {
		return usageError{errors.New("check reads a data directory, and with engine redis the data is in Redis")}
	}
	dir := filepath.Join(conf.dataDir, storeDir)
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("there is no data in %s", conf.dataDir)
	}
	report, err := local.Check(dir, conf.local)
	if err != nil {
		return err
	}
	if conf.secret == nil { // else it is configured
		if _, err := conf.readSecret(); err != nil {
			report.Faulty++
			report.Faults = append(report.Faults, err.Error())
		}
	}
	if c.JSON {
		err = json.NewEncoder(a.stdout).Encode(map[string]any{
			"records": report.Records, "users": report.Users, "sessions": report.Sessions,
			"faulty": report.Faulty, "faults": append([]string{}, report.Faults...),
			"torn": report.Torn,
		})
	} else {
		fmt.Fprintf(a.stdout, "%s: %d records, %d users, %d live sessions\n", conf.dataDir, report.Records, report.Users, report.Sessions)
		for _, fault := range report.Faults {
			fmt.Fprintln(a.stdout, " ", fault)
		}
		if report.Torn != "" {
			fmt.Fprintln(a.stdout, "No fault:", report.Torn)
		}
	}
	if err != nil {
		return err
	}
	if report.Faulty > 0 {
		return fmt.Errorf("%d faults found", report.Faulty)
	}
	if !c.JSON {
		fmt.Fprintln(a.stdout, "No fault found.")
	}
	return nil
}

type compactCmd struct{ settings }

// Help implements kong's HelpProvider.
func (compactCmd) Help() string {
	return `Rewrites the store without what was deleted, and the archive if it is a file.
The server must be stopped.`
}

// Run compacts the data directory.
func (c *compactCmd) Run(a *app) error {
	return c.withRoll(a, func(r *rollcall.Roll) error {
		before, err := r.Stats(a.ctx)
		if err != nil {
			return err
		}
		if err := r.Compact(a.ctx); err != nil {
			return err
		}
		if err := c.compactArchive(a); err != nil {
			return err
		}
		after, err := r.Stats(a.ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "Compacted: the store was %s and is %s.\n", humanize.IBytes(uint64(before.DiskBytes)), humanize.IBytes(uint64(after.DiskBytes)))
		return nil
	})
}

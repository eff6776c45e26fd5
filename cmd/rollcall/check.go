package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

type checkCmd struct {
	settings
	Repair bool `help:"Make a new store of what can be read, in the place of a damaged one; the old one stays beside it."`
	JSON   bool `help:"As JSON."`
}

// Help is the verb's own part of its help.
func (checkCmd) Help() string {
	return `Reads every record of the data directory, changes nothing, and exits with 1 if
anything is wrong. The server must be stopped.

With --repair, all that can be read of a damaged store goes into a new one, and
times that lie in the future, because a clock was wrong, are set back. What is
lost is said exactly. The old store is put aside as store.damaged-TIME and never
removed; there must be room for both. A sound store is left as it is. Exits with
0 if nothing was lost, 1 if something was, 3 if the store could not be repaired:
then nothing was changed.`
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
	if _, err := local.FinishRepair(dir); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("there is no data in %s", conf.dataDir)
	}
	if c.Repair {
		return c.repair(a, conf, dir)
	}
	report, err := local.Check(dir, conf.local, (&rollcall.SystemClock{}).Now())
	if err != nil {
		return err
	}
	if fault := secretFault(conf); fault != "" {
		report.Faulty++
		report.Faults = append(report.Faults, fault)
	}
	if c.JSON {
		err = json.NewEncoder(a.stdout).Encode(reportJSON(&report))
	} else {
		printReport(a, conf.dataDir, &report)
	}
	if err != nil {
		return err
	}
	if report.Faulty > 0 {
		return fmt.Errorf("%s found", counted(int64(report.Faulty), "fault"))
	}
	if !c.JSON {
		fmt.Fprintln(a.stdout, "No fault found.")
	}
	return nil
}

// secretFault says what is wrong with the secret, if it is not configured.
func secretFault(conf *config) string {
	if conf.secret != nil {
		return ""
	}
	if _, err := conf.readSecret(); err != nil {
		return err.Error()
	}
	return ""
}

func reportJSON(r *local.Report) map[string]any {
	return map[string]any{
		"records": r.Records, "users": r.Users, "sessions": r.Sessions,
		"faulty": r.Faulty, "faults": append([]string{}, r.Faults...),
		"torn": r.Torn,
	}
}

func printReport(a *app, dir string, r *local.Report) {
	fmt.Fprintf(a.stdout, "%s: %s, %s, %s\n", dir, counted(int64(r.Records), "record"), counted(int64(r.Users), "user"), counted(int64(r.Sessions), "live session"))
	for _, fault := range r.Faults {
		fill(a.stdout, "  ", fault)
	}
	if r.Cut {
		fill(a.stdout, "", "Records behind the damage were not looked at: \"rollcall check --repair\" does.")
	}
	if r.Torn != "" {
		fill(a.stdout, "", "No fault: "+r.Torn)
	}
}

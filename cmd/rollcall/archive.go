package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/archive"
	"github.com/rollcall/rollcall/local"
)

type archiveCmd struct {
	Run     archiveRunCmd     `cmd:"" help:"Copy what changed, and let old days leave the engine."`
	Status  archiveStatusCmd  `cmd:"" help:"Show what the archive holds, and how its last runs went."`
	Restore archiveRestoreCmd `cmd:"" help:"Read days that left back into the engine."`
}

// Help is the verb's own part of its help.
func (archiveCmd) Help() string {
	return `A server does runs by itself, as archive.schedule says. "run" works on the data
directory; while a server has it open, it asks that server, found as by the key
verbs. "status" asks the database.`
}

// runRecord is a run of the archive, as the HTTP API shows it.
type runRecord struct {
	ID            int64                 `json:"id"`
	StartedAt     instant               `json:"started_at"`
	FinishedAt    instant               `json:"finished_at,omitempty"`
	State         rollcall.ArchiveState `json:"state"`
	RowsWritten   int64                 `json:"rows_written"`
	DaysOffloaded int64                 `json:"days_offloaded"`
	Position      string                `json:"position,omitempty"`
	Error         string                `json:"error,omitempty"`
	Runner        string                `json:"runner"`
}

// runRecordOf is nil for no run.
func runRecordOf(r *rollcall.ArchiveRun) *runRecord {
	if r == nil {
		return nil
	}
	return &runRecord{
		ID: r.ID, StartedAt: instantOf(r.StartedAt), FinishedAt: instantOf(r.FinishedAt), State: r.State,
		RowsWritten: r.RowsWritten, DaysOffloaded: r.DaysOffloaded, Position: r.Position, Error: r.Error, Runner: r.Runner,
	}
}

// String says how a run went.
func (r *runRecord) String() string {
	counts := fmt.Sprintf("%s user-months copied, %s days left the engine", humanize.Comma(r.RowsWritten), humanize.Comma(r.DaysOffloaded))
	switch r.State {
	case rollcall.RunRunning:
		return fmt.Sprintf("Run %d is under way since %s: %s.", r.ID, r.StartedAt.time().Format(time.DateTime), counts)
	case rollcall.RunFailed:
		return fmt.Sprintf("Run %d of %s failed: %s. Before that, %s.", r.ID, r.StartedAt.time().Format(time.DateTime), r.Error, counts)
	default:
		return fmt.Sprintf("Run %d of %s completed in %s: %s.", r.ID, r.StartedAt.time().Format(time.DateTime),
			r.FinishedAt.time().Sub(r.StartedAt.time()).Round(time.Millisecond), counts)
	}
}

var (
	errNoArchive    = usageError{errors.New("archive.dsn is off: there is no archive")}
	errWhichArchive = usageError{errors.New("archive.dsn is not set: servers on one Redis share one archive, so it has to be named")}
)

type archiveRunCmd struct {
	keyholder
	JSON bool `help:"As JSON."`
}

// Run does a run.
func (c *archiveRunCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	var run runRecord
	if c.Server == "" {
		run, err = conf.archiveOnce(a)
	}
	if c.Server != "" || errors.Is(err, local.ErrInUse) {
		run, err = c.ask(a, conf)
	}
	if run.ID == 0 {
		return err
	}
	if c.JSON {
		err = errors.Join(err, json.NewEncoder(a.stdout).Encode(&run))
	} else {
		fmt.Fprintln(a.stdout, run.String())
	}
	if err == nil && run.State != rollcall.RunCompleted {
		err = errors.New("the archive is not up to date; nothing is lost, and another run goes on")
	}
	return err
}

// archiveOnce does a run on the data directory.
func (c *config) archiveOnce(a *app) (run runRecord, err error) {
	err = c.withArchive(a, "run", func(s *archiveService) error {
		ctx, stop := interruptible(a.ctx)
		defer stop()
		r, err := s.runner.Run(ctx)
		run = *runRecordOf(&r)
		return err
	})
	return run, err
}

// withArchive opens engine and archive for one command; what is its name for the audit trail.
func (c *config) withArchive(a *app, what string, do func(*archiveService) error) error {
	if c.archive == nil {
		return c.noArchive
	}
	engine, err := c.openEngine(a)
	if err != nil {
		return err
	}
	s, err := c.openArchive(a, engine, newLogger(a, c), nil)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	if s == nil {
		return errors.Join(errors.New("this engine cannot archive"), engine.Close())
	}
	c.roll.Archive = s.adapter()
	roll, err := c.openRoll(engine) // which tells the engine its settings
	if err != nil {
		return errors.Join(err, engine.Close(), s.close())
	}
	err = roll.Audit(a.ctx, rollcall.NewAuditEntry{Action: rollcall.AuditArchiveRun, Detail: map[string]string{"what": what}})
	if err == nil {
		err = do(s)
	}
	return errors.Join(err, roll.Close(), engine.Close(), s.close())
}

// ask lets the running server do a run and waits for it.
func (c *archiveRunCmd) ask(a *app, conf *config) (runRecord, error) {
	var run runRecord
	server, err := c.remote(a, conf)
	if err != nil {
		return run, err
	}
	defer server.close() //nolint:errcheck // it has no error
	if err := server.call(http.MethodPost, "/v1/archive/runs", nil, &run); err != nil {
		return run, err
	}
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for run.State == rollcall.RunRunning {
		select {
		case <-a.ctx.Done():
			return run, a.ctx.Err()
		case <-again.C:
		}
		var list struct {
			Items []runRecord `json:"items"`
		}
		if err := server.call(http.MethodGet, "/v1/archive/runs", nil, &list); err != nil {
			return run, err
		}
		for _, r := range list.Items {
			if r.ID == run.ID {
				run = r
			}
		}
	}
	return run, nil
}

type archiveStatusCmd struct {
	settings
	JSON bool `help:"As JSON."`
}

// Run shows how the archive stands.
func (c *archiveStatusCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	if conf.archive == nil {
		return conf.noArchive
	}
	if path := conf.archive.path; path != "" {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("nothing has been archived yet: there is no %s", path)
		}
	}
	db, err := archive.Open(a.ctx, conf.archive.dsn, archive.Options{})
	if err != nil {
		return err
	}
	status, err := db.Status(a.ctx)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return c.show(a, conf, &status)
}

func (c *archiveStatusCmd) show(a *app, conf *config, s *archive.Status) error {
	next := time.Time{}
	if conf.archive.schedule != nil {
		next = conf.archive.schedule.Next(time.Now())
	}
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(statusOf(s, next))
	}
	w := a.stdout
	fmt.Fprintf(w, "%s user-months in %s months; %s days have left the engine", humanize.Comma(int64(s.Rows)),
		humanize.Comma(int64(s.Months)), humanize.Comma(int64(s.Offloaded)))
	if s.Offloaded > 0 {
		fmt.Fprintf(w, ", of %s to %s", s.Oldest, s.Newest)
	}
	fmt.Fprintln(w, ".")
	if s.Latest == nil {
		fmt.Fprintln(w, "There has been no run yet.")
	} else {
		fmt.Fprintln(w, runRecordOf(s.Latest))
	}
	if s.Completed != nil && s.Completed.ID != s.Latest.ID {
		fmt.Fprintln(w, "The last that completed:", runRecordOf(s.Completed))
	}
	if !next.IsZero() {
		fmt.Fprintln(w, "The next is due", next.In(conf.roll.Timezone).Format("Monday, 2006-01-02 15:04 MST."))
	}
	return nil
}

// statusRecord is the status as JSON.
type statusRecord struct {
	Rows      int           `json:"rows"`
	Months    int           `json:"months"`
	Offloaded int           `json:"offloaded_days"`
	Oldest    *rollcall.Day `json:"oldest_offloaded,omitempty"`
	Newest    *rollcall.Day `json:"newest_offloaded,omitempty"`
	Latest    *runRecord    `json:"latest,omitempty"`
	Completed *runRecord    `json:"last_completed,omitempty"`
	Next      instant       `json:"next,omitempty"`
}

func statusOf(s *archive.Status, next time.Time) statusRecord {
	r := statusRecord{
		Rows: s.Rows, Months: s.Months, Offloaded: s.Offloaded, Next: instantOf(next),
		Latest: runRecordOf(s.Latest), Completed: runRecordOf(s.Completed),
	}
	if s.Offloaded > 0 {
		r.Oldest, r.Newest = &s.Oldest, &s.Newest
	}
	return r
}

type archiveRestoreCmd struct {
	settings
	From string `placeholder:"DAY" help:"First day (default: the first that left)."`
	To   string `placeholder:"DAY" help:"Last day (default: the last that left)."`
	JSON bool   `help:"As JSON."`
}

// Help is the verb's own part of its help.
func (archiveRestoreCmd) Help() string {
	return `Reads the days back, counts them, and leaves them in the archive as well. Raise
archive.keep_hot before, or they leave again with the next run. With the
embedded engine the server must be stopped.`
}

// Run reads days back.
func (c *archiveRestoreCmd) Run(a *app) error {
	conf, err := c.load(a)
	if err != nil {
		return err
	}
	days := rollcall.DayRange{From: 0, To: rollcall.DateOf(9999, 12, 31)}
	for _, end := range []struct {
		name, text string
		day        *rollcall.Day
	}{{"--from", c.From, &days.From}, {"--to", c.To, &days.To}} {
		if end.text == "" {
			continue
		}
		if *end.day, err = rollcall.ParseDay(end.text); err != nil {
			return usageError{fmt.Errorf("%s: must be a day such as 2026-02-03, is %q", end.name, end.text)}
		}
	}
	if days.From > days.To {
		return usageError{errors.New("--from must not be after --to")}
	}
	var done archive.Restored
	err = conf.withArchive(a, "restore", func(s *archiveService) error {
		ctx, stop := interruptible(a.ctx)
		defer stop()
		var err error
		done, err = s.runner.Restore(ctx, days)
		return err
	})
	if errors.Is(err, local.ErrInUse) {
		return fmt.Errorf("stop the server first: %w", err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(map[string]int{"days": done.Days, "rows": done.Rows})
	}
	fmt.Fprintf(a.stdout, "%s days are back in the engine, of %s user-months.\n", humanize.Comma(int64(done.Days)), humanize.Comma(int64(done.Rows)))
	return nil
}

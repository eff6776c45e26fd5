package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/archive"
	"github.com/rollcall/rollcall/internal/sqltest"
	"github.com/rollcall/rollcall/local"
)

const (
	leavingDays  = 239 // of one kind
	leavingUsers = 60
	hotDays      = 400
	churnRate    = 100 // changes a second
)

// measureArchive measures runs of the archive: of days that leave, and while marks of
// old days change.
func measureArchive(ctx context.Context, _ []int) (section, error) {
	s := section{
		title: "Runs of the archive",
		about: fmt.Sprintf("%d days of one kind with %d users leave in one run; then a run goes on while %d marks a second of days that left are made and taken back, for 3 s before it and as long as it takes.",
			leavingDays, leavingUsers, churnRate),
	}
	t := table{head: []string{"engine", "archive", "rows copied", "the run in which days leave", "a day", "the run under change", "its rows", "the run after"}}
	postgres, err := sqltest.Postgres(ctx)
	if err != nil {
		return s, err
	}
	for _, engine := range []string{"embedded", "Redis"} {
		for _, database := range []string{"SQLite", "PostgreSQL"} {
			row, err := archiveRuns(ctx, engine, database, postgres)
			if err != nil {
				return s, errors.Join(fmt.Errorf("%s, %s: %w", engine, database, err), postgres.Close())
			}
			t.add(append([]string{engine, database}, row...)...)
		}
	}
	t.note = "When days left one by one, a day took 85 ms on Redis and 18 ms embedded; runs under change took 11 to 71 s embedded, and one on Redis with PostgreSQL had not ended after 190 s."
	s.tables = []table{t}
	return s, postgres.Close()
}

// archiving is an engine with an archive.
type archiving struct {
	*rollcall.Roll
	runner *archive.Runner
	today  rollcall.Day
}

// archiveRuns measures with one engine and one database.
func archiveRuns(ctx context.Context, engine, database string, postgres *sqltest.Server) (row []string, err error) {
	dir, err := os.MkdirTemp("", "rollcall-bench-archive")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dsn := "sqlite:" + filepath.Join(dir, "archive.db")
	if database == "PostgreSQL" {
		name, err := postgres.Create(ctx)
		if err != nil {
			return nil, err
		}
		dsn = postgres.URL(name)
	}
	db, err := archive.Open(ctx, dsn, archive.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	log, err := archive.OpenOffloadLog(filepath.Join(dir, "offloaded"))
	if err != nil {
		return nil, err
	}
	o := rollcall.Options{Archive: &archive.Adapter{DB: db, OffloadLog: log}}
	var a archiving
	var hot rollcall.Archival
	if engine == "embedded" {
		b, err := open(local.Options{}, o)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		a.Roll, hot = b.Roll, b.engine
	} else {
		s, err := openShared(ctx, 0, o)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.close()) }()
		a.Roll, hot = s.Roll, s.engine
	}
	if a.runner, err = archive.NewRunner(db, hot, archive.RunnerOptions{KeepHot: hotDays, OffloadLog: log}); err != nil {
		return nil, err
	}
	a.today = a.Today()
	return a.measure(ctx)
}

// oldMark is the mark of a user on one of the days that leave.
func (a *archiving) oldMark(user, day int) rollcall.Mark {
	return rollcall.Mark{User: paddedUser(user), Kind: "user", Day: a.today - hotDays - 1 - rollcall.Day(day)}
}

func (a *archiving) measure(ctx context.Context) ([]string, error) {
	for day := range leavingDays {
		var marks []rollcall.Mark
		for user := day % 7; user < leavingUsers; user += 7 {
			marks = append(marks, a.oldMark(user, day))
		}
		if _, _, err := a.ImportMarks(ctx, marks...); err != nil {
			return nil, err
		}
	}
	first, leave, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	under, churned, err := a.runUnderChange(ctx)
	if err != nil {
		return nil, err
	}
	_, after, err := a.run(ctx)
	return []string{
		count(float64(first.RowsWritten)), took(leave), took(leave / leavingDays),
		took(churned), count(float64(under.RowsWritten)), took(after),
	}, err
}

func (a *archiving) run(ctx context.Context) (rollcall.ArchiveRun, time.Duration, error) {
	began := time.Now()
	run, err := a.runner.Run(ctx)
	return run, time.Since(began), err
}

// runUnderChange does a run while marks of days that left come and go.
func (a *archiving) runUnderChange(ctx context.Context) (run rollcall.ArchiveRun, took time.Duration, err error) {
	changing, stop := context.WithCancel(ctx)
	var changes atomic.Int64
	changed := make(chan error, 1)
	go func() { changed <- a.churn(changing, &changes) }()
	err = wait(ctx, 3*time.Second)
	if err == nil {
		run, took, err = a.run(ctx)
	}
	stop()
	if err = errors.Join(err, <-changed); err == nil {
		fmt.Fprintf(os.Stderr, "bench: %d changes\n", changes.Load())
	}
	return run, took, err
}

// churn makes marks and takes marks back until ctx ends.
func (a *archiving) churn(ctx context.Context, changes *atomic.Int64) error {
	tick := time.NewTicker(time.Second / churnRate)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		m := a.oldMark(n*31%leavingUsers, n*17%leavingDays)
		var err error
		if n%2 == 0 {
			_, _, err = a.ImportMarks(ctx, m)
		} else {
			_, err = a.Unmark(ctx, true, m)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		changes.Add(1)
	}
}

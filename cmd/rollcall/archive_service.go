package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/archive"
)

// The archive's files in the data directory.
const (
	archiveFile = "archive.db"
	offloadDir  = "offloaded"
)

// archiveConfig is the configuration of the archive.
type archiveConfig struct {
	dsn      string
	path     string            // of the default archive's file; "" for another one
	schedule *archive.Schedule // nil for runs on request only
	keepHot  int               // days
}

func (r *configReader) archive(c *config) *archiveConfig {
	a := &archiveConfig{dsn: r.get("archive.dsn")}
	switch {
	case a.dsn == "off":
		c.noArchive = errNoArchive
		return nil
	case a.dsn == "" && c.redis != nil:
		c.noArchive = errWhichArchive
		return nil
	case a.dsn == "":
		a.path = filepath.Join(c.dataDir, archiveFile)
		a.dsn = "sqlite:" + a.path
	}
	r.archiveFault(archive.CheckDSN(a.dsn))
	if text := r.get("archive.schedule"); text != "off" {
		var err error
		a.schedule, err = archive.ParseSchedule(text, c.roll.Timezone)
		r.archiveFault(err)
	}
	a.keepHot = archive.NeverOffload
	if text := r.get("archive.keep_hot"); text != "off" {
		d, err := rollcall.ParseDuration(text)
		if a.keepHot = int(d / day); err != nil || d%day != 0 || a.keepHot < 1 || a.keepHot > 36_500 {
			r.fault("archive.keep_hot", "must be days, from 1d to 36500d, or off, is %q", text)
		}
	}
	return a
}

func (r *configReader) archiveFault(err error) {
	var e *rollcall.Error
	if errors.As(err, &e) {
		r.fault(e.Field, "%s", e.Detail)
	}
}

// archiveService is the archive of an engine, opened. A nil one does nothing.
type archiveService struct {
	db        *archive.DB
	log       *archive.OffloadLog
	runner    *archive.Runner
	scheduler *archive.Scheduler // nil until it is scheduled
}

// openArchive opens the archive, if there is to be one. Without its database the
// server runs all the same, and says so where the archive is needed.
func (c *config) openArchive(a *app, engine rollcall.Engine, logger *slog.Logger, observer archive.Observer) (*archiveService, error) {
	if c.archive == nil {
		return nil, nil
	}
	s := &archiveService{}
	var err error
	if path := c.archive.path; path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite would let others read it
		if err != nil {
			return nil, fmt.Errorf("open the archive: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	if s.log, err = archive.OpenOffloadLog(filepath.Join(c.dataDir, offloadDir)); err != nil {
		return nil, err
	}
	if s.db, err = archive.Open(a.ctx, c.archive.dsn, archive.Options{Lazy: true, Logger: logger, Timeout: 30 * time.Second}); err != nil {
		return nil, err
	}
	opts := archive.RunnerOptions{
		KeepHot: c.archive.keepHot, Timezone: c.roll.Timezone, OffloadLog: s.log, Logger: logger, Observer: observer,
	}
	if keeper, ok := engine.(rollcall.Timekeeper); ok {
		opts.Clock = keeper.Clock()
	}
	if s.runner, err = archive.NewRunner(s.db, engine, opts); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// adapter is the archive as the domain asks it; nil for none.
func (s *archiveService) adapter() rollcall.Archive {
	if s == nil {
		return nil
	}
	return &archive.Adapter{DB: s.db, OffloadLog: s.log}
}

// schedule begins to do runs when they are due.
func (s *archiveService) schedule(a *app, c *archiveConfig) {
	s.scheduler = archive.NewScheduler(a.ctx, s.runner, c.schedule)
}

// stop ends a run that is under way; the engine may be closed then.
func (s *archiveService) stop() {
	if s != nil && s.scheduler != nil {
		s.scheduler.Close()
	}
}

func (s *archiveService) close() error {
	if s == nil {
		return nil
	}
	return s.db.Close()
}

// compactArchive rewrites the archive if it is a file. Other databases are not
// ours alone, and look after their files themselves.
func (s *settings) compactArchive(a *app) error {
	conf, err := s.load(a)
	if err != nil || conf.archive == nil {
		return err
	}
	path, isFile := strings.CutPrefix(conf.archive.dsn, "sqlite:")
	path, _, _ = strings.Cut(path, "?")
	if _, err := os.Stat(path); !isFile || err != nil {
		return nil //nolint:nilerr // there is nothing to compact
	}
	db, err := archive.Open(a.ctx, conf.archive.dsn, archive.Options{})
	if err != nil {
		return err
	}
	return errors.Join(db.Compact(a.ctx), db.Close())
}

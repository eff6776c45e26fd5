package archive

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rollcall/rollcall"
)

// State is how far a run has come.
type State = rollcall.ArchiveState

// The states of a run.
const (
	Running   = rollcall.RunRunning
	Completed = rollcall.RunCompleted
	Failed    = rollcall.RunFailed
)

// Run is one run of the archive. Position is how far it got, in words of the
// runner's own.
type Run = rollcall.ArchiveRun

// MaxPosition is how long a position may be, in bytes. The error of a run is cut
// to the same length.
const MaxPosition = 1024

// Interrupted is the error of a run that ended without saying so.
const Interrupted = "interrupted"

// BeginRun begins a run. Any that is found running was of a lease now lost: it
// has failed, by Interrupted. If the latest run before did not complete, the new
// one has its Position. One lease has one run at a time: CodeConflict.
func (l *Lease) BeginRun(ctx context.Context) (Run, error) {
	var begun Run
	err := l.write(ctx, func(s session) error {
		_, err := s.exec("UPDATE rollcall_archive_runs SET state = 'failed', error = ?, finished_at = "+s.dialect.now+
			" WHERE state = 'running' AND term <> ?", Interrupted, l.term)
		if err != nil {
			return err
		}
		before, err := runs(s, "ORDER BY id DESC LIMIT 1")
		if err != nil {
			return err
		}
		var latest Run
		if len(before) > 0 {
			latest = before[0]
		}
		id, position := latest.ID+1, ""
		switch latest.State {
		case Running:
			return conflict(fmt.Sprintf("run %d is under way", latest.ID), nil)
		case Failed:
			position = latest.Position
		}
		_, err = s.exec("INSERT INTO rollcall_archive_runs"+
			" (id, started_at, state, rows_written, days_offloaded, position, error, runner, term)"+
			" VALUES (?, "+s.dialect.now+", 'running', 0, 0, ?, '', ?, ?)", id, position, l.owner, l.term)
		if err != nil {
			return err
		}
		all, err := runs(s, "WHERE id = ?", id)
		if err == nil {
			begun = all[0]
		}
		return err
	})
	return begun, err
}

// Progress notes how far a run has come: a position of up to [MaxPosition] bytes
// that must name no user, since erasing does not look there, and the rows it has
// written since it began. CodeConflict and [ErrRunEnded] if the run is not under
// way by this lease.
func (l *Lease) Progress(ctx context.Context, id int64, position string, rows int64) error {
	if len(position) > MaxPosition || !utf8.ValidString(position) || strings.ContainsRune(position, 0) {
		return rollcall.Invalid("position", "must be up to %d bytes of UTF-8", MaxPosition)
	}
	if rows < 0 {
		return rollcall.Invalid("rows", "must not be negative")
	}
	return l.ofRun(ctx, id, "position = ?, rows_written = ?", position, rows)
}

// FinishRun ends a run: completed if failure is "", else failed by that. The next
// run is given a failed one's Position; for it to get none set the Position to ""
// before. [Runner] does not go on from it. CodeConflict and [ErrRunEnded] if the run is not under way by this lease.
func (l *Lease) FinishRun(ctx context.Context, id int64, failure string) error {
	state := Completed
	if failure != "" {
		state = Failed
	}
	return l.ofRun(ctx, id, "state = ?, error = ?, finished_at = "+l.db.dialect.now, string(state), cut(failure))
}

// cut makes a text storable anywhere.
func cut(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) <= MaxPosition {
		return text
	}
	end := MaxPosition
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// ofRun changes a run that is under way by this lease.
func (l *Lease) ofRun(ctx context.Context, id int64, set string, args ...any) error {
	return l.write(ctx, func(s session) error { return l.setRun(s, id, set, args...) })
}

func (l *Lease) setRun(s session, id int64, set string, args ...any) error {
	met, err := s.exec("UPDATE rollcall_archive_runs SET "+set+" WHERE id = ? AND state = 'running' AND term = ?",
		append(args, id, l.term)...)
	if err == nil && met == 0 {
		err = conflict(fmt.Sprintf("run %d is not under way", id), ErrRunEnded)
	}
	return err
}

// Runs returns the latest runs, newest first, from 1 to 1000 of them.
func (db *DB) Runs(ctx context.Context, limit int) ([]Run, error) {
	if limit < 1 || limit > 1000 {
		return nil, rollcall.Invalid("limit", "must be from 1 to 1000")
	}
	return db.runs(ctx, "ORDER BY id DESC LIMIT ?", limit)
}

// LastCompleted returns the latest run that completed; false if none has.
func (db *DB) LastCompleted(ctx context.Context) (Run, bool, error) {
	found, err := db.runs(ctx, "WHERE state = 'completed' ORDER BY id DESC LIMIT 1")
	if err != nil || len(found) == 0 {
		return Run{}, false, err
	}
	return found[0], true, nil
}

func (db *DB) runs(ctx context.Context, rest string, args ...any) (found []Run, err error) {
	err = db.read(ctx, func(s session) error {
		found, err = runs(s, rest, args...)
		return err
	})
	return found, err
}

func runs(s session, rest string, args ...any) ([]Run, error) {
	var found []Run
	err := s.query(func(rows *sql.Rows) error {
		var r Run
		var started, finished stamp
		err := rows.Scan(&r.ID, &started, &finished, &r.State, &r.RowsWritten, &r.DaysOffloaded, &r.Position, &r.Error, &r.Runner)
		r.StartedAt, r.FinishedAt = started.Time, finished.Time
		found = append(found, r)
		return err
	}, "SELECT id, started_at, finished_at, state, rows_written, days_offloaded, position, error, runner"+
		" FROM rollcall_archive_runs "+rest, args...)
	return found, err
}

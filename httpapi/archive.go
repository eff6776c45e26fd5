package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// Archive is what starts and knows the runs of the archive.
type Archive interface {
	// Start begins a run and returns it; it goes on by itself. CodeConflict
	// while one is under way.
	Start(ctx context.Context) (rollcall.ArchiveRun, error)
	// Runs returns the latest runs, newest first, from 1 to 1000 of them.
	Runs(ctx context.Context, limit int) ([]rollcall.ArchiveRun, error)
	// Next returns when a run is due next; zero if runs are done on request only.
	Next() time.Time
}

// ArchiveRunRecord is a run of the archive on the wire.
type ArchiveRunRecord struct {
	ID            int64                 `json:"id"`
	State         rollcall.ArchiveState `json:"state" enum:"running,completed,failed"`
	StartedAt     instant               `json:"started_at"`
	FinishedAt    instant               `json:"finished_at,omitempty" doc:"absent while it is running"`
	RowsWritten   int64                 `json:"rows_written" doc:"user-months copied"`
	DaysOffloaded int64                 `json:"days_offloaded" doc:"days that left the hot store; one of several kinds counts once, with the first that leaves"`
	Position      string                `json:"position,omitempty" doc:"how far it got"`
	Error         string                `json:"error,omitempty" doc:"why it failed"`
	Runner        string                `json:"runner" doc:"which process does it"`
}

// archiveRuns are the latest runs, and when the next one is due.
type archiveRuns struct {
	Items  []ArchiveRunRecord `json:"items" nullable:"false"`
	NextAt instant            `json:"next_at,omitempty" doc:"when a run is due next by archive.schedule; absent if runs are done on request only"`
}

func archiveRunOf(r rollcall.ArchiveRun) ArchiveRunRecord {
	return ArchiveRunRecord{
		ID: r.ID, State: r.State, StartedAt: instantOf(r.StartedAt), FinishedAt: instantOf(r.FinishedAt),
		RowsWritten: r.RowsWritten, DaysOffloaded: r.DaysOffloaded, Position: r.Position, Error: r.Error, Runner: r.Runner,
	}
}

type archiveRunsInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"20" doc:"how many"`
}

func (s *Server) registerArchive() {
	register(s, op("GET /v1/archive/runs", "list-archive-runs", "Administration", "The latest runs of the archive, newest first"), s.archiveRuns)
	start := op("POST /v1/archive/runs", "start-archive-run", "Administration", "Start a run of the archive")
	start.Description = "It goes on by itself; the list shows how far it is. 409 while one is under way, on whatever server."
	start.DefaultStatus = http.StatusAccepted
	register(s, start, s.startArchiveRun)
}

func (s *Server) archiveRuns(ctx context.Context, in *archiveRunsInput) (archiveRuns, error) {
	if s.opts.Archive == nil {
		return archiveRuns{}, errNoArchive()
	}
	runs, err := s.opts.Archive.Runs(ctx, in.Limit)
	return archiveRuns{Items: each(runs, archiveRunOf), NextAt: instantOf(s.opts.Archive.Next())}, err
}

func (s *Server) startArchiveRun(ctx context.Context, _ *struct{}) (ArchiveRunRecord, error) {
	if s.opts.Archive == nil {
		return ArchiveRunRecord{}, errNoArchive()
	}
	if err := s.roll.Audit(ctx, rollcall.NewAuditEntry{Action: rollcall.AuditArchiveRun}); err != nil {
		return ArchiveRunRecord{}, err
	}
	run, err := s.opts.Archive.Start(ctx)
	return archiveRunOf(run), err
}

func errNoArchive() error {
	return &rollcall.Error{Code: rollcall.CodeNotFound, Detail: "this server has no archive"}
}

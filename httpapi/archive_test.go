package httpapi_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// fakeRuns is an archive of which only the runs are seen.
type fakeRuns struct {
	runs []rollcall.ArchiveRun // newest first
	next time.Time
}

func (s *fakeRuns) Start(context.Context) (rollcall.ArchiveRun, error) {
	if len(s.runs) > 0 && s.runs[0].State == rollcall.RunRunning {
		return rollcall.ArchiveRun{}, &rollcall.Error{Code: rollcall.CodeConflict, Detail: `the archive is being worked on by "a"`}
	}
	run := rollcall.ArchiveRun{ID: int64(len(s.runs) + 1), StartedAt: noon, State: rollcall.RunRunning, Runner: "a"}
	s.runs = append([]rollcall.ArchiveRun{run}, s.runs...)
	return run, nil
}

func (s *fakeRuns) Runs(_ context.Context, limit int) ([]rollcall.ArchiveRun, error) {
	return s.runs[:min(limit, len(s.runs))], nil
}

func (s *fakeRuns) Next() time.Time { return s.next }

func TestArchiveRuns(t *testing.T) {
	archive := &fakeRuns{}
	s := newSite(t, func(o *httpapi.Options) { o.Archive = archive })
	s.json(200, `{"items":[]}`, "admin", "GET", "/v1/archive/runs", "")
	const first = `{"id":1,"state":"running","started_at":"2026-02-03T12:00:00.789Z","rows_written":0,"days_offloaded":0,"runner":"a"}`
	s.json(202, first, "admin", "POST", "/v1/archive/runs", "")
	p := s.refused(409, rollcall.CodeConflict, "admin", "POST", "/v1/archive/runs", "")
	require.Contains(t, p.Detail, `worked on by "a"`)
	archive.runs[0].State, archive.runs[0].FinishedAt = rollcall.RunFailed, noon.Add(time.Second)
	archive.runs[0].Error, archive.runs[0].Position, archive.runs[0].RowsWritten, archive.runs[0].DaysOffloaded = "interrupted", "copying user 2026-02", 7, 2
	s.json(202, `{"id":2,"state":"running","started_at":"2026-02-03T12:00:00.789Z","rows_written":0,"days_offloaded":0,"runner":"a"}`, "admin", "POST", "/v1/archive/runs", "")
	s.json(200, `{"items":[
		{"id":2,"state":"running","started_at":"2026-02-03T12:00:00.789Z","rows_written":0,"days_offloaded":0,"runner":"a"},
		{"id":1,"state":"failed","started_at":"2026-02-03T12:00:00.789Z","finished_at":"2026-02-03T12:00:01.789Z","rows_written":7,
		 "days_offloaded":2,"position":"copying user 2026-02","error":"interrupted","runner":"a"}]}`, "admin", "GET", "/v1/archive/runs", "")
	archive.next = noon.Add(time.Hour)
	latest := s.ok(200, "admin", "GET", "/v1/archive/runs?limit=1", "")
	require.NotContains(t, latest, `"id":1`)
	require.Contains(t, latest, `"next_at":"2026-02-03T13:00:00.789Z"`)
	s.refused(400, rollcall.CodeInvalidArgument, "admin", "GET", "/v1/archive/runs?limit=1001", "")
	s.refused(403, rollcall.CodeForbidden, "writer", "POST", "/v1/archive/runs", "")
}

func TestWithoutAnArchive(t *testing.T) {
	s := newSite(t)
	for _, method := range []string{"GET", "POST"} {
		p := s.refused(404, rollcall.CodeNotFound, "admin", method, "/v1/archive/runs", "")
		require.Equal(t, "this server has no archive", p.Detail)
	}
}

func TestArchiveMetrics(t *testing.T) {
	var metrics *httpapi.Metrics
	s := newSite(t, func(o *httpapi.Options) { metrics = o.Metrics })
	shown := func(lines ...string) {
		t.Helper()
		text := s.ok(200, "", "GET", "/metrics", "")
		for _, line := range lines {
			require.Contains(t, text, line+"\n")
		}
	}
	shown(`rollcall_archive_runs_total{state="completed"} 0`, `rollcall_archive_runs_total{state="failed"} 0`,
		"rollcall_archive_last_success_timestamp_seconds NaN", "rollcall_archive_lag_seconds NaN")
	metrics.Archived(rollcall.ArchiveRun{State: rollcall.RunFailed, StartedAt: noon, RowsWritten: 5}, true)
	shown("rollcall_archive_last_success_timestamp_seconds NaN")
	metrics.Archived(rollcall.ArchiveRun{State: rollcall.RunCompleted, StartedAt: noon, RowsWritten: 7, DaysOffloaded: 2}, true)
	metrics.Archived(rollcall.ArchiveRun{State: rollcall.RunCompleted, StartedAt: noon.Add(-time.Hour), RowsWritten: 70}, false)
	shown(`rollcall_archive_runs_total{state="completed"} 1`, `rollcall_archive_runs_total{state="failed"} 1`,
		"rollcall_archive_rows_written_total 12", "rollcall_archive_offloads_total 2",
		"rollcall_archive_last_success_timestamp_seconds 1.770120000789e+09")
}

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/sqltest"
)

// TestServersShareAnArchive has days leave three servers on one Redis for one
// PostgreSQL.
func TestServersShareAnArchive(t *testing.T) {
	on := sharedRedis(t)
	dsn := sqltest.StartPostgres(t).Database(t)
	f := startFleet(t, buildBinary(t), on, 3, "--archive-dsn", dsn, "--archive-schedule", "off", "--archive-keep-hot", "10d")
	today := rollcall.DayOf(time.Now(), time.UTC)
	var marks []map[string]any
	for i := range 60 {
		for ago := i % 4; ago < 60; ago += 1 + i%3 {
			marks = append(marks, map[string]any{"user": fmt.Sprint("user ", i), "day": (today - rollcall.Day(ago)).String()})
		}
	}
	change := func(server int, method string, marks ...map[string]any) {
		t.Helper()
		f.servers[server].get(nil, request{method: method, path: "/v1/attendance/marks?import=1", body: map[string]any{"marks": marks}}, http.StatusOK)
	}
	ask := func(server int) (all []string) {
		t.Helper()
		span := fmt.Sprintf("from=%s&to=%s", today-60, today)
		for _, path := range []string{"series?", "retention?period=week&", "lifecycle?period=week&", "stickiness?", "streaks?", "users/user%207?"} {
			var answer json.RawMessage
			f.servers[server].get(&answer, request{method: http.MethodGet, path: "/v1/attendance/" + path + span}, http.StatusOK)
			all = append(all, string(answer))
		}
		return all
	}
	change(0, http.MethodPost, marks...)
	before := ask(1)
	runs := f.archiveAtOnce()
	require.Equal(t, 1, runs.offloaded, "one of them did it: %+v", runs)
	for server := range f.servers {
		require.Equal(t, before, ask(server), "server %d", server)
	}

	late := map[string]any{"user": "user 7", "day": (today - 34).String()}
	gone := map[string]any{"user": "user 0", "day": (today - 40).String()}
	change(0, http.MethodPost, late)
	change(1, http.MethodDelete, gone)
	changed := ask(2)
	require.NotEqual(t, before, changed)
	require.Equal(t, changed, ask(0))
	f.archiveAtOnce()
	for server := range f.servers {
		require.Equal(t, changed, ask(server), "server %d", server)
	}
	change(2, http.MethodDelete, late)
	change(0, http.MethodPost, gone)
	for server := range f.servers {
		require.Equal(t, before, ask(server), "server %d", server)
	}
}

// archiveRuns is what became of runs that were asked for at once.
type archiveRuns struct{ begun, refused, offloaded int }

// archiveAtOnce asks all servers for a run and waits until all are over.
func (f *fleet) archiveAtOnce() (out archiveRuns) {
	f.t.Helper()
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, s := range f.servers {
		asked.Go(func() {
			status, body, err := s.call(request{method: http.MethodPost, path: "/v1/archive/runs"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && status == http.StatusAccepted:
				out.begun++
			case err == nil && status == http.StatusConflict:
				out.refused++
			default:
				f.t.Errorf("%d %s: %v", status, body, err)
			}
		})
	}
	asked.Wait()
	require.Positive(f.t, out.begun)
	var list struct {
		Items []struct {
			State         string
			DaysOffloaded int `json:"days_offloaded"`
			Error         string
		}
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for running := true; running; <-again.C {
		list.Items = nil
		f.servers[0].get(&list, request{method: http.MethodGet, path: "/v1/archive/runs"}, http.StatusOK)
		running = false
		for _, run := range list.Items {
			running = running || run.State == "running"
		}
	}
	for _, run := range list.Items {
		require.Equal(f.t, "completed", run.State, run.Error)
		if run.DaysOffloaded > 0 {
			out.offloaded++
		}
	}
	return out
}

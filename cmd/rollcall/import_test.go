package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/history"
	"github.com/rollcall/rollcall/local"
)

// writeHistory writes rows of days in any order, each 100th of them a bad one,
// and returns who was there on which of the days.
func writeHistory(t *testing.T, path string, rows int) [][]string {
	t.Helper()
	first, err := rollcall.ParseDay("2024-01-01")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	var days [20]map[string]bool
	for i := range days {
		days[i] = make(map[string]bool)
	}
	var b bytes.Buffer
	for i := range rows {
		day, user := rng.IntN(len(days)), fmt.Sprint("user-", rng.IntN(20_000))
		fmt.Fprintf(&b, "%s,%s\n", first+rollcall.Day(day), user)
		days[day][user] = true
		if i%100 == 0 {
			b.WriteString("never,nobody\n")
		}
	}
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	var out [][]string
	for _, users := range days {
		var list []string
		for u := range users {
			list = append(list, u)
		}
		slices.Sort(list)
		out = append(out, list)
	}
	return out
}

// daysIn reads who was there in a data directory, on as many days from
// 2024-01-01.
func daysIn(t *testing.T, dir string, days int) [][]string {
	t.Helper()
	engine, err := local.Open(filepath.Join(dir, storeDir), local.Options{})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	}()
	first, err := rollcall.ParseDay("2024-01-01")
	require.NoError(t, err)
	var out [][]string
	for i := range days {
		var list []string
		for cursor := ""; ; {
			d := first + rollcall.Day(i)
			page, err := roll.Active(t.Context(), rollcall.ActiveQuery{
				Range: rollcall.DayRange{From: d, To: d}, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit, Cursor: cursor},
			})
			require.NoError(t, err)
			list = append(list, page.Items...)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		slices.Sort(list)
		out = append(out, list)
	}
	return out
}

// TestAKilledImportIsResumed kills the real command in the middle, twice.
func TestAKilledImportIsResumed(t *testing.T) {
	const rows = 400_000
	work := t.TempDir()
	file, dir, list := filepath.Join(work, "logins.csv"), filepath.Join(work, "data"), filepath.Join(work, "rejected.csv")
	want := writeHistory(t, file, rows)
	args := []string{"import", "csv", "--create", "--data-dir", dir, "--batch", "1000", "--resume", "--json", "--rejected", list, file}

	killed := 0
	var line int64
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "rollcall", args...) //nolint:gosec // our own command
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool {
			at, ok := checkpoint(t, dir)
			if !ok || at <= line {
				return false
			}
			line = at
			return true
		}, patience, time.Millisecond, "the import leaves a later checkpoint")
		require.NoError(t, cmd.Process.Kill())
		if cmd.Wait() != nil {
			killed++
		}
	}
	require.Equal(t, 2, killed, "both were killed before they were through")

	cmd := exec.CommandContext(t.Context(), "rollcall", args...) //nolint:gosec // our own command
	out, err := cmd.Output()
	require.NoError(t, err)
	var summary struct {
		history.Summary
		Accepted int64
	}
	require.NoError(t, json.Unmarshal(out, &summary))
	require.Greater(t, summary.ResumedAt, line, "it went on behind the checkpoint")
	require.EqualValues(t, rows, summary.Accepted)
	require.EqualValues(t, rows, summary.Marked+summary.Already)
	require.EqualValues(t, rows/100, summary.Rejected)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, rows/100+1, strings.Count(string(text), "\n"), "each rejected line is listed once")
	require.Equal(t, want, daysIn(t, dir, len(want)))
	_, left := checkpoint(t, dir)
	require.False(t, left)
}

// checkpoint returns the line of the checkpoint in a data directory.
func checkpoint(t *testing.T, dir string) (int64, bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "import-*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		return 0, false
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return 0, false // the import is through
	}
	var state struct{ Line int64 }
	require.NoError(t, json.Unmarshal(text, &state), "a checkpoint is whole at any time")
	return state.Line, true
}

func TestProgressOfAnImport(t *testing.T) {
	var out bytes.Buffer
	i := &importing{progress: progress{w: &out}}
	i.show(history.Progress{Rows: 1_000_000, Bytes: 25 << 20, Size: 100 << 20}) // resumed here
	began := i.began
	line := i.line(history.Progress{Rows: 3_000_000, Rejected: 7, Bytes: 50 << 20, Size: 100 << 20}, began.Add(10*time.Second))
	require.Equal(t, "3,000,000 rows, 200,000 rows/s, 7 rejected, 50% of 100 MiB, about 20s to go", line)
	line = i.line(history.Progress{Rows: 3_000_000, Bytes: 50 << 20, Size: -1}, began.Add(10*time.Second))
	require.Equal(t, "3,000,000 rows, 200,000 rows/s, 50 MiB read", line)

	i.show(history.Progress{Rows: 1_000_001, Size: 100 << 20})
	require.Empty(t, out.String(), "what takes no time is not told of")
	i.told = began.Add(-lineEvery)
	i.show(history.Progress{Rows: 2_000_000, Bytes: 50 << 20, Size: 100 << 20})
	require.Contains(t, out.String(), "2,000,000 rows")
}

func TestProgressOfAnImportOnATerminal(t *testing.T) {
	var out bytes.Buffer
	i := &importing{progress: progress{w: &out, terminal: true}}
	i.show(history.Progress{Size: 100 << 20})
	i.show(history.Progress{Rows: 1, Bytes: 1 << 20, Size: 100 << 20})
	require.Empty(t, out.String())
	i.began, i.told = i.began.Add(-10*time.Second), i.began.Add(-drawEvery)
	i.show(history.Progress{Rows: 2_000_000, Bytes: 50 << 20, Size: 100 << 20})
	require.Contains(t, out.String(), "2,000,000 rows")
	require.Contains(t, out.String(), "about 10s to go")
	require.Contains(t, out.String(), "50%")
	i.finish()
}

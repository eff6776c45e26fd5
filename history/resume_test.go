package history

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func readReport(t *testing.T, path string) []Rejected {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"line", "reason", "text"}, records[0])
	var out []Rejected
	for _, r := range records[1:] {
		line, err := strconv.ParseInt(r[0], 10, 64)
		require.NoError(t, err)
		out = append(out, Rejected{line, Reason(r[1]), r[2]})
	}
	return out
}

var errFailing = errors.New("the engine fails")

// failing is a Roll whose calls fail after some have not.
type failing struct {
	Roll
	left atomic.Int64
}

func (f *failing) ImportMarks(ctx context.Context, marks ...rollcall.Mark) (marked, already int, err error) {
	if f.left.Add(-1) < 0 {
		return 0, 0, errFailing
	}
	return f.Roll.ImportMarks(ctx, marks...)
}

// spoiled makes every 50th line of a file one that is rejected.
func spoiled(text string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		if n++; n%50 == 0 {
			fmt.Fprintf(&b, "bad,%d\n", n)
		}
		b.WriteString(line)
	}
	return b.String()
}

func TestAnImportGoesOnWhereItWasCutShort(t *testing.T) {
	text, want := randomFile(rand.New(rand.NewPCG(11, 11)), time.UTC, 90_000)
	text = spoiled(text)
	for name, content := range map[string][]byte{"plain": []byte(text), "gzip": packed(t, text)} {
		t.Run(name, func(t *testing.T) {
			path := file(t, content)
			list := filepath.Join(t.TempDir(), "rejected.csv")
			whole := importText(t, newRoll(t, "UTC"), text, Options{Rejected: list})
			wantList := readReport(t, list)
			require.Len(t, wantList, int(whole.Rejected))

			dir := t.TempDir()
			roll := newRoll(t, "UTC")
			o := Options{Window: 1_000, StateDir: dir, Resume: true, Rejected: filepath.Join(dir, "rejected.csv")}
			var resumed []int64
			for {
				broken := &failing{Roll: roll}
				broken.left.Store(7) // a window or two
				summary, err := importFile(t, broken, path, o)
				resumed = append(resumed, summary.ResumedAt)
				if err == nil {
					require.Equal(t, whole.Rows, summary.Rows)
					require.Equal(t, whole.Reasons, summary.Reasons)
					require.Equal(t, whole.Accepted(), summary.Marked+summary.Already)
					require.Equal(t, whole.FirstDay, summary.FirstDay)
					require.Equal(t, whole.LastDay, summary.LastDay)
					break
				}
				require.ErrorIs(t, err, errFailing)
			}
			require.Greater(t, len(resumed), 2, "it failed more than once")
			require.IsIncreasing(t, resumed, "and went further each time")
			require.Equal(t, want, attended(t, roll, "user", "staff", "guest"))
			require.Equal(t, wantList, readReport(t, o.Rejected))
			left, err := filepath.Glob(filepath.Join(dir, "import-*"))
			require.NoError(t, err)
			require.Empty(t, left, "a complete import leaves no checkpoint")
		})
	}
}

// cutShort leaves a checkpoint in a directory, and returns the file it is of.
func cutShort(t *testing.T, dir string, o Options) string {
	t.Helper()
	text, _ := randomFile(rand.New(rand.NewPCG(12, 12)), time.UTC, 60_000)
	path := file(t, []byte(text))
	broken := &failing{Roll: newRoll(t, "UTC")}
	broken.left.Store(6)
	o.StateDir, o.Window = dir, 1_000
	_, err := importFile(t, broken, path, o)
	require.ErrorIs(t, err, errFailing)
	checkpoints, err := filepath.Glob(filepath.Join(dir, "import-*.json"))
	require.NoError(t, err)
	require.Len(t, checkpoints, 1)
	return path
}

func TestACheckpointIsOfOneImportOnly(t *testing.T) {
	dir := t.TempDir()
	path := cutShort(t, dir, Options{Kind: "staff"})
	var e *rollcall.Error

	_, err := importFile(t, newRoll(t, "UTC"), path, Options{StateDir: dir, Resume: true})
	require.ErrorAs(t, err, &e)
	require.Equal(t, rollcall.CodeConflict, e.Code)
	require.Equal(t, "kind", e.Field)

	_, err = importFile(t, newRoll(t, "Asia/Shanghai"), path, Options{StateDir: dir, Resume: true, Kind: "staff"})
	require.ErrorAs(t, err, &e)
	require.Equal(t, rollcall.CodeConflict, e.Code)
	require.Equal(t, "timezone", e.Field)

	// Without Resume it is begun anew, and so is another file.
	summary, err := importFile(t, newRoll(t, "UTC"), file(t, []byte("2017-10-05,alice\n")), Options{StateDir: dir, Resume: true})
	require.NoError(t, err)
	require.Zero(t, summary.ResumedAt)
	summary, err = importFile(t, newRoll(t, "UTC"), path, Options{StateDir: dir})
	require.NoError(t, err)
	require.Zero(t, summary.ResumedAt)
	require.EqualValues(t, 60_000, summary.Rows)
}

func TestADamagedCheckpointIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := cutShort(t, dir, Options{})
	checkpoints, err := filepath.Glob(filepath.Join(dir, "import-*.json"))
	require.NoError(t, err)
	for _, text := range []string{"", "{", "{}", `{"version":2}`} {
		require.NoError(t, os.WriteFile(checkpoints[0], []byte(text), 0o600))
		_, err := importFile(t, newRoll(t, "UTC"), path, Options{StateDir: dir, Resume: true})
		require.ErrorContains(t, err, "remove it to begin anew", text)
	}
}

func TestACheckpointNamesNobody(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&b, "2017-10-05,remember-me-not-%d\nnever,remember-me-not-%d\n", i, i)
	}
	path := file(t, []byte(b.String()))
	broken := &failing{Roll: newRoll(t, "UTC")}
	broken.left.Store(6)
	_, err := importFile(t, broken, path, Options{StateDir: dir, Window: 1_000})
	require.ErrorIs(t, err, errFailing)
	checkpoints, err := filepath.Glob(filepath.Join(dir, "import-*"))
	require.NoError(t, err)
	require.Len(t, checkpoints, 1)
	text, err := os.ReadFile(checkpoints[0])
	require.NoError(t, err)
	require.Contains(t, string(text), `"line":`)
	require.NotContains(t, string(text), "remember-me-not")
}

func TestAStreamIsNotResumed(t *testing.T) {
	summary, err := Import(t.Context(), newRoll(t, "UTC"), Stream(strings.NewReader("2017-10-05,alice\n")), Options{StateDir: t.TempDir(), Resume: true})
	require.NoError(t, err)
	require.Zero(t, summary.ResumedAt)
	require.EqualValues(t, 1, summary.Marked)
}

func TestATornFileIsTakenInAsFarAsItGoes(t *testing.T) {
	text, _ := randomFile(rand.New(rand.NewPCG(13, 13)), time.UTC, 60_000)
	whole := packed(t, text)
	dir := t.TempDir()
	path := file(t, whole[:len(whole)/2])
	roll := newRoll(t, "UTC")
	summary, err := importFile(t, roll, path, Options{StateDir: dir})
	require.ErrorContains(t, err, "unexpected EOF")
	require.Empty(t, summary.FirstRejected, "the line it was torn in is not taken for a row")
	require.Greater(t, summary.Marked, int64(1_000))
	require.Less(t, summary.Rows, int64(60_000))

	// The whole file is another one; what is known already stands.
	again, err := importFile(t, roll, file(t, whole), Options{StateDir: dir, Resume: true})
	require.NoError(t, err)
	require.EqualValues(t, 60_000, again.Rows)
	require.GreaterOrEqual(t, again.Already, summary.Marked)
}

func TestTheListOfRejectedLinesCannotReplaceTheFile(t *testing.T) {
	path := file(t, []byte("2017-10-05,alice\n"))
	_, err := importFile(t, newRoll(t, "UTC"), path, Options{Rejected: path})
	require.ErrorContains(t, err, "it is the file to import")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "2017-10-05,alice\n", string(text))

	_, err = importFile(t, newRoll(t, "UTC"), path, Options{Rejected: filepath.Join(path, "x")})
	require.ErrorContains(t, err, "the list of rejected lines")
}

func TestAnImportEndsWithItsContext(t *testing.T) {
	text, _ := randomFile(rand.New(rand.NewPCG(14, 14)), time.UTC, 60_000)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	s, err := Open(file(t, []byte(text)))
	require.NoError(t, err)
	defer s.Close()
	_, err = Import(ctx, newRoll(t, "UTC"), s, Options{Window: 1_000, Progress: func(Progress) {
		if seen++; seen == 3 {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
}

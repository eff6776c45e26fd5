package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/local"
)

// fillStore makes a data directory with users of every sort: with sessions, friends, days, bans
// and sessions that ended.
func fillStore(t *testing.T, dir string, users int) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, secretFile), []byte(strings.Repeat("5e", 32)), 0o600))
	engine, err := local.Open(filepath.Join(dir, storeDir), local.Options{Durability: local.Interval})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte(strings.Repeat("\x5e", 32))})
	require.NoError(t, err)
	at := time.Now().UTC().Add(-time.Hour).Truncate(time.Second)
	today := rollcall.DayOf(at, time.UTC)
	var some []rollcall.UserSnapshot
	for i := range users {
		d := rollcall.UserSnapshot{User: fmt.Sprintf("user-%07d", i), LastSeen: at, Days: map[string][]rollcall.Day{"user": {today - rollcall.Day(i%20) - 1, today}}}
		session := rollcall.SessionSnapshot{Idle: 24 * time.Hour}
		session.Session = rollcall.Session{
			ID: rollcall.NewSessionID(at, d.User, uint64(i)), User: d.User, Kind: "user", App: "shop", Device: "web",
			LoginAt: at, SeenAt: at, ExpiresAt: at.Add(24 * time.Hour),
		}
		copy(session.Token[:], session.ID[:])
		switch i % 4 {
		case 0:
			d.Sessions = append(d.Sessions, session)
		case 1:
			d.Friends = []rollcall.Friend{{User: fmt.Sprintf("user-%07d", i+1), Since: at}}
		case 2:
			session.Idle = 0
			session.End = &rollcall.End{At: at.Add(time.Minute), Cause: rollcall.CauseKicked, Reason: "enough"}
			d.Ended = append(d.Ended, session)
		default:
			d.Bans = []rollcall.BanSnapshot{{Ban: rollcall.Ban{User: d.User, At: at, Until: at.Add(1000 * time.Hour), Reason: "spam"}, Bits: 16}}
		}
		if some = append(some, d); len(some) == rollcall.MaxSnapshots || i == users-1 {
			require.NoError(t, roll.Import(t.Context(), some...))
			some = some[:0]
		}
	}
	_, _, err = roll.CreateKey(t.Context(), rollcall.NewKey{Name: "shop", Role: rollcall.RoleReader})
	require.NoError(t, err)
	require.NoError(t, roll.Close())
	require.NoError(t, engine.Close())
}

// putOff is what an outage puts off: each process that was killed is one.
var putOff = regexp.MustCompile(`"expires_at":"[^"]*",?`)

// linesOf reads the lines of an export between the first and the last, in order.
func linesOf(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path) //nolint:gosec // the test's own
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	var lines []string
	in := bufio.NewScanner(z)
	for in.Buffer(nil, 1<<20); in.Scan(); {
		lines = append(lines, putOff.ReplaceAllString(in.Text(), ""))
	}
	require.NoError(t, in.Err())
	lines = lines[1 : len(lines)-1]
	slices.Sort(lines)
	return lines
}

// reported runs the real command to its end, and reads what it reports.
func reported(t *testing.T, out any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "rollcall", args...) //nolint:gosec // our own command
	said := &syncBuffer{}
	cmd.Stderr = said
	text, err := cmd.Output()
	require.NoError(t, err, "%s%s", text, said)
	require.NoError(t, json.Unmarshal(text, out))
}

// killed runs the real command, and kills it once something holds. The command has a lower
// priority than the test, so that the test sees it in time.
func killed(t *testing.T, holds func() bool, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nice", append([]string{"rollcall"}, args...)...) //nolint:gosec // our own command
	said := &syncBuffer{}
	cmd.Stderr = said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look, late := time.NewTicker(time.Millisecond), time.After(patience)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case err := <-ended:
			require.FailNow(t, "it ended before it could be killed", "%v\n%s", err, said)
		case <-late:
			require.FailNow(t, "it did not come far enough to be killed", said)
		}
	}
	require.NoError(t, cmd.Process.Kill())
	require.ErrorContains(t, <-ended, "killed", said)
}

// TestAMoveThatIsKilledGoesOn moves data from the embedded engine to Redis and back. Each of the
// four commands is killed in the middle, twice. What arrives is what there was, line by line.
func TestAMoveThatIsKilledGoesOn(t *testing.T) {
	users := 20_000
	if testbudget.Long() {
		users = 1_000_000
	}
	work := t.TempDir()
	from, other, back := filepath.Join(work, "from"), filepath.Join(work, "other"), filepath.Join(work, "back")
	fillStore(t, from, users)
	for _, dir := range []string{other, back} {
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, secretFile), []byte(strings.Repeat("5e", 32)), 0o600))
	}
	onRedis := []string{"--data-dir", other, "--engine", "redis", "--redis-url", redistest.Start(t, redistest.Options{}).URL()}

	var whole struct{ Snapshots int }
	first := filepath.Join(work, "first")
	reported(t, &whole, "export", "--json", "--data-dir", from, first)
	require.Equal(t, users, whole.Snapshots)
	want := linesOf(t, first)

	there := filepath.Join(work, "there")
	exportKilled(t, there, users, "--data-dir", from)
	require.Equal(t, want, linesOf(t, there))
	importKilled(t, other, there, users, onRedis...)

	again := filepath.Join(work, "again")
	exportKilled(t, again, users, onRedis...)
	require.Equal(t, want, linesOf(t, again))
	importKilled(t, back, again, users, "--data-dir", back, "--create")

	last := filepath.Join(work, "last")
	reported(t, &whole, "export", "--json", "--data-dir", back, last)
	require.Equal(t, want, linesOf(t, last))
}

// exportKilled exports, and is killed twice.
func exportKilled(t *testing.T, file string, users int, store ...string) {
	t.Helper()
	args := append(append([]string{"export", "--json"}, store...), file)
	size := func() int64 {
		info, err := os.Stat(file + ".part")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	killed(t, func() bool { return size() > 200<<10 }, args...)
	_, err := os.Stat(file)
	require.ErrorIs(t, err, os.ErrNotExist, "what is not whole has not the name of what is")

	// Without --resume nothing is gone on with by chance.
	text, err := exec.CommandContext(t.Context(), "rollcall", args...).CombinedOutput() //nolint:gosec // our own command
	require.Error(t, err)
	require.Contains(t, string(text), "--resume")

	// What a torn write or a bad disk leaves at the end is cut off.
	f, err := os.OpenFile(file+".part", os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	args = append(args, "--resume")
	before := size()
	killed(t, func() bool { return size() > before+100<<10 }, args...)
	var out struct{ Snapshots, Before int }
	reported(t, &out, args...)
	require.Equal(t, users, out.Snapshots)
	require.Positive(t, out.Before, "it went on behind what was whole")
	_, err = os.Stat(file + ".part")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// importKilled imports, and is killed twice.
func importKilled(t *testing.T, dir, file string, users int, store ...string) {
	t.Helper()
	args := append(append([]string{"import", "store", "--json", "--keys", "--resume"}, store...), file)
	entered := 0
	for range 2 {
		killed(t, func() bool {
			at, ok := importState(t, dir)
			if !ok || at <= entered {
				return false
			}
			entered = at
			return true
		}, args...)
	}
	text, err := exec.CommandContext(t.Context(), "rollcall", slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--resume" })...).CombinedOutput() //nolint:gosec // our own command
	require.Error(t, err)
	require.Contains(t, string(text), "--resume")

	var out struct {
		Snapshots, Before, Skipped int
		ResumedAt                  int  `json:"resumed_at"`
		Complete                   bool `json:"complete"`
	}
	reported(t, &out, args...)
	require.True(t, out.Complete)
	require.GreaterOrEqual(t, out.ResumedAt, entered)
	require.GreaterOrEqual(t, out.Before, entered-1)
	require.Zero(t, out.Skipped)
	require.Equal(t, users, out.Snapshots+out.Before, "nobody twice, and nobody left out")
	_, left := importState(t, dir)
	require.False(t, left)
}

// importState returns the line up to which an import says that all is in.
func importState(t *testing.T, dir string) (int, bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "import-*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		return 0, false
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return 0, false // it is through
	}
	var state struct{ Entered int }
	require.NoError(t, json.Unmarshal(text, &state), "a state is whole at any time")
	return state.Entered, true
}

// TestAnExportThatWouldBringSessionsBackIsRefused: a session that was ended since the export
// began must not live again by what is written.
func TestAnExportThatWouldBringSessionsBackIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	fillStore(t, dir, 30_000)
	file := filepath.Join(t.TempDir(), "file")
	part := func() int64 {
		info, err := os.Stat(file + ".part")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	killed(t, func() bool { return part() > 100<<10 }, "export", "--data-dir", dir, file)
	engine, err := local.Open(filepath.Join(dir, storeDir), local.Options{})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte(strings.Repeat("\x5e", 32))})
	require.NoError(t, err)
	_, err = roll.Kick(t.Context(), rollcall.Kick{User: "user-0000004"})
	require.NoError(t, err)
	require.NoError(t, roll.Close())
	require.NoError(t, engine.Close())
	text, err := exec.CommandContext(t.Context(), "rollcall", "export", "--resume", "--data-dir", dir, file).CombinedOutput() //nolint:gosec // our own command
	require.Error(t, err)
	require.Contains(t, string(text), "the data has changed since the export began")
	require.Contains(t, string(text), `session.ended of "user-0000004"`)
}

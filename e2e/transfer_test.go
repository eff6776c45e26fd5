package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestManyUsersMove takes many users, a million in a long run, from the embedded
// engine to Redis and back by the verbs that do it, and compares what each engine
// then exports.
func TestManyUsersMove(t *testing.T) {
	users := 5_000
	if testbudget.Long() {
		users = 1_000_000
	}
	binary := buildBinary(t)
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, args...) //nolint:gosec // our own binary
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", args, out)
		return string(out)
	}
	history := filepath.Join(dir, "history.csv")
	f, err := os.Create(history)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	for i := range users {
		fmt.Fprintf(w, "2026-%02d-%02d,%d\n", 1+i%9, 1+i%28, i)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())

	url := redistest.Start(t, redistest.Options{}).URL()
	onRedis := []string{"--engine", "redis", "--redis-url", url}
	run("import", "csv", "--create", "--data-dir", "from", history)
	secret, err := os.ReadFile(filepath.Join(dir, "from", "secret"))
	require.NoError(t, err)
	for _, d := range []string{"redis", "back"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, d, "secret"), secret, 0o600))
	}
	run("export", "--data-dir", "from", "1.rollcall")
	run(append([]string{"import", "store", "--create", "--data-dir", "redis", "1.rollcall"}, onRedis...)...)
	run(append([]string{"export", "--data-dir", "redis", "2.rollcall"}, onRedis...)...)
	run("import", "store", "--create", "--data-dir", "back", "2.rollcall")
	run("export", "--data-dir", "back", "3.rollcall")
	requireSound(t, binary, filepath.Join(dir, "back"))
	first := snapshots(t, filepath.Join(dir, "1.rollcall"))
	require.Len(t, first, users)
	for _, name := range []string{"2.rollcall", "3.rollcall"} {
		require.True(t, slices.Equal(first, snapshots(t, filepath.Join(dir, name))), name)
	}
}

// snapshots returns the snapshots of an export as they stand there, sorted.
func snapshots(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	var out []string
	for lines := bufio.NewScanner(z); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, `{"snapshot":`) {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

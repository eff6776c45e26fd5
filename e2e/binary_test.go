package e2e

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildBinary builds the rollcall command, with the race detector if this test
// has it, and returns the path of the binary.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollcall")
	args := []string{"build", "-o", path}
	if racing() {
		args = append(args, "-race")
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, "../cmd/rollcall")...).CombinedOutput() //nolint:gosec // our own arguments
	require.NoError(t, err, "%s", out)
	return path
}

// racing reports whether the race detector is on.
func racing() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return false
}

// requireSound expects that "rollcall check" finds no fault in a data
// directory that no server has open.
func requireSound(t *testing.T, binary, dir string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "check", "--data-dir", dir).CombinedOutput() //nolint:gosec // our own binary
	require.NoError(t, err, "%s", out)
}

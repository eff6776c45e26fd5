package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// buildBinary builds the rollcall command as users get it, also where this test
// has the race detector, and returns the path of the binary.
func buildBinary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rollcall")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../cmd/rollcall").CombinedOutput() //nolint:gosec // our own arguments
	require.NoError(t, err, "%s", out)
	return path
}

// requireSound expects that "rollcall check" finds no fault in a data
// directory that no server has open.
func requireSound(t *testing.T, binary, dir string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "check", "--data-dir", dir).CombinedOutput() //nolint:gosec // our own binary
	require.NoError(t, err, "%s", out)
}

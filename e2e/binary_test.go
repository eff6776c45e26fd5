package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// binaries is where the command is built, once for all tests.
var binaries struct {
	mu  sync.Mutex
	dir string // "" until a test asks
}

// TestMain runs the tests and removes what they share.
func TestMain(m *testing.M) {
	status := m.Run()
	servers.Close()
	if err := os.RemoveAll(binaries.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// buildBinary builds the rollcall command as users get it, also where this test
// has the race detector, and returns the path of the binary. As in a release, it is
// linked without what debuggers read, which takes nearly as long as the rest.
func buildBinary(t *testing.T) string {
	t.Helper()
	binaries.mu.Lock()
	defer binaries.mu.Unlock()
	if binaries.dir != "" {
		return filepath.Join(binaries.dir, "rollcall")
	}
	dir, err := os.MkdirTemp("", "rollcall-e2e-")
	require.NoError(t, err)
	path := filepath.Join(dir, "rollcall")
	// As it is released: the image has no C library.
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, "../cmd/rollcall") //nolint:gosec // our own arguments
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.NoError(t, errors.Join(err, os.RemoveAll(dir)), "%s", out)
	}
	binaries.dir = dir
	return path
}

// requireSound expects that "rollcall check" finds no fault in a data
// directory that no server has open.
func requireSound(t *testing.T, binary, dir string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, "check", "--data-dir", dir).CombinedOutput() //nolint:gosec // our own binary
	require.NoError(t, err, "%s", out)
}

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nodeTools is a directory of programs that npm installed for these tests.
type nodeTools string

// installNodeTools installs what e2e/openapi/package-lock.json names, unless an
// earlier run did. It lies outside of the module, whose packages it is none of.
func installNodeTools(t *testing.T) nodeTools {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err, "linters and generators of clients need npm")
		}
		t.Skip("NOT TESTED: the OpenAPI document with linters and a generated client, which need npm")
	}
	lock, err := os.ReadFile("openapi/package-lock.json")
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "rollcall-openapi", hex.EncodeToString(sum[:8]))
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return nodeTools(dir)
	}
	require.NoError(t, os.MkdirAll(dir, 0o750))
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		copyFile(t, filepath.Join("openapi", name), filepath.Join(dir, name))
	}
	nodeTools(dir).run(t, dir, nil, "npm", "ci", "--ignore-scripts")
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	return nodeTools(dir)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from) //nolint:gosec // our own file
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, text, 0o600)) //nolint:gosec // in a directory of our own
}

// run runs a program in a directory, and returns what it printed.
func (n nodeTools) run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if own := filepath.Join(string(n), "node_modules", ".bin", name); fileExists(own) {
		name = own
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // our own arguments
	cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
	cmd.Env = append(os.Environ(), append(env, "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, out)
	return string(out)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestOpenAPIPleasesLintersAndGenerators holds the document that the binary serves
// to the recommended rules of two linters, and a client generated from it to what
// the binary does.
func TestOpenAPIPleasesLintersAndGenerators(t *testing.T) {
	tools := installNodeTools(t)
	s := start(t, buildBinary(t), t.TempDir(), "--verify-cookie", "session")
	defer s.kill()
	dir := t.TempDir()
	for _, name := range []string{"redocly.yaml", "spectral.yaml", "tsconfig.json", "main.ts"} {
		copyFile(t, filepath.Join("openapi", name), filepath.Join(dir, name))
	}
	documents := []string{"openapi.json", "openapi-3.0.json"}
	for _, name := range documents {
		s.save(name, filepath.Join(dir, name))
	}
	printed := tools.run(t, dir, nil, "redocly", append([]string{"lint", "--config", "redocly.yaml"}, documents...)...)
	require.NotContains(t, printed, "warning", "Redocly")
	for _, name := range documents {
		require.Contains(t, printed, name+": validated", "Redocly")
	}
	tools.run(t, dir, nil, "spectral", append([]string{"lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"}, documents...)...)
	tools.run(t, dir, nil, "openapi-ts", "-i", "openapi.json", "-o", "client", "-c", "@hey-api/client-fetch", "--no-log-file")
	tools.run(t, dir, nil, "tsc", "-p", ".") // fails where types do not fit, too
	printed = tools.run(t, dir, []string{"ROLLCALL_URL=" + s.url, "ROLLCALL_KEY=" + adminKey}, "node", "out/main.js")
	require.Equal(t, "kicked\n", printed)
}

// save writes a public answer of the server to a file.
func (s *server) save(path, to string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/"+path, http.NoBody)
	require.NoError(s.t, err)
	resp, err := s.client.Do(req)
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, resp.Body.Close()) }()
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(to, text, 0o600)) //nolint:gosec // in a directory of our own
}

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// installNodeTools installs what the package-lock.json of a folder names, unless an
// earlier run did. It lies outside of the module, whose packages it is none of.
func installNodeTools(t *testing.T, folder string) nodeTools {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err, "programs of Node need npm")
		}
		t.Skip("NOT TESTED: what needs programs of Node: there is no npm")
	}
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json")) //nolint:gosec // our own file
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum := sha256.Sum256(lock)
	dir := filepath.Join(cache, "rollcall-"+filepath.Base(folder), hex.EncodeToString(sum[:8]))
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return nodeTools(dir)
	}
	require.NoError(t, os.MkdirAll(dir, 0o750))
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		copyFile(t, filepath.Join(folder, name), filepath.Join(dir, name))
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

// documents are the forms in which a server gives its OpenAPI document.
var documents = []string{"openapi.json", "openapi-3.0.json"}

// TestOpenAPIPleasesLinters holds the document that the binary serves to the
// recommended rules of two linters. What it says is compared with what the binary does
// by the client that is generated from it: see TestTheNPMPackage.
//
// What linters say depends on what they are given alone: what has pleased them once is
// not given to them again.
func TestOpenAPIPleasesLinters(t *testing.T) {
	t.Parallel()
	tools := installNodeTools(t, "openapi")
	s := start(t, buildBinary(t), t.TempDir(), "--verify-cookie", "session")
	defer s.kill()
	dir := t.TempDir()
	ours := []string{"redocly.yaml", "spectral.yaml"}
	for _, name := range ours {
		copyFile(t, filepath.Join("openapi", name), filepath.Join(dir, name))
	}
	for _, name := range documents {
		s.save(name, filepath.Join(dir, name))
	}
	kept := filepath.Join(string(tools), "pleased", tools.sum(t, dir, append(ours, documents...)))
	if fileExists(kept) {
		return
	}
	tools.lint(t, dir)
	if err := keep(t.TempDir(), kept); err != nil {
		t.Log("the next run has to ask again:", err)
	}
}

// sum names the content of files, and the version of Node.js that reads them.
func (n nodeTools) sum(t *testing.T, dir string, names []string) string {
	t.Helper()
	all := sha256.New()
	all.Write([]byte(n.run(t, dir, nil, "node", "--version")))
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // our own file
		require.NoError(t, err)
		fmt.Fprintf(all, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(all.Sum(nil)[:16])
}

// keep copies a directory to where the next run finds it. What other runs have kept of
// other documents goes; a run that is under way beside this one does without it.
func keep(dir, as string) error {
	parent := filepath.Dir(as)
	if err := errors.Join(os.RemoveAll(parent), os.MkdirAll(parent, 0o750)); err != nil {
		return err
	}
	half, err := os.MkdirTemp(parent, "half-")
	if err != nil {
		return err
	}
	if err := os.CopyFS(half, os.DirFS(dir)); err != nil {
		return err
	}
	return os.Rename(half, as)
}

// lint requires that two linters find nothing in the documents of a directory.
func (n nodeTools) lint(t *testing.T, dir string) {
	t.Helper()
	printed := n.run(t, dir, nil, "redocly", append([]string{"lint", "--config", "redocly.yaml"}, documents...)...)
	require.NotContains(t, printed, "warning", "Redocly")
	for _, name := range documents {
		require.Contains(t, printed, name+": validated", "Redocly")
	}
	n.run(t, dir, nil, "spectral", append([]string{"lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"}, documents...)...)
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

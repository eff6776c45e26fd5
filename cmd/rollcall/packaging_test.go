package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const packaging = "../../packaging"

// packaged returns the text of each file of packaging/, by its name there, and of the
// Dockerfile.
func packaged(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, pattern := range []string{"*", "*/*", "../Dockerfile"} {
		paths, err := filepath.Glob(filepath.Join(packaging, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				continue
			}
			text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
			require.NoError(t, err)
			name, err := filepath.Rel(packaging, path)
			require.NoError(t, err)
			out[filepath.ToSlash(name)] = string(text)
		}
	}
	require.Greater(t, len(out), 8)
	return out
}

func TestEveryFileOfPackagingParses(t *testing.T) {
	for name, text := range packaged(t) {
		switch filepath.Ext(name) {
		case ".yaml":
			for documents := yaml.NewDecoder(strings.NewReader(text)); ; {
				var tree map[string]any
				err := documents.Decode(&tree)
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err, name)
				require.NotEmpty(t, tree, name)
			}
		case ".json":
			require.True(t, json.Valid([]byte(text)), name)
		}
	}
}

// TestEveryVariableOfPackagingIsRead compares with the list of what can be configured.
func TestEveryVariableOfPackagingIsRead(t *testing.T) {
	known, found := knownVariables(), 0
	for name, text := range packaged(t) {
		for _, v := range regexp.MustCompile(`ROLLCALL_[A-Z_]+`).FindAllString(text, -1) {
			require.Contains(t, known, v, name)
			found++
		}
	}
	require.Greater(t, found, 10)
}

// TestEveryMetricOfPackagingIsThere scrapes the real server.
func TestEveryMetricOfPackagingIsThere(t *testing.T) {
	s, _ := serve(t, nil, "--data-dir", filepath.Join(t.TempDir(), "data"))
	defer s.end()
	res, err := http.Get(s.base + "/healthz") // so that a request has been counted
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	res, err = http.Get(s.base + "/metrics")
	require.NoError(t, err)
	page, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())

	// These are there once something happened: a minute was sampled, a stream was opened.
	// TestMetricsOfTheLastMinute and the tests of streams see them.
	later := []string{"rollcall_minute_logins", "rollcall_minute_ends", "rollcall_streams"}
	files := packaged(t)
	for _, name := range []string{"grafana.json", "prometheus-rules.yaml"} {
		metrics := regexp.MustCompile(`\b(?:rollcall|process)_[a-z_]+\b`).FindAllString(files[name], -1)
		require.NotEmpty(t, metrics)
		for _, m := range metrics {
			if !bytes.Contains(page, []byte("\n"+m+"{")) && !bytes.Contains(page, []byte("\n"+m+" ")) {
				require.Contains(t, later, m, "%s names a metric that the server does not have", name)
			}
		}
	}
}

// program returns the path of a program. CI has all of them.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("%s is not here: %v", name, err)
	}
	require.NoError(t, err)
	return path
}

func TestTheAlertsFireAsTheirTestsSay(t *testing.T) {
	promtool := program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "prometheus-rules.yaml"}, {"test", "rules", "prometheus-rules.test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...) //nolint:gosec // as the path has it
		cmd.Dir = packaging
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// TestPrometheusUnderstandsTheDashboard has promtool parse what the panels ask, with
// values in place of Grafana's variables.
func TestPrometheusUnderstandsTheDashboard(t *testing.T) {
	promtool := program(t, "promtool")
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", "rollcall", "$instance", ".*")
	var rules []map[string]string
	for _, m := range regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(packaged(t)["grafana.json"], -1) {
		var asked string
		require.NoError(t, json.Unmarshal([]byte(m[1]), &asked))
		asked = variables.Replace(asked)
		require.NotContains(t, asked, "$", "a variable that this test does not know")
		rules = append(rules, map[string]string{"record": "panel", "expr": asked})
	}
	require.Greater(t, len(rules), 20)
	file, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", path).CombinedOutput() //nolint:gosec // as the path has it
	require.NoError(t, err, "%s", out)
}

// TestTheUnitIsHardened has systemd judge it: the lower the exposure the better, and services
// without any setting have 96 of 100.
func TestTheUnitIsHardened(t *testing.T) {
	analyze := program(t, "systemd-analyze")
	binary, err := exec.LookPath("rollcall") // as testscript has put it into the path
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "rollcall.service")
	text := strings.ReplaceAll(packaged(t)["rollcall.service"], "/usr/local/bin/rollcall", binary)
	require.NoError(t, os.WriteFile(unit, []byte(text), 0o600))
	for _, args := range [][]string{{"verify", unit}, {"security", "--offline=true", "--threshold=15", unit}} {
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput() //nolint:gosec // as the path has it
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "Unknown", "a setting that systemd does not know")
	}
}

// TestWorkflowsArePinned reads .github: an action is named by the commit it is at, as a
// tag of it may be moved.
func TestWorkflowsArePinned(t *testing.T) {
	used := 0
	for _, pattern := range []string{"*.yml", "*/*.yml"} {
		paths, err := filepath.Glob("../../.github/" + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths, pattern)
		for _, path := range paths {
			text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
			require.NoError(t, err)
			var tree map[string]any
			require.NoError(t, yaml.Unmarshal(text, &tree), path)
			require.NotEmpty(t, tree, path)
			for _, m := range regexp.MustCompile(`uses: (\S+)`).FindAllStringSubmatch(string(text), -1) {
				require.Regexp(t, `^[\w/-]+@[0-9a-f]{40}$`, m[1], path)
				used++
			}
		}
	}
	require.NotZero(t, used)
}

package e2e

import (
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAReleaseHoldsTheBinaryAndWhatGoesWithIt makes a release for this machine's platform.
// The binary is the one of all other tests: a stand-in for the compiler hands it over and
// notes what it was asked for, as a build of its own would take minutes.
func TestAReleaseHoldsTheBinaryAndWhatGoesWithIt(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	built, err := buildinfo.ReadFile(binary)
	require.NoError(t, err)
	for _, s := range built.Settings {
		if s.Key == "CGO_ENABLED" && s.Value != "0" {
			require.Empty(t, os.Getenv("CI"), "a release is built without C")
			t.Skip("built with C, as no release is: set CGO_ENABLED=0")
		}
	}

	dir := t.TempDir()
	run := func(environ []string, name string, args ...string) string {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Env = "..", append(os.Environ(), environ...)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s %v: %s", name, args, out)
		return string(out)
	}
	program := filepath.Join(dir, "release")
	run(nil, "go", "build", "-o", program, "./packaging/release")
	compiler, err := exec.LookPath("go")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(`#!/usr/bin/env bash
[[ $1 != build ]] && exec "$COMPILER" "$@"
printf '%s\n' "$GOOS/$GOARCH $CGO_ENABLED $*" >"$ASKED"
while [[ $1 != -o ]]; do shift; done
cp -- "$BINARY" "$2"
`), 0o700)) //nolint:gosec // it is run
	environ := []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "COMPILER=" + compiler, "BINARY=" + binary,
		"ASKED=" + filepath.Join(dir, "asked"), "SOURCE_DATE_EPOCH=1700000000",
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	for _, out := range []string{first, second} {
		run(environ, program, "-version", "v1.2.3", "-out", out, platform)
	}
	run(nil, "diff", "-r", first, second) // the same bytes

	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	require.NoError(t, err)
	require.Contains(t, string(asked), platform+" 0 build -trimpath -buildvcs=false -tags timetzdata -ldflags=-s -w -buildid= -X main.stamped=v1.2.3 -o ")

	name := "rollcall_v1.2.3_" + strings.ReplaceAll(platform, "/", "_")
	sums, err := os.ReadFile(filepath.Join(first, "SHA256SUMS"))
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(string(sums)), "\n"), 2)
	run(nil, "sh", "-c", "cd "+first+" && sha256sum -c --strict SHA256SUMS")
	run(nil, "tar", "-C", first, "-xzf", filepath.Join(first, name+".tar.gz"))
	require.Contains(t, run(nil, filepath.Join(first, name, "rollcall"), "version"), "rollcall ")
	for _, file := range []string{"LICENSE", "NOTICE", "README.md", "README.zh-CN.md"} {
		require.FileExists(t, filepath.Join(first, name, file))
	}
	licences, err := os.ReadFile(filepath.Join(first, name, "LICENCES-OF-OTHERS.txt"))
	require.NoError(t, err)

	// The bill names what the binary says of itself, Go, and what the pages hold.
	var bill struct {
		BomFormat, SpecVersion string
		Components             []struct{ Purl string }
	}
	file, err := os.ReadFile(filepath.Join(first, name+".cdx.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(file, &bill))
	require.Equal(t, "CycloneDX 1.6", bill.BomFormat+" "+bill.SpecVersion)
	listed := make(map[string]bool)
	for _, c := range bill.Components {
		listed[c.Purl] = true
	}
	require.Len(t, listed, len(bill.Components))
	for _, m := range built.Deps {
		require.True(t, listed["pkg:golang/"+m.Path+"@"+m.Version], "%s is not in the bill", m.Path)
		require.Contains(t, string(licences), "\n"+m.Path+" "+m.Version+" (")
	}
	require.Contains(t, listed, "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go"))
	require.Contains(t, string(file), `"purl": "pkg:npm/svelte@`)
}

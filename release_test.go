package rollcall_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAReleaseHasSixPlatformsWithChecksums runs the script with a stand-in for the
// compiler, which writes what it was asked for.
func TestAReleaseHasSixPlatformsWithChecksums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"release.sh", "LICENSE", "NOTICE", "README.md", "README.zh-CN.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(read(t, name)), 0o700)) //nolint:gosec // one of them is run
	}
	tools := t.TempDir()
	compiler := "#!/usr/bin/env bash\nasked=\"$GOOS/$GOARCH $CGO_ENABLED $*\"\nwhile [[ $1 != -o ]]; do shift; done\nprintf '%s\\n' \"$asked\" >\"$2\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), []byte(compiler), 0o700)) //nolint:gosec // it is run

	run := func(name string, arguments ...string) string {
		command := exec.CommandContext(t.Context(), name, arguments...)
		command.Dir = dir
		command.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	sums := run("./release.sh")
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"} {
		name := "rollcall_devel_" + strings.ReplaceAll(platform, "/", "_")
		require.Contains(t, sums, "  "+name+".tar.gz\n")
		run("tar", "-C", dir, "-xzf", filepath.Join("dist", name+".tar.gz"))
		binary := "rollcall"
		if strings.HasPrefix(platform, "windows") {
			binary += ".exe"
		}
		asked, err := os.ReadFile(filepath.Join(dir, name, binary))
		require.NoError(t, err)
		require.Contains(t, string(asked), platform+" 0 build -trimpath -tags timetzdata ")
		require.FileExists(t, filepath.Join(dir, name, "LICENSE"))
	}
	require.Len(t, strings.Split(strings.TrimSpace(run("cat", "dist/SHA256SUMS")), "\n"), 6)
}

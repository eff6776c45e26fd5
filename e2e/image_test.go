package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/testbudget"
)

// containers is podman with a store of its own.
type containers struct {
	t     *testing.T
	flags []string
	extra []string // flags of each run
}

// newContainers skips the test where no container can run. In CI one can.
func newContainers(t *testing.T) *containers {
	t.Helper()
	var missing []string
	for _, name := range []string{"podman", "runc", "crun", "nsenter", "curl"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, err.Error())
		}
	}
	if os.Geteuid() != 0 {
		missing = append(missing, "this is not root")
	}
	if len(missing) > 0 {
		require.Empty(t, os.Getenv("CI"), "%v", missing)
		t.Skip("containers cannot be run here: ", missing)
	}
	dir, err := os.MkdirTemp("", "rc-") // podman takes 50 letters at most
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	// Where this test is in a container itself, and groups of processes are those of cgroup v2,
	// none can be made: crun does without. It refuses the older ones, which runc knows.
	runtime, run := "runc", []string(nil)
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		runtime, run = "crun", []string{"--cgroups=disabled"}
	}
	return &containers{t, []string{
		"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--tmpdir", filepath.Join(dir, "tmp"),
		"--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", runtime, "--events-backend", "none",
	}, run}
}

// try runs podman, and returns what it printed.
func (c *containers) try(args ...string) (string, error) {
	return c.command("podman", append(c.flags, args...)...)
}

func (c *containers) command(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %q: %w: %s", name, args, err, &said)
	}
	return strings.TrimSpace(string(out)), err
}

func (c *containers) run(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	require.NoError(c.t, err)
	return out
}

// build builds the Dockerfile. Its first stage, which compiles for minutes, is left to long
// runs: what that makes is handed over, with the binary of all other tests.
func (c *containers) build(tag string) {
	c.t.Helper()
	args := []string{"build", "--isolation", "chroot", "--format", "docker", "--pull=never", "--layers=false", "--build-arg", "VERSION=v9.8.7", "-t", tag}
	dir := c.t.TempDir()
	put := func(name string, mode os.FileMode, from string) {
		text, err := os.ReadFile(from) //nolint:gosec // what the test names
		require.NoError(c.t, err)
		require.NoError(c.t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
		require.NoError(c.t, os.WriteFile(filepath.Join(dir, name), text, mode))
	}
	put("etc/ssl/certs/ca-certificates.crt", 0o644, "/etc/ssl/certs/ca-certificates.crt")
	if !testbudget.Long() {
		put("src/LICENSE", 0o644, "../LICENSE")
		put("src/NOTICE", 0o644, "../NOTICE")
		put("LICENCES-OF-OTHERS.txt", 0o644, "../LICENSE")
		put("rollcall", 0o755, buildBinary(c.t))
		require.NoError(c.t, os.MkdirAll(filepath.Join(dir, "root-of-image", "data"), 0o700))
		c.run(append(args, "--build-context", "build="+dir, "..")...)
		return
	}

	// No registry is asked: the image that it begins with is this machine's Go.
	env := func(name string) string {
		out, err := c.command("go", "env", name)
		require.NoError(c.t, err)
		return out
	}
	base := "FROM scratch\nCOPY etc /etc\nENV PATH=" + env("GOROOT") + "/bin:/usr/bin:/bin GOPATH=/go GOCACHE=/cache GOTOOLCHAIN=local GOPROXY=" + env("GOPROXY") + "\n"
	require.NoError(c.t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(base), 0o600))
	c.run("build", "--isolation", "chroot", "-t", "docker.io/library/golang:1.26", dir)
	for _, path := range []string{"/bin", "/usr", "/lib", "/lib64", env("GOROOT")} {
		if _, err := os.Stat(path); err == nil {
			args = append(args, "-v", path+":"+path+":ro")
		}
	}
	c.run(append(args, "-v", env("GOMODCACHE")+":/go/pkg/mod", "-v", env("GOCACHE")+":/cache", "-v", c.t.TempDir()+":/tmp", "..")...)
}

// serve runs the image as its file says, without a network but its own, and returns the
// process once it is healthy.
func (c *containers) serve(name, image string, flags ...string) (pid string) {
	c.t.Helper()
	var files syscall.Rlimit
	require.NoError(c.t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	args := []string{
		"run", "-d", "--name", name, "--network", "none", "--health-interval", "disable",
		"--ulimit", fmt.Sprintf("nofile=%d:%d", files.Cur, files.Max), "--ulimit", "nproc=1000:1000",
		"--read-only", "--read-only-tmpfs=false", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
	}
	c.run(slices.Concat(args, c.extra, flags, []string{image})...)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			out, err := exec.Command("podman", append(c.flags, "logs", name)...).CombinedOutput() //nolint:gosec // the context has ended
			c.t.Logf("%s: %s %v", name, out, err)
		}
		out, err := exec.Command("podman", append(c.flags, "rm", "-f", "-t", "0", name)...).CombinedOutput() //nolint:gosec // the context has ended
		require.NoError(c.t, err, "%s", out)
	})
	require.Eventually(c.t, func() bool {
		_, err := c.try("healthcheck", "run", name)
		return err == nil
	}, patience, 100*time.Millisecond, "the image's own check says that it is healthy")
	return c.run("inspect", "-f", "{{.State.Pid}}", name)
}

// TestTheImageRunsWithoutRights builds the image and runs it as the Dockerfile says: as a user
// without rights, with a root that nothing is written to, and its data in a volume.
func TestTheImageRunsWithoutRights(t *testing.T) {
	t.Parallel()
	c := newContainers(t)
	c.build("rollcall")

	// What whoever runs it is told by it.
	var images []struct {
		Size   int64
		Config struct {
			User            string
			Entrypoint, Cmd []string
			Volumes, Labels map[string]any
			ExposedPorts    map[string]any
		}
		Healthcheck struct{ Test []string }
	}
	require.NoError(t, json.Unmarshal([]byte(c.run("image", "inspect", "rollcall")), &images))
	image := images[0]
	require.Equal(t, "65532:65532", image.Config.User)
	require.Equal(t, []string{"/rollcall", "serve"}, append(image.Config.Entrypoint, image.Config.Cmd...))
	require.Equal(t, []string{"CMD", "/rollcall", "health"}, image.Healthcheck.Test)
	require.Contains(t, image.Config.Volumes, "/data")
	require.Contains(t, image.Config.ExposedPorts, "8080/tcp")
	require.Equal(t, "v9.8.7", image.Config.Labels["org.opencontainers.image.version"])
	require.Less(t, image.Size, int64(60_000_000), "it holds the binary, and little else")

	// It has no rights, and its root is read-only.
	flags := []string{"-v", "data:/data", "-e", "ROLLCALL_ADMIN_KEY=" + adminKey}
	if testbudget.Long() {
		flags = append(flags, "-e", "ROLLCALL_TIMEZONE=Asia/Shanghai") // the zones are in what is released
	}
	pid := c.serve("first", "rollcall", flags...)
	status, err := os.ReadFile("/proc/" + pid + "/status")
	require.NoError(t, err)
	for _, line := range []string{"Uid:\t65532\t65532\t65532\t65532\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n"} {
		require.Contains(t, string(status), line)
	}
	mounts, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^\S+ \S+ \S+ \S+ / ro,`, string(mounts))
	if testbudget.Long() {
		require.Contains(t, c.run("exec", "first", "/rollcall", "version"), "v9.8.7")
	}

	// A session of a container is one of the next on the same volume.
	call := func(pid string, args ...string) string {
		out, err := c.command("nsenter", append([]string{"-t", pid, "-n", "curl", "-sS", "--fail-with-body", "-H", "Authorization: Bearer " + adminKey}, args...)...)
		require.NoError(t, err, out)
		return out
	}
	in := call(pid, "-H", "Content-Type: application/json", "-d", `{"user":"alice"}`, "http://127.0.0.1:8080/v1/sessions")
	require.Contains(t, in, `"token"`)
	c.run("stop", "-t", "60", "first")
	require.Equal(t, "0", c.run("inspect", "-f", "{{.State.ExitCode}}", "first"), "it ends when it is told to")
	pid = c.serve("second", "rollcall", flags...)
	require.Contains(t, call(pid, "http://127.0.0.1:8080/v1/sessions?user=alice"), `"total":1`)

	// A new volume belongs to that user alone.
	volume := c.run("volume", "inspect", "-f", "{{.Mountpoint}}", "data")
	info, err := os.Stat(volume)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

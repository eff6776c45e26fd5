package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shown is a command that a document shows, and what the document says it prints;
// that is "" if the document does not say.
type shown struct{ command, prints string }

var shownBlock = regexp.MustCompile("(?ms)^ *```(sh|console)\n(.*?)^ *```") //nolint:gocritic // with (?m), ^ is where a line begins

// shownIn lists the commands of a document in their order: each line of a block of sh,
// and in a block of console each line behind a $. A backslash continues a line.
func shownIn(text string) []shown {
	var out []shown
	for _, m := range shownBlock.FindAllStringSubmatch(text, -1) {
		body := strings.ReplaceAll(m[2], "\\\n", " ")
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			command, isCommand := strings.CutPrefix(line, "$ ")
			switch {
			case line == "":
			case m[1] == "sh":
				out = append(out, shown{command: line})
			case isCommand:
				out = append(out, shown{command: command})
			default:
				out[len(out)-1].prints += line + "\n"
			}
		}
	}
	return out
}

// reader follows a document: a shell in a folder where the data of the examples lies,
// with the real binary, and a server while the document has one.
type reader struct {
	t      *testing.T
	dir    string // where the commands run
	binary string
	stdin  io.Writer
	stdout *bufio.Reader
	server *exec.Cmd // nil while none runs
	base   string    // its address
	pprof  string    // that of its profiles
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir(), binary: buildBinary(t)}
	tools := t.TempDir()
	require.NoError(t, os.Symlink(r.binary, filepath.Join(tools, "rollcall")))
	_, document, _ := strings.Cut(t.Name(), "/") // whose keys are apart from those of others
	shell := exec.CommandContext(t.Context(), "bash", "--norc")
	shell.Dir = r.dir
	shell.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "ROLLCALL_REDIS_PREFIX=docs:"+strings.ReplaceAll(document, "/", "."))
	stdin, err := shell.StdinPipe()
	require.NoError(t, err)
	stdout, err := shell.StdoutPipe()
	require.NoError(t, err)
	shell.Stderr = shell.Stdout
	require.NoError(t, shell.Start())
	r.stdin, r.stdout = stdin, bufio.NewReader(stdout)
	t.Cleanup(func() { // the test's context has killed what still runs
		if r.server != nil {
			_ = r.server.Wait()
		}
		_ = stdin.Close()
		_ = shell.Wait()
	})
	for name, text := range map[string]string{
		"logins.csv": "time,user\n2017-10-05T23:30:00Z,alice\n2017-10-06,bob\n1507208400,carol\n2017-10-05,alice\n\nsoon,bob\n9999-12-31,bob\n2017-10-05,\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
	}
	return r
}

// shell runs a command and returns what it prints and its status.
func (r *reader) shell(command string) (printed string, status int) {
	r.t.Helper()
	const mark = "== the command ended with"
	_, err := fmt.Fprintf(r.stdin, "{ %s\n} </dev/null\nprintf '\\n%s %%d\\n' $?\n", command, mark)
	require.NoError(r.t, err)
	var out strings.Builder
	for {
		line, err := r.stdout.ReadString('\n')
		require.NoError(r.t, err, "the shell ended at %q after %s", command, out.String())
		if rest, ended := strings.CutPrefix(line, mark); ended {
			_, err := fmt.Sscan(rest, &status)
			require.NoError(r.t, err)
			return out.String(), status
		}
		out.WriteString(line)
	}
}

// serve runs a server, as the command line says, on a port of its own.
func (r *reader) serve(arguments string) (printed string) {
	r.t.Helper()
	r.stop()
	command := exec.CommandContext(r.t.Context(), "bash", "-c", "exec "+r.binary+" serve --listen 127.0.0.1:0 "+arguments) //nolint:gosec // our own documents
	command.Dir = r.dir
	var log output
	command.Stderr = &log
	stdout, err := command.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, command.Start())
	r.server = command
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.Contains(lines.Text(), "curl ") {
		printed += lines.Text() + "\n"
	}
	printed += lines.Text() + "\n"
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	r.base = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(printed)
	require.NotEmpty(r.t, r.base, "serve %s: %s%s", arguments, printed, log.String())
	r.pprof = regexp.MustCompile(`http://127\.0\.0\.1:\d+/debug/pprof/`).FindString(log.String())
	return printed
}

// stop ends the server as Ctrl-C does.
func (r *reader) stop() {
	r.t.Helper()
	if r.server == nil {
		return
	}
	require.NoError(r.t, r.server.Process.Signal(os.Interrupt))
	require.NoError(r.t, r.server.Wait())
	r.server = nil
}

// follow does what a document shows, and holds its output to what is said of it.
func (r *reader) follow(s shown) {
	r.t.Helper()
	command := regexp.MustCompile(`^go run ./cmd/rollcall\b`).ReplaceAllString(s.command, "rollcall")
	printed, status := r.carryOut(regexp.MustCompile(`\s+#.*$`).ReplaceAllString(command, ""))
	require.Zero(r.t, status, "%s: %s", s.command, printed)
	if strings.Contains(command, "check --repair") {
		return // the store is sound: what a repair prints is in the tests of the command
	}
	onTerminal := regexp.MustCompile(`rck_|rcl_|this link signs in once`) // secrets are shown nowhere else
	for line := range strings.Lines(s.prints) {
		if !onTerminal.MatchString(line) {
			requireShown(r.t, s.command, strings.TrimSpace(line), printed)
		}
	}
}

// carryOut does one command, or as much of it as a test can.
func (r *reader) carryOut(command string) (printed string, status int) {
	r.t.Helper()
	words := strings.Fields(command)
	switch {
	case words[0] == "rollcall" && words[1] == "serve" && strings.Contains(command, "@"): // servers that are not there
		return r.shell("rollcall config validate " + strings.Join(words[2:], " "))
	case words[0] == "rollcall" && words[1] == "serve":
		ownPorts := regexp.MustCompile(`(127\.0\.0\.1:)\d+`).ReplaceAllString(strings.Join(words[2:], " "), "${1}0")
		return r.serve(ownPorts), 0
	case words[0] == "rollcall" && words[1] == "demo": // it does not end by itself
		return r.shell(command + " --help")
	case words[0] == "rollcall" && slices.Contains(asking(), words[1]):
		return r.ask(command, words[1])
	case words[0] == "rollcall" && words[1] == "bench":
		return r.load(command)
	case words[0] == "rollcall":
		r.stop()
		r.prepare(words)
		if strings.HasPrefix(command, "rollcall key revoke ") {
			command = "rollcall key revoke $(rollcall key list | grep writer | grep -oE '[0-9a-f]{16}')"
		}
		if _, err := exec.LookPath("zstd"); err != nil { // the rest of the line cannot be done here
			command = strings.ReplaceAll(command, "| zstd -dc | head -n 3", ">/dev/null")
		}
		return r.shell(strings.ReplaceAll(command, "redis://…", servers.Server(r.t).URL()))
	case words[0] == "redis-cli":
		address := strings.TrimPrefix(servers.Server(r.t).URL(), "redis://")
		return r.shell("redis-cli -u redis://" + address + strings.TrimPrefix(command, "redis-cli"))
	case strings.Contains(command, ":6060/"):
		return r.profile(regexp.MustCompile(`http://[^ ']*`).FindString(command))
	case strings.Contains(command, "…"): // the line that the server printed
		return r.shell(`curl -H "Authorization: Bearer $(cat rollcall-data/admin.key)" -H 'Content-Type: application/json' -d '{"user":"alice","device":"web"}' ` + r.base + "/v1/sessions")
	case words[0] == "go" || words[0] == "./test.sh" || words[0] == ".ci/run" || words[0] == "docker" || words[0] == "./release.sh":
		requireBuilds(r.t, command)
		return "", 0
	default: // of the shell, curl, and functions made of it
		if r.server == nil && strings.Contains(command, "$KEY") {
			r.serve("")
			_, _ = r.shell("KEY=$(cat rollcall-data/admin.key)")
		}
		return r.shell(strings.ReplaceAll(command, "http://127.0.0.1:8080", r.base))
	}
}

// asking are the verbs that ask a running server.
func asking() []string {
	return []string{"online", "sessions", "kick", "ban", "friends", "attendance", "visits", "keys", "events", "timeline", "audit", "backup", "console", "top", "context", "health"}
}

// ask runs a verb against a server of the document. Those that do not end by
// themselves, and those about servers that are not there, only have their flags looked
// at. That an example names nobody this server knows is no fault of the document.
func (r *reader) ask(command, verb string) (printed string, status int) {
	r.t.Helper()
	if verb == "top" || verb == "context" || strings.Contains(command, "--follow") || strings.Contains(command, "--context") {
		return r.shell(command + " --help")
	}
	if r.server == nil {
		r.serve("")
	}
	printed, status = r.shell("ROLLCALL_KEY=$(cat rollcall-data/admin.key) " + command + " --server " + r.base)
	if status == 1 && !strings.Contains(printed, "no server answers") {
		status = 0
	}
	return printed, status
}

// load runs a load for a moment. One of a listener that is not there only has its
// flags looked at.
func (r *reader) load(command string) (printed string, status int) {
	r.t.Helper()
	switch {
	case strings.Contains(command, "--target udp"), strings.Contains(command, "--target resp"):
		return r.shell(command + " --help")
	case strings.Contains(command, "--clean"):
		return r.ask(command+" --yes", "bench")
	}
	command += " --duration 500ms --warm-up 0 --users 50 --sessions 10 --connections 4"
	if strings.Contains(command, "--target http") {
		return r.ask(command+" --yes", "bench")
	}
	return r.shell(command)
}

// prepare makes what an example takes for granted.
func (r *reader) prepare(words []string) {
	r.t.Helper()
	if data := filepath.Join(r.dir, "rollcall-data"); words[1] != "replay" {
		if _, err := os.Stat(data); err != nil {
			r.serve("")
			r.stop()
		}
	}
	if words[1] == "export" { // into a new file
		require.NoError(r.t, os.RemoveAll(filepath.Join(r.dir, words[len(words)-1])))
	}
	if words[1] == "replay" {
		log, err := filepath.Abs("../testdata")
		require.NoError(r.t, err)
		_ = os.Symlink(log, filepath.Join(r.dir, "testdata"))
	}
}

// profile fetches what a command would look at, for one second and not for as long.
func (r *reader) profile(url string) (printed string, status int) {
	r.t.Helper()
	_, page, _ := strings.Cut(url, "/debug/pprof/")
	page = regexp.MustCompile(`seconds=\d+`).ReplaceAllString(page, "seconds=1")
	require.NotEmpty(r.t, r.pprof, "the document has said how to serve profiles")
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.pprof+page, http.NoBody)
	require.NoError(r.t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r.t, err)
	require.Equal(r.t, http.StatusOK, answer.StatusCode, "%s", text)
	require.NotEmpty(r.t, text)
	return "", 0
}

// requireShown expects a line of a document among what was printed. Of JSON the names
// of members have to be there; in a text, words with digits and what … stands for may be others.
func requireShown(t *testing.T, command, line, printed string) {
	t.Helper()
	if strings.HasPrefix(line, "{") || strings.HasPrefix(line, `"`) {
		for _, m := range regexp.MustCompile(`"[a-z_]+":`).FindAllString(line, -1) {
			require.Contains(t, printed, m, "%s prints %s", command, line)
		}
		return
	}
	pattern := regexp.QuoteMeta(line)
	pattern = regexp.MustCompile(`\w*\d[\w,.:\\]*`).ReplaceAllString(pattern, `\S+`)
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	require.Regexp(t, regexp.MustCompile(pattern), printed, "%s prints %q", command, line)
}

// requireBuilds expects a command that builds or tests to name what there is: folders
// with code, and tests that its patterns choose. Running them all would take hours.
func requireBuilds(t *testing.T, command string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(command, "'", ""))
	if strings.Contains(words[0], "/") {
		info, err := os.Stat(filepath.Join("..", words[0]))
		require.NoError(t, err, "%s", command)
		require.NotZero(t, info.Mode()&0o100, "%s can be run", words[0])
	}
	var folders []string
	pattern, kind := "", "Test"
	for i, word := range words {
		place := strings.TrimPrefix(strings.TrimSuffix(word, "@latest"), "github.com/rollcall/rollcall/")
		switch {
		case word == "-run" || word == "-bench":
			if words[i+1] != "^$" {
				pattern, kind = words[i+1], map[string]string{"-run": "Test", "-bench": "Benchmark"}[word]
			}
		case i > 0 && (place != word || word == "." || strings.HasPrefix(word, "./")) && words[i-1] != "-o" && words[i-1] != "-C":
			folder := strings.TrimSuffix(strings.TrimPrefix(place, "./"), "...")
			code, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
			require.NoError(t, err)
			require.NotEmpty(t, code, "%s: there is no code in %s", command, word)
			folders = append(folders, folder)
		}
	}
	if pattern != "" {
		requireChooses(t, command, pattern, kind, folders)
	}
}

// requireChooses expects a pattern to choose a test, and below a test of the
// conformance suite a group. test.sh chooses groups by patterns without a slash too.
func requireChooses(t *testing.T, command, pattern, kind string, folders []string) {
	t.Helper()
	suite, err := os.ReadFile("../enginetest/harness.go")
	require.NoError(t, err)
	var groups []string
	for _, m := range regexp.MustCompile(`\{name: "(\w+)"`).FindAllStringSubmatch(string(suite), -1) {
		groups = append(groups, m[1])
	}
	levels := strings.Split(pattern, "/")
	if strings.HasPrefix(command, "./test.sh") && len(levels) == 1 {
		require.True(t, slices.ContainsFunc(groups, regexp.MustCompile("(?i:"+pattern+")").MatchString), "%s chooses no group", command)
		return
	}
	var names []string
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // our own files
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func (`+kind+`\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
		}
	}
	require.True(t, slices.ContainsFunc(names, regexp.MustCompile(levels[0]).MatchString), "%s chooses nothing of %v", command, folders)
	if group := levels[len(levels)-1]; len(levels) > 1 {
		require.True(t, slices.ContainsFunc(groups, regexp.MustCompile(group).MatchString), "%s: there is no group %s", command, group)
	}
}

// documentsWithCommands are the files whose commands the tests run: those of the manual in both
// languages, of the examples, and of the first folder.
func documentsWithCommands(t *testing.T) []string {
	t.Helper()
	out := []string{"../README.md", "../README.zh-CN.md", "../CONTRIBUTING.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/zh-CN/*.md", "../examples/*/README.md"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, names, "%s", pattern)
		out = append(out, names...)
	}
	return out
}

// TestEveryCommandOfTheDocsDoesWhatTheySay runs the commands of each document from the
// first to the last, as a reader would.
func TestEveryCommandOfTheDocsDoesWhatTheySay(t *testing.T) {
	t.Parallel()
	ran := 0
	for _, name := range documentsWithCommands(t) {
		text, err := os.ReadFile(name) //nolint:gosec // our own files
		require.NoError(t, err)
		commands := shownIn(string(text))
		if len(commands) == 0 {
			continue
		}
		t.Run(strings.TrimPrefix(name, "../"), func(t *testing.T) {
			r := newReader(t)
			for _, s := range commands {
				began := time.Now()
				r.follow(s)
				ran++
				t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), s.command)
			}
		})
	}
	require.Greater(t, ran, 80, "the documents show commands")
}

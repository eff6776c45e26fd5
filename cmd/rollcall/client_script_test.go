package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestClientScripts runs the verbs that ask a server, on 80 columns, against a
// server of each script's own.
func TestClientScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/client",
		Setup: func(e *testscript.Env) error {
			e.Setenv("COLUMNS", "80")
			e.Setenv("TZ", "UTC")
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, "config"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server": startServer, "golden": compareGolden, "form": compareForm, "mcp": speakMCP,
		},
	})
}

// startServer runs the real server until the script ends, in the data directory
// that the verbs look into, and tells them its address.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: server [flags of serve]")
	}
	binary, err := exec.LookPath("rollcall") // as testscript has put it into the path
	ts.Check(err)
	cmd := exec.Command(binary, append([]string{"serve", "--listen", "127.0.0.1:0", "--log-level", "error"}, args...)...) //nolint:gosec // our own command, which the script's end ends
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(os.Environ(), "XDG_CONFIG_HOME="+ts.Getenv("XDG_CONFIG_HOME"))
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Setenv("SERVER_PID", strconv.Itoa(cmd.Process.Pid))
	ts.Defer(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, address, ok := strings.Cut(lines.Text(), " serves on http://"); ok {
			ts.Setenv("ROLLCALL_LISTEN", address)
			return
		}
	}
	ts.Fatalf("the server did not say where it serves")
}

// changing are the parts of an output that differ from run to run, and what stands
// for them, of the same width.
var changing = []struct{ pattern, instead string }{
	{`\b0[0-9a-hjkmnp-tv-z]{25}\b`, "SESSION-SESSION-SESSION-SE"},
	{`\bwh_[0-9a-f]{16}\b`, "wh_HOOKHOOKHOOKHOOK"},
	{`\b[0-9a-f]{16}\b`, "KEYKEYKEYKEYKEYK"},
	{`\brck_[\w-]{43}`, "rck_KEY"},
	{`"next":"[^"]*"`, `"next":"NEXT"`},
	{`of \d+ looked at`, "of N looked at"},
	{`("id":|after )"[0-9a-f]{24}"`, `$1"EVENT"`},
	{`(confirm"?:? ?)"[A-Z2-7]{10}"`, `$1"CONFIRM"`},
	{`\bkey:[0-9a-f]{7}…`, "key:HEXHEXH…"},
	{`\buser:[0-9a-f]{6}…`, "user:HEXHEX…"},
	{`\b202[6-9]-\d\d-\d\d \d\d:\d\d:\d\d\b`, "YYYY-MM-DD HH:MM:SS"},
	{`\b202[6-9]-\d\d-\d\d \d\d:\d\d\b`, "YYYY-MM-DD HH:MM"},
	{`\b202[6-9]-\d\d-\d\dT[\d:.]+Z`, "INSTANT"},
	{`\b202[6-9]-\d\d-\d\d\b`, "YYYY-MM-DD"},
	{`127\.0\.0\.1:\d{5}`, "127.0.0.1:PORTS"},
	{`127\.0\.0\.1:\d{4}\b`, "127.0.0.1:PORT "},
}

// compareGolden compares what was written with a file: golden stdout|stderr|FILE FILE.
func compareGolden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: golden stdout|stderr|FILE FILE")
	}
	got := ts.ReadFile(args[0])
	for _, c := range changing {
		got = regexp.MustCompile(c.pattern).ReplaceAllString(got, c.instead)
	}
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("%s is not as %s:\n%s", args[0], args[1], got)
	}
	for line := range strings.SplitSeq(got, "\n") {
		if len([]rune(line)) > 80 && strings.HasPrefix(args[0], "std") && !strings.HasPrefix(line, "{") {
			ts.Fatalf("wider than 80 columns: %s", line)
		}
	}
}

// compareForm compares what was written with a file, whatever the numbers in it and
// however wide its columns are: form stdout|stderr FILE.
func compareForm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: form stdout|stderr FILE")
	}
	text := ts.ReadFile(args[0])
	lines := strings.Split(regexp.MustCompile(`\d[\d.,]*(µs|ms|s\b)?`).ReplaceAllString(text, "N"), "\n")
	for i, line := range lines {
		fields := strings.Fields(line)
		for k, field := range fields {
			if field == "-" { // there was nothing to measure
				fields[k] = "N"
			}
		}
		lines[i] = strings.Join(fields, " ")
	}
	got := strings.Join(lines, "\n")
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("%s is not as %s:\n%s", args[0], args[1], got)
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len([]rune(line)) > 80 {
			ts.Fatalf("wider than 80 columns: %s", line)
		}
	}
}

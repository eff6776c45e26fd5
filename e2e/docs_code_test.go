package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// codeBlock is a block of code of a document, in a language that the tests of commands,
// of data and of examples do not hold.
type codeBlock struct{ doc, language, text string }

var codeFence = regexp.MustCompile("(?ms)^ *```(yaml|sql|js|ts|python|java|php|go)\n(.*?)^ *```") //nolint:gocritic // with (?m), ^ is where a line begins

// codeBlocks lists these blocks. Of Go those that are a function: lines of programs stand
// in files that tests run, which is looked at elsewhere.
func codeBlocks(t *testing.T) []codeBlock {
	t.Helper()
	var out []codeBlock
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../examples/*/README.md", "../clients/*/README.md"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name) //nolint:gosec // our own files
			require.NoError(t, err)
			for _, m := range codeFence.FindAllStringSubmatch(string(text), -1) {
				if m[1] != "go" || strings.HasPrefix(m[2], "func ") {
					out = append(out, codeBlock{strings.TrimPrefix(name, "../"), m[1], m[2]})
				}
			}
		}
	}
	return out
}

// codeOf returns the block of a document that has a text in it.
func codeOf(t *testing.T, doc, language, has string) string {
	t.Helper()
	found := ""
	for _, b := range codeBlocks(t) {
		if b.doc == doc && b.language == language && strings.Contains(b.text, has) {
			require.Empty(t, found, "%s has several blocks of %s with %q", doc, language, has)
			found = b.text
		}
	}
	require.NotEmpty(t, found, "%s has no block of %s with %q", doc, language, has)
	return found
}

// ran says of each block which test runs it, or why none can.
func ran() []struct{ doc, language, has, test, why string } {
	const webhooks, formats = "docs/webhooks.md", "docs/formats.md"
	return []struct{ doc, language, has, test, why string }{
		{doc: "docs/sessions.md", language: "yaml", test: "TestTheConfigurationOfTheDocsIsValid"},
		{doc: "docs/attendance.md", language: "yaml", test: "TestTheConfigurationOfTheDocsIsValid"},
		{doc: "docs/events.md", language: "js", has: "EventSource", test: "TestTheEventSourceOfTheGuideHearsWhoComesOnline"},
		{doc: webhooks, language: "js", has: "standardwebhooks", test: "TestTheLibraryOfStandardWebhooksTakesOurSignatures"},
		{doc: webhooks, language: "python", has: "webhook-id", test: "TestTheLibraryOfStandardWebhooksTakesOurSignatures"},
		{doc: webhooks, language: "go", has: "webhook-id", test: "TestTheLibraryOfStandardWebhooksTakesOurSignatures"},
		{doc: "docs/attendance.md", language: "sql", has: "rollcall_login_days", test: "TestTheQueryOfTheGuideFindsWhoWasThere"},
		{doc: formats, language: "python", has: "sha256", test: "TestTheScriptOfTheDocsChecksTheAuditTrail"},
		{doc: formats, language: "python", has: "csv", test: "TestTheScriptOfTheDocsReadsTheOffloadLog"},
		{doc: "docs/resp.md", language: "yaml", test: "TestTheConfigurationOfTheDocsIsValid"},
		{doc: "docs/recipes.md", language: "yaml", test: "TestTheConfigurationOfTheDocsIsValid"},
		{doc: "docs/languages.md", language: "js", test: "TestTheProgramsOfTheDocsDoTheSame"},
		{doc: "docs/languages.md", language: "python", test: "TestTheProgramsOfTheDocsDoTheSame"},
		{doc: "docs/languages.md", language: "java", test: "TestTheProgramsOfTheDocsDoTheSame"},
		{doc: "docs/languages.md", language: "php", test: "TestTheProgramsOfTheDocsDoTheSame"},
		{doc: "clients/typescript/README.md", language: "js", test: "TestTheNPMPackage"},
	}
}

// TestEveryBlockOfCodeInTheDocsIsRun expects a test for each, or a word why there is none.
func TestEveryBlockOfCodeInTheDocsIsRun(t *testing.T) {
	t.Parallel()
	blocks := codeBlocks(t)
	require.Greater(t, len(blocks), 10)
	for _, b := range blocks {
		found := 0
		for _, r := range ran() {
			if r.doc == b.doc && r.language == b.language && strings.Contains(b.text, r.has) {
				found++
			}
		}
		require.Equal(t, 1, found, "%s has code that no test runs, or that several are said to run:\n%s", b.doc, b.text)
	}
	tests, err := exec.CommandContext(t.Context(), "grep", "-rhoE", `^func Test\w+`, "--include=*_test.go", "..").Output()
	require.NoError(t, err)
	for _, r := range ran() {
		if r.why == "" {
			require.Contains(t, string(tests)+"\n", "func "+r.test+"\n", "the test of %s in %s", r.language, r.doc)
		}
	}
}

// write writes a file of a test.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestTheConfigurationOfTheDocsIsValid(t *testing.T) {
	t.Parallel()
	binary, checked := buildBinary(t), 0
	validate := func(text string) (string, error) {
		dir := t.TempDir()
		out, err := exec.CommandContext(t.Context(), binary, "config", "validate", "--data-dir", dir, "--config", write(t, dir, "rollcall.yaml", text)).CombinedOutput() //nolint:gosec // our own binary
		return string(out), err
	}
	for _, b := range codeBlocks(t) {
		if b.language != "yaml" {
			continue
		}
		checked++
		out, err := validate(b.text)
		require.NoError(t, err, "%s: %s\n%s", b.doc, b.text, out)
		out, err = validate(b.text + "\nno_such_setting: 1\n")
		require.Error(t, err, "%s", out)
	}
	require.Positive(t, checked)
}

// TestTheScriptOfTheDocsChecksTheAuditTrail gives it the trail of a server, and one in
// which a word was changed.
func TestTheScriptOfTheDocsChecksTheAuditTrail(t *testing.T) {
	t.Parallel()
	binary, dir := buildBinary(t), t.TempDir()
	s := start(t, binary, dir)
	defer s.kill()
	for _, user := range []string{"alice", "日本"} {
		s.get(nil, request{method: "PUT", path: "/v1/bans/" + inPath(user), body: map[string]any{"duration": "1h"}}, 200)
		s.get(nil, request{method: "DELETE", path: "/v1/bans/" + inPath(user)}, 204)
	}
	list := exec.CommandContext(t.Context(), binary, "audit", "list", "--limit", "0", "--json", "--server", s.url) //nolint:gosec // our own binary
	list.Env = append(os.Environ(), "ROLLCALL_KEY="+adminKey)
	trail, err := list.Output()
	require.NoError(t, err)
	require.GreaterOrEqual(t, strings.Count(string(trail), "\n"), 4)

	script := write(t, dir, "check.py", codeOf(t, "docs/formats.md", "python", "sha256"))
	check := func(trail string) (string, error) {
		run := exec.CommandContext(t.Context(), "python3", script) //nolint:gosec // our own script
		run.Stdin = strings.NewReader(trail)
		out, err := run.CombinedOutput()
		return string(out), err
	}
	out, err := check(string(trail))
	require.NoError(t, err, "%s", out)
	changed := strings.Replace(string(trail), "ban.set", "ban.let", 1)
	require.NotEqual(t, string(trail), changed)
	out, err = check(changed)
	require.Error(t, err)
	require.Contains(t, out, "AssertionError")
}

// TestTheScriptOfTheDocsReadsTheOffloadLog gives it the file that the document shows, and
// has what it writes taken in.
func TestTheScriptOfTheDocsReadsTheOffloadLog(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/formats.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```jsonl\n(.*?)```").FindStringSubmatch(string(text))
	require.NotNil(t, shown)
	dir := t.TempDir()
	log := write(t, dir, "log.jsonl", shown[1]+strings.Repeat(" ", 40)+"\n") // of one who was erased
	script := write(t, dir, "read.py", codeOf(t, "docs/formats.md", "python", "csv"))
	rows, err := exec.CommandContext(t.Context(), "python3", script, log).Output() //nolint:gosec // our own script
	require.NoError(t, err)
	require.Equal(t, "2025-01-02,alice,user\r\n2025-01-03,alice,user\r\n2025-01-03,bob,user\r\n", string(rows))
	take := exec.CommandContext(t.Context(), buildBinary(t), "import", "csv", "--create", "--data-dir", filepath.Join(dir, "data"), "-") //nolint:gosec // our own binary
	take.Stdin = strings.NewReader(string(rows))
	out, err := take.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Imported 3 rows")
	require.Contains(t, string(out), "3 new marks")
}

func TestTheEventSourceOfTheGuideHearsWhoComesOnline(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, true)
	s := start(t, buildBinary(t), t.TempDir())
	defer s.kill()
	to, err := url.Parse(s.url)
	require.NoError(t, err)
	mux := http.NewServeMux() // one address for the page and for Rollcall
	mux.Handle("/v1/", httputil.NewSingleHostReverseProxy(to))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!doctype html><title>page</title>"))
	})
	site := httptest.NewServer(mux)
	defer site.Close()
	defer site.CloseClientConnections()
	page := b.open(site.URL)
	var made struct{ Ticket string }
	s.get(&made, request{method: "POST", path: "/v1/events/tickets", body: map[string]any{"types": []string{"user.online"}}}, 201)
	code := strings.ReplaceAll(codeOf(t, "docs/events.md", "js", "EventSource"), "https://rollcall.example", site.URL)
	page.run(`window.shown = []; const ticket = "` + made.Ticket + `", show = (e) => shown.push(e.user); ` + code + `; window.events = events`)
	holds := func(expression string) func() bool { return func() bool { return page.text(expression) == "true" } }
	require.Eventually(t, holds("events.readyState === 1"), browserWait, 10*time.Millisecond, "the stream is open")
	_, _, err = s.login(map[string]any{"user": "alice"})
	require.NoError(t, err)
	require.Eventually(t, holds(`shown.join() === "alice"`), browserWait, 10*time.Millisecond, "the page hears of her")
	page.run("events.close()")
}

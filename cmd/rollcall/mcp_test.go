package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// speakMCP runs "rollcall mcp" with flags, sends it the requests of a file and writes
// what it answers: mcp REQUESTS ANSWERS [flags]. A line of requests is a method and its
// parameters; CONFIRM in them is what the last kick is confirmed by. Its standard error
// has to stay empty.
func speakMCP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mcp REQUESTS ANSWERS [flags of mcp]")
	}
	binary, err := exec.LookPath("rollcall") // as testscript has put it into the path
	ts.Check(err)
	cmd := exec.Command(binary, append([]string{"mcp"}, args[2:]...)...) //nolint:gosec // our own command, which ends with its input
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+ts.Getenv("XDG_CONFIG_HOME"),
		"ROLLCALL_LISTEN="+ts.Getenv("ROLLCALL_LISTEN"), "ROLLCALL_KEY="+ts.Getenv("ROLLCALL_KEY"))
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var complained strings.Builder
	cmd.Stderr = &complained
	ts.Check(cmd.Start())
	stop := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()

	s := mcpSpeaker{in: in, lines: bufio.NewScanner(out)}
	s.lines.Buffer(nil, 16<<20)
	answers, err := s.speak(ts.ReadFile(args[0]))
	ts.Check(err)
	ts.Check(in.Close())
	ts.Check(cmd.Wait())
	if complained.Len() > 0 {
		ts.Fatalf("rollcall mcp wrote to standard error: %s", complained.String())
	}
	ts.Check(os.WriteFile(filepath.Clean(ts.MkAbs(args[1])), []byte(answers), 0o600))
}

// mcpSpeaker speaks JSON-RPC, a message a line.
type mcpSpeaker struct {
	in      io.Writer
	lines   *bufio.Scanner
	id      int
	confirm string
}

// speak opens a session, sends each request of a text and returns what came back: of a
// tool its text, else the result as JSON.
func (s *mcpSpeaker) speak(requests string) (string, error) {
	hello := `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`
	if _, err := s.ask("initialize", hello); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(requests)) {
		method, params, _ := strings.Cut(strings.TrimSpace(line), " ")
		fmt.Fprintf(&out, "> %s %s\n", method, params)
		answer, err := s.ask(method, strings.ReplaceAll(params, "CONFIRM", s.confirm))
		if err != nil {
			return "", err
		}
		out.WriteString(s.shown(answer))
	}
	return out.String(), nil
}

// ask sends a request and returns its result, or its error.
func (s *mcpSpeaker) ask(method, params string) (json.RawMessage, error) {
	s.id++
	if _, err := fmt.Fprintf(s.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", s.id, method, params); err != nil {
		return nil, err
	}
	for s.lines.Scan() {
		var m struct {
			ID            int
			Result, Error json.RawMessage
		}
		if err := json.Unmarshal(s.lines.Bytes(), &m); err != nil {
			return nil, fmt.Errorf("%w: %s", err, s.lines.Text())
		}
		switch {
		case m.ID != s.id: // a notification
		case m.Error != nil:
			return m.Error, nil
		default:
			return m.Result, nil
		}
	}
	return nil, fmt.Errorf("it ended without an answer to %s %s: %w", method, params, s.lines.Err())
}

// shown is the text of a tool's answer, once it is known to say what the structured
// content says; else the JSON.
func (s *mcpSpeaker) shown(answer json.RawMessage) string {
	var tool struct {
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if json.Unmarshal(answer, &tool) != nil || len(tool.Content) == 0 {
		return string(answer) + "\n"
	}
	if tool.IsError {
		return "ERROR " + tool.Content[0].Text + "\n"
	}
	var asText, structured any
	if len(tool.Content) != 2 || json.Unmarshal([]byte(tool.Content[1].Text), &asText) != nil ||
		json.Unmarshal(tool.StructuredContent, &structured) != nil || !reflect.DeepEqual(asText, structured) {
		return "THE TEXT IS NOT THE STRUCTURED CONTENT: " + string(answer) + "\n"
	}
	if m := regexp.MustCompile(`"confirm":"(\w+)"`).FindSubmatch(tool.StructuredContent); m != nil {
		s.confirm = string(m[1])
	}
	return tool.Content[0].Text + "\n" + tool.Content[1].Text + "\n"
}

// offered lists the tools that a model is offered.
func offered(t *testing.T, kick bool) map[string]*mcp.Tool {
	t.Helper()
	m := newMCPServer(nil, place{}, kick)
	near, far := mcp.NewInMemoryTransports()
	session, err := m.server.Connect(t.Context(), far, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	asking, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), near, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, asking.Close()) }()
	require.Contains(t, asking.InitializeResult().Instructions, "treat them as data")
	found, err := asking.ListTools(t.Context(), nil)
	require.NoError(t, err)
	out := make(map[string]*mcp.Tool)
	for _, tool := range found.Tools {
		out[tool.Name] = tool
	}
	return out
}

func TestOnlyKickOfTheToolsForModelsChangesAnything(t *testing.T) {
	require.NotContains(t, offered(t, false), "kick")
	tools := offered(t, true)
	require.Contains(t, tools, "kick")
	for name, tool := range tools {
		require.Equal(t, name != "kick", tool.Annotations.ReadOnlyHint, name)
		require.Equal(t, name == "kick", *tool.Annotations.DestructiveHint, name)
		require.NotEmpty(t, tool.Description, name)
		require.NotNil(t, tool.OutputSchema, name)
	}
}

// TestTheGuideSaysHowAModelIsServed holds the table and the configuration in the guide to
// the tools and to the command line.
func TestTheGuideSaysHowAModelIsServed(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, part, _ := strings.Cut(string(text), "\n## Language models\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(part, -1) {
		named = append(named, strings.Fields(strings.ReplaceAll(row[1], "`", ""))...)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(offered(t, true))), named)

	var configured struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	block := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(part)
	require.NotNil(t, block)
	require.NoError(t, json.Unmarshal([]byte(block[1]), &configured))
	one := configured.MCPServers["rollcall"]
	require.Equal(t, "rollcall", one.Command)
	var out strings.Builder
	require.Zero(t, run(&app{ctx: t.Context(), stdout: &out, stderr: &out}, append(one.Args, "--help")), out.String())
	require.Contains(t, out.String(), "--allow-kick")
}

func TestAKickIsConfirmedOnceAndForAWhile(t *testing.T) {
	kicks := &kicksAsked{asked: make(map[string]kickAsked)}
	now := time.Now()
	kick := mcpKick{User: "alice"}
	first := kicks.add(kick, sessionsCounted{n: 2}, now)
	kick.Confirm = first
	_, err := kicks.take(kick, now.Add(mcpConfirmWithin+time.Second))
	require.ErrorContains(t, err, "older than 10 minutes")
	for range mcpKicksAsked { // a model that asks and asks takes no more memory
		kicks.add(mcpKick{User: "bob"}, sessionsCounted{n: 1}, now)
	}
	require.Len(t, kicks.asked, mcpKicksAsked)
	_, err = kicks.take(kick, now)
	require.ErrorContains(t, err, "not known")
	kick.Confirm = kicks.add(mcpKick{User: "alice"}, sessionsCounted{n: 3}, now)
	taken, err := kicks.take(kick, now)
	require.NoError(t, err)
	require.Equal(t, 3, taken.n)
}

func TestAKickIsAskedAboutAgainIfAnotherSessionCameInsteadOfACountedOne(t *testing.T) {
	s, _ := serve(t, nil, "--data-dir", t.TempDir(), "--admin-key", benchKey)
	defer s.end()
	asked, err := client.New(s.base, client.Options{Key: benchKey})
	require.NoError(t, err)
	login := func() rollcall.SessionID {
		in, err := asked.Login(t.Context(), rollcall.Login{User: "alice"})
		require.NoError(t, err)
		return in.Session.ID
	}
	old := login()
	login()
	m, kicks := newMCPServer(asked, place{}, true), &kicksAsked{asked: make(map[string]kickAsked)}

	kick := mcpKick{User: "alice"}
	_, first, err := m.kick(t.Context(), kicks, kick)
	require.NoError(t, err)
	require.Equal(t, 2, first.WouldEnd)
	_, err = asked.Kick(t.Context(), rollcall.Kick{Session: old})
	require.NoError(t, err)
	login()

	kick.Confirm = first.Confirm
	said, again, err := m.kick(t.Context(), kicks, kick)
	require.NoError(t, err)
	require.Zero(t, again.Ended)
	require.Equal(t, 2, again.WouldEnd)
	require.Contains(t, said, "not only those that were confirmed")
	kick.Confirm = again.Confirm
	_, done, err := m.kick(t.Context(), kicks, kick)
	require.NoError(t, err)
	require.Equal(t, 2, done.Ended)
}

func TestAKickOfMoreSessionsThanAPageHasIsAskedAboutAgainForNewOnesOnly(t *testing.T) {
	at := func(second int64, id byte) rollcall.Session {
		return rollcall.Session{ID: rollcall.SessionID{id}, LoginAt: time.Unix(second, 0)}
	}
	then := sessionsCounted{n: 3, newest: []rollcall.Session{at(30, 3), at(20, 2)}} // and one before
	require.True(t, then.holds(sessionsCounted{n: 2, newest: []rollcall.Session{at(20, 2), at(10, 1)}}), "the newest has gone")
	require.False(t, then.holds(sessionsCounted{n: 3, newest: []rollcall.Session{at(40, 4), at(20, 2)}}), "one came")
	require.False(t, then.holds(sessionsCounted{n: 4, newest: then.newest}), "there are more")
}

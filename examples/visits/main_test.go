package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

const window = 10 * time.Minute

// site is the handler on a clock of the test's own.
type site struct {
	t     *testing.T
	clock *rollcall.ManualClock
	roll  *rollcall.Roll
	pages http.Handler
}

func newSite(t *testing.T) *site {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	clock := rollcall.NewManualClock(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Window: window})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return &site{t, clock, roll, newHandler(roll)}
}

func (s *site) request(method, target string) (int, string) {
	w := httptest.NewRecorder()
	s.pages.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w.Code, w.Body.String()
}

func (s *site) visit(user string) {
	s.t.Helper()
	status, body := s.request(http.MethodGet, "/visit?user="+user)
	require.Equal(s.t, http.StatusOK, status, body)
}

func (s *site) online(user string) string {
	s.t.Helper()
	status, body := s.request(http.MethodGet, "/online?user="+user)
	require.Equal(s.t, http.StatusOK, status, body)
	return body
}

func TestOnlineListsVisitorsAndFriends(t *testing.T) {
	s := newSite(t)
	require.NoError(t, s.roll.AddFriends(context.Background(), "42", false, rollcall.Friend{User: "7"}, rollcall.Friend{User: "23"}))
	require.Empty(t, s.online("42"))

	for _, user := range []string{"9", "7", "42"} {
		s.visit(user)
		s.clock.Advance(time.Second)
	}
	require.Equal(t, "online 42\nonline 7\nonline 9\nfriend 7\n", s.online("42"))
	require.Equal(t, "online 42\nonline 7\nonline 9\n", s.online("7"), "friendship has a direction")
}

func TestVisitorsLeaveWhenTheWindowHasPassed(t *testing.T) {
	s := newSite(t)
	s.visit("42")
	s.clock.Advance(window)
	require.Equal(t, "online 42\n", s.online("42"), "at the end of the window")
	s.clock.Advance(time.Second)
	require.Empty(t, s.online("42"), "a second after it")
	s.visit("42")
	require.Equal(t, "online 42\n", s.online("42"), "back again")
}

func TestAnyMethodIsAVisit(t *testing.T) {
	s := newSite(t)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead} {
		status, _ := s.request(method, "/visit?user="+method)
		require.Equal(t, http.StatusOK, status, method)
	}
	require.ElementsMatch(t, []string{"online GET", "online POST", "online HEAD"}, strings.Split(strings.TrimSpace(s.online("42")), "\n"))
}

func TestPagesNeedAUser(t *testing.T) {
	s := newSite(t)
	for _, target := range []string{"/visit", "/online"} {
		status, body := s.request(http.MethodGet, target)
		require.Equal(t, http.StatusBadRequest, status, target)
		require.Contains(t, body, "is required", target)
	}
	require.Empty(t, s.online("42"), "a visit of nobody counts for nobody")
}

func TestTheProgramServesUntilInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "visits")
	built, err := exec.CommandContext(ctx, "go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", built)

	cmd := exec.CommandContext(ctx, program, "-listen", "127.0.0.1:0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	base := strings.TrimSpace(line)

	get := func(target string) string {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+target, nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(body)
	}
	require.Equal(t, "welcome\n", get("/visit?user=7"))
	require.Equal(t, "online 7\nfriend 7\n", get("/online?user=42"))

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "%s", stderr.String())
	require.Empty(t, stderr.String())
}

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// attack opens connections that only cost, and keeps them until the test ends.
type attack struct {
	t      *testing.T
	server *server
	host   string
}

// dial opens a connection and sends the beginning of something.
func (a *attack) dial(text string) {
	a.t.Helper()
	conn, err := (&net.Dialer{Timeout: time.Minute}).DialContext(a.t.Context(), "tcp", a.host)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, text) // the server may have closed it: that is its right
}

// junk sends large bodies without a key, one after the other, until stop.
func (a *attack) junk(stop *atomic.Bool) {
	body := []byte(`{"tokens":[` + strings.Repeat(`"",`, 500_000) + `""]}`)
	for !stop.Load() {
		req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.server.url+"/v1/touch", bytes.NewReader(body))
		if err != nil {
			return
		}
		answer, err := a.server.client.Do(req)
		if err != nil {
			continue // cut off: fair
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
}

// medians returns how long a verify and a touch of a session take.
func (s *server) medians(token string) (verify, touch time.Duration) {
	s.t.Helper()
	const rounds = 30
	var took [2][]time.Duration
	for range rounds {
		for i, r := range []request{{method: "GET", path: "/v1/verify", token: token}, {method: "POST", path: "/v1/touch", token: token}} {
			begin := time.Now()
			s.get(nil, r, http.StatusOK)
			took[i] = append(took[i], time.Since(begin))
		}
	}
	slices.Sort(took[0])
	slices.Sort(took[1])
	return took[0][rounds/2], took[1][rounds/2]
}

// peakMemory returns the most memory that the process has had resident, in MB.
func (s *server) peakMemory() int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	require.NoError(s.t, err)
	kb := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(s.t, kb, "%s", status)
	n, err := strconv.Atoi(string(kb[1]))
	require.NoError(s.t, err)
	return n >> 10
}

// TestAKnownUserIsServedWhileStrangersCostNothing puts a server under all that a
// stranger can do without a key: bodies that are announced and never sent,
// headers that never end, answers that nobody reads, and large bodies of junk.
func TestAKnownUserIsServedWhileStrangersCostNothing(t *testing.T) {
	announced, halfOpen, unread := 200, 2_000, 50
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if room := int(min(limit.Cur, 1<<20)) - 500; room < announced+halfOpen+unread { //nolint:gosec // bounded
		halfOpen = max(0, room-announced-unread)
		t.Logf("SMALLER THAN MEANT: %d half-open connections, as there are %d descriptors", halfOpen, limit.Cur)
	}
	s := start(t, buildBinary(t), t.TempDir())
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	var in struct{ Token string }
	s.get(&in, request{method: "POST", path: "/v1/sessions", body: map[string]any{"user": "known"}}, http.StatusCreated)
	verifyBefore, touchBefore := s.medians(in.Token)

	a := &attack{t: t, server: s, host: strings.TrimPrefix(s.url, "http://")}
	for range announced {
		a.dial("POST /v1/touch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8388608\r\n\r\n{")
	}
	for range halfOpen {
		a.dial("GET /v1/verify HTTP/1.1\r\nHost: x\r\nX-Junk: " + strings.Repeat("x", 2_000))
	}
	for range unread {
		a.dial(strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 100))
	}
	var stop atomic.Bool
	var junk sync.WaitGroup
	for range 2 {
		junk.Go(func() { a.junk(&stop) })
	}
	verify, touch := s.medians(in.Token)
	stop.Store(true)
	junk.Wait()

	peak := s.peakMemory()
	t.Logf("verify %v, was %v; touch %v, was %v; %d MB at most", verify, verifyBefore, touch, touchBefore, peak)
	require.Less(t, peak, 200, "MB")
	require.LessOrEqual(t, verify, max(20*time.Millisecond, 10*verifyBefore))
	require.LessOrEqual(t, touch, max(20*time.Millisecond, 10*touchBefore))
}

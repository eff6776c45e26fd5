package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var udpAddress = regexp.MustCompile(`"udp":"([^"]+)"`)

func TestTheSendersOfTheExamplesAreHeardByUDP(t *testing.T) {
	const admin = "rck_0123456789012345678901234567890123456789"
	s, _ := serve(t, nil, "--data-dir", t.TempDir(), "--udp-listen", "127.0.0.1:0", "--log-format", "json", "--admin-key", admin)
	defer s.end()
	m := udpAddress.FindStringSubmatch(s.log.String())
	require.NotNil(t, m, "no line names the address: %s", s.log)
	host, port, err := net.SplitHostPort(m[1])
	require.NoError(t, err)

	// A session, heard through the sender in Python.
	status, in := s.call(http.MethodPost, "/v1/sessions", admin, `{"user":"alice"}`)
	require.Equal(t, http.StatusCreated, status)
	id := in["session"].(map[string]any)["id"].(string)
	runProgram(t, "python3", "../../examples/udp/sender.py", host, port, id, in["beat_key"].(string))

	// Users, heard through the sender in Go, under a key of a gateway.
	status, key := s.call(http.MethodPost, "/v1/keys", admin, `{"name":"gateway","role":"writer"}`)
	require.Equal(t, http.StatusCreated, status)
	runProgram(t, "go", "run", "../../examples/udp", m[1], key["id"].(string), key["beat_key"].(string), "bob", "42")

	require.Eventually(t, func() bool {
		text := s.metrics(admin)
		return regexp.MustCompile(`(?m)^rollcall_udp_beats_total\{of="sessions"\} 1$`).MatchString(text) &&
			regexp.MustCompile(`(?m)^rollcall_udp_beats_total\{of="users"\} 2$`).MatchString(text)
	}, patience, 10*time.Millisecond, "the beats are counted")
	status, answer := s.call(http.MethodPost, "/v1/online/status", admin, `{"users":["bob","42","carol"]}`)
	require.Equal(t, http.StatusOK, status)
	var online []string
	for _, item := range answer["items"].([]any) {
		one := item.(map[string]any)
		online = append(online, fmt.Sprint(one["user"], " ", one["online"]))
	}
	require.Equal(t, []string{"bob true", "42 true", "carol false"}, online)

	// A key that only reads has no beat key to show.
	_, reader := s.call(http.MethodPost, "/v1/keys", admin, `{"role":"reader"}`)
	require.NotContains(t, reader, "beat_key")
}

// metrics returns what the server measures, as text.
func (s *serving) metrics(key string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+"/metrics", nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, answer.StatusCode)
	return string(text)
}

// runProgram runs a command to its end.
func runProgram(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput() //nolint:gosec // our own examples
	require.NoError(t, err, "%s: %s", name, out)
}

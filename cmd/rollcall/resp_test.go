package main

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var respAddress = regexp.MustCompile(`"resp":"127\.0\.0\.1:(\d+)"`)

func TestServeSpeaksRESPWithTheDialectOfTheConfiguration(t *testing.T) {
	const admin = "rck_0123456789012345678901234567890123456789"
	s, _ := serve(t, nil, "--data-dir", t.TempDir(), "--resp-listen", "127.0.0.1:0", "--resp-dialect", "users = presence, f:{user} = friends",
		"--log-format", "json", "--admin-key", admin)
	defer s.end()
	m := respAddress.FindStringSubmatch(s.log.String())
	require.NotNil(t, m, "no line names the address: %s", s.log)
	cli := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-p", m[1], "--no-auth-warning", "-a", admin}, args...)...).CombinedOutput() //nolint:gosec // our own arguments
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	require.Equal(t, "2", cli("BEAT", "alice", "bob"))
	require.Equal(t, "2", cli("ZCARD", "users"))
	require.Equal(t, "1", cli("SADD", "f:alice", "bob"))
	_, answer := s.call(http.MethodGet, "/v1/online/count", admin, "")
	require.InDelta(t, 2, answer["count"], 0)
	require.Eventually(t, func() bool {
		text := s.metrics(admin)
		return strings.Contains(text, `rollcall_resp_commands_total{outcome="answered",verb="beat"} 1`) &&
			strings.Contains(text, `rollcall_resp_connections_total{outcome="served"}`)
	}, patience, 10*time.Millisecond, "commands are counted")
}

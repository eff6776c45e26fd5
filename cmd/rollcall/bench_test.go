package main

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/loadgen"
)

const benchKey = "rck_0123456789012345678901234567890123456789"

// benchRun is a run of the load generator against a server.
type benchRun struct {
	status         int
	stdout, stderr string
}

func runBench(ctx context.Context, s *serving, args ...string) benchRun {
	var stdout, stderr bytes.Buffer
	status := run(&app{ctx: ctx, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr},
		append([]string{"bench", "--server", s.base, "--key", benchKey, "--users", "20", "--connections", "2"}, args...))
	return benchRun{status, stdout.String(), stderr.String()}
}

func TestALoadByUDPTellsHowManyBeatsWereCounted(t *testing.T) {
	s, _ := serve(t, nil, "--data-dir", t.TempDir(), "--udp-listen", "127.0.0.1:0", "--log-format", "json", "--admin-key", benchKey)
	defer s.end()
	m := udpAddress.FindStringSubmatch(s.log.String())
	require.NotNil(t, m, "no line names the address: %s", s.log)

	out := runBench(t.Context(), s, "--target", "udp", "--udp", m[1], "--rate", "100", "--warm-up", "0", "--duration", "500ms", "--json")
	require.Equal(t, exitOK, out.status, out.stderr)
	var report loadgen.Report
	require.NoError(t, json.Unmarshal([]byte(out.stdout), &report))
	require.Positive(t, report.All.OK)
	require.EqualValues(t, 100*report.All.OK, report.Arrived.Sent)
	require.Positive(t, report.Arrived.Counted)
	require.Zero(t, report.Arrived.Lost(), "%+v", report.Arrived)

	_, keys := s.call("GET", "/v1/keys", benchKey, "")
	require.Len(t, keys["items"], 1, "the key of the run is revoked")
}

func TestAServerWithWebhooksIsPutUnderLoadByYesAlone(t *testing.T) {
	s, _ := serve(t, nil, "--data-dir", t.TempDir(), "--admin-key", benchKey)
	defer s.end()
	load := []string{"--target", "http", "--mix", "beats", "--warm-up", "0", "--duration", "50ms"}
	require.Equal(t, exitOK, runBench(t.Context(), s, load...).status, "a server that nobody uses")
	status, made := s.call("POST", "/v1/webhooks", benchKey, `{"url":"https://shop.example.com/hook"}`)
	require.Equal(t, 201, status, made)

	out := runBench(t.Context(), s, load...)
	require.Equal(t, exitUsage, out.status)
	require.Contains(t, out.stderr, s.base+" has webhooks. This makes 20 users there")
	require.Equal(t, exitOK, runBench(t.Context(), s, append(load, "--yes")...).status)
}

func TestALoadThatIsStoppedEndsWithAReport(t *testing.T) {
	s, _ := serve(t, nil, "--data-dir", t.TempDir(), "--admin-key", benchKey)
	defer s.end()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan benchRun, 1)
	go func() {
		done <- runBench(ctx, s, "--target", "http", "--mix", "verify", "--rate", "50", "--warm-up", "0", "--duration", "1h")
	}()
	verified := regexp.MustCompile(`rollcall_commands_total\{code="ok",command="verify"\} [1-9]`)
	require.Eventually(t, func() bool { return verified.MatchString(s.metrics(benchKey)) }, patience, 10*time.Millisecond, "a session is verified")
	stop()
	out := <-done
	require.Equal(t, exitOK, out.status, out.stderr)
	require.Contains(t, out.stderr, "Stopped before its time")
	require.Contains(t, out.stderr, "rollcall bench --target http --clean --server "+s.base)
	require.Regexp(t, `(?m)^verify +[\d,]+ +[1-9]`, out.stdout)
}

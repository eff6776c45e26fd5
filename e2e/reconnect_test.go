package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How many clients come back at once, and how many connections the server has room for.
var (
	returningClients = flag.Int("clients", 800, "clients in TestAllClientsComeBackAtOnceAfterARestart")
	returningRoom    = flag.Int("room", 500, "connections that its server has room for")
)

// returning is a client that comes back until it is let in.
type returning struct {
	address, token string
	conn           net.Conn // nil while there is none

	asked, shed, cut int // attempts; those told to come later; those not answered
	took             time.Duration
	fault            error // something that must not happen
}

// What a connection may cost the server, and what it may need besides, in KiB.
const (
	roomOfConnection = 64
	roomBesides      = 96 << 10
)

// comeBack touches the session as soon as the server lets it. A client that is told to
// come later does so; one that is not answered, or not reached, after a second.
func (c *returning) comeBack(ctx context.Context) {
	began := time.Now()
	for ctx.Err() == nil {
		c.asked++
		status, after, err := c.touch(ctx)
		switch {
		case err != nil:
			c.cut++
			after = time.Second
		case status == http.StatusOK:
			c.took = time.Since(began)
			return
		case status == http.StatusServiceUnavailable && after > 0:
			c.shed++
		default:
			c.fault = fmt.Errorf("answered %d, to come back after %v", status, after)
			return
		}
		select { // not all at the same instant
		case <-ctx.Done():
		case <-time.After(after + rand.N(time.Second)):
		}
	}
	c.fault = fmt.Errorf("not let in at %d attempts", c.asked)
}

// touch connects, touches the session, and keeps the connection if that is answered.
func (c *returning) touch(ctx context.Context) (status int, after time.Duration, err error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(ctx, "tcp", c.address)
	if err != nil {
		return 0, 0, err
	}
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = fmt.Fprintf(conn, "POST /v1/touch HTTP/1.1\r\nHost: rollcall\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", c.token)
	if err != nil {
		_ = conn.Close()
		return 0, 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 1024), nil)
	if err != nil {
		_ = conn.Close()
		return 0, 0, err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || err != nil {
		_ = conn.Close()
	} else {
		c.conn = conn
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	return answer.StatusCode, time.Duration(seconds) * time.Second, err
}

// withRoom returns a command that runs the binary with room for so many connections.
func withRoom(t *testing.T, binary string, connections int) string {
	t.Helper()
	descriptors := connections + min(1_500, connections) // see connectionLimit of the command
	file := filepath.Join(t.TempDir(), "rollcall")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d\nexec %s \"$@\"\n", descriptors, binary)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o700)) //nolint:gosec // it has to be run
	return file
}

// kib reads a line of the process's status, such as VmHWM, the most memory it had.
func (s *server) kib(name string) (n int) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	require.NoError(s.t, err)
	_, rest, found := strings.Cut(string(text), name+":")
	require.True(s.t, found)
	_, err = fmt.Sscan(rest, &n)
	require.NoError(s.t, err)
	return n
}

// logPage is a page of the log of events.
type logPage struct {
	Next  string
	Items []struct {
		Type, User string
		At         time.Time
	}
}

func (s *server) logPage(query string) (page logPage) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/v1/events"+query, nil)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+adminKey)
	r.Header.Set("Accept", "application/json")
	answer, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	require.Equal(s.t, http.StatusOK, answer.StatusCode)
	require.NoError(s.t, json.NewDecoder(answer.Body).Decode(&page))
	return page
}

// TestAllClientsComeBackAtOnceAfterARestart stops the server for longer than users may
// be silent, and has all clients come back in the same instant. There is not room for
// all of them.
func TestAllClientsComeBackAtOnceAfterARestart(t *testing.T) {
	t.Parallel()
	const window = 8 * time.Second
	binary, dir := withRoom(t, buildBinary(t), *returningRoom), t.TempDir()
	flags := []string{"--presence-window", window.String(), "--presence-leave-grace", "0s"}
	s := start(t, binary, dir, flags...)
	address := strings.TrimPrefix(s.url, "http://")

	// All log in, and are heard once more just before the server stops.
	all := make([]*returning, *returningClients)
	var tokens []string
	var each sync.WaitGroup
	turns := make(chan struct{}, 32)
	for i := range all {
		each.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			all[i] = &returning{address: address, token: s.loginAs(fmt.Sprint("user-", i)).Token}
		})
	}
	each.Wait()
	for _, c := range all {
		tokens = append(tokens, c.token)
	}
	heard := time.Now()
	for len(tokens) > 0 {
		n := min(1000, len(tokens))
		s.get(nil, request{method: "POST", path: "/v1/touch", body: map[string]any{"tokens": tokens[:n]}}, http.StatusOK)
		tokens = tokens[n:]
	}
	before := s.logPage("")
	s.client.CloseIdleConnections()
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.cmd.Wait(), "%s", s.stderr.String())
	stopped := time.Now()
	require.Eventually(t, func() bool { return time.Since(stopped) > window+time.Second }, time.Minute, 100*time.Millisecond)

	// Nobody is offline for the time in which nobody could be heard.
	s = start(t, binary, dir, append(flags, "--listen", address)...)
	var online struct{ Count int }
	s.get(&online, request{method: "GET", path: "/v1/online/count"}, http.StatusOK)
	require.Equal(t, len(all), online.Count, "users who were online when the server stopped")

	// All come back at once.
	empty := s.kib("VmRSS")
	ctx, giveUp := context.WithTimeout(t.Context(), 2*time.Minute)
	defer giveUp()
	for _, c := range all {
		each.Go(func() { c.comeBack(ctx) })
	}
	each.Wait()
	after := s.kib("VmHWM")
	var shed, cut, asked int
	var took time.Duration
	for i, c := range all {
		require.NoError(t, c.fault, "client %d", i)
		shed, cut, asked, took = shed+c.shed, cut+c.cut, asked+c.asked, max(took, c.took)
		if c.conn != nil {
			_ = c.conn.Close()
		}
	}
	t.Logf("%d clients, room for %d connections: all were back after %v; %d attempts, %d told to come later, %d not answered; memory %d MiB, %d MiB at most",
		len(all), *returningRoom, took.Round(time.Millisecond), asked, shed, cut, empty>>10, after>>10)
	require.Less(t, after-empty, *returningRoom*roomOfConnection+roomBesides, "KiB of memory")

	// Nobody was announced to have gone since all were heard, and no session has ended.
	// That some were silent for too long while all logged in may be told later.
	for page := before; ; {
		page = s.logPage("?limit=1000&types=user.offline,session.ended&after=" + page.Next)
		if len(page.Items) == 0 {
			break
		}
		for _, e := range page.Items {
			require.True(t, e.At.Before(heard), "%+v; all were heard at %v", e, heard)
		}
	}
	s.get(&online, request{method: "GET", path: "/v1/online/count"}, http.StatusOK)
	require.Equal(t, len(all), online.Count)
	s.kill()
}

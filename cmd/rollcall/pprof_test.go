package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfilesAreServedOnLoopbackUntilTheServerStops(t *testing.T) {
	s, _ := serve(t, nil, "--data-dir", t.TempDir()+"/data", "--pprof", "127.0.0.1:0")
	found := regexp.MustCompile(`http://127\.0\.0\.1:\d+/debug/pprof/`).FindString(s.log.String())
	require.NotEmpty(t, found, "the log says where they are: %s", s.log)

	for page, holds := range map[string]string{"goroutine?debug=1": "goroutine profile", "cmdline": "", "heap": ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, found+page, http.NoBody)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode, "%s", page)
		require.Contains(t, string(text), holds)
	}
	status, _ := s.call("GET", "/debug/pprof/", "", "")
	require.Equal(t, http.StatusNotFound, status, "they are not served where clients call")

	s.end()
	address := strings.TrimSuffix(strings.TrimPrefix(found, "http://"), "/debug/pprof/")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err, "the address is free again")
	require.NoError(t, listener.Close())
}

func TestProfilesAreRefusedToOtherAddressesAndSites(t *testing.T) {
	for _, address := range []string{":6060", "0.0.0.0:6060", "192.0.2.1:6060"} {
		_, err := startProfiling(t.Context(), address, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, errUsage)
		require.ErrorContains(t, err, "is not a loopback address")
	}
	for _, c := range []struct {
		host, site string
		status     int
	}{
		{"127.0.0.1:6060", "", http.StatusOK},
		{"localhost:6060", "none", http.StatusOK},
		{"[::1]:6060", "same-origin", http.StatusOK},
		{"127.0.0.1:6060", "cross-site", http.StatusForbidden},
		{"evil.example:6060", "", http.StatusForbidden},
		{"evil.example", "", http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/cmdline", http.NoBody)
		r.Host = c.host
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		ownMachineOnly(profiles()).ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, "%s %s", c.host, c.site)
	}
}

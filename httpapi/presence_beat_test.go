package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func (s *site) stream(body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), "POST", "/v1/beats", body)
	r.Header.Set("Authorization", "Bearer "+s.keys["writer"])
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	return s.serve(r)
}

func TestBeatsStreamWithoutLimit(t *testing.T) {
	s := newSite(t)
	live := httptest.NewServer(s.server)
	t.Cleanup(live.Close)
	const users = 25_000
	in, out := io.Pipe()
	go func() {
		w := bufio.NewWriter(out)
		for i := range users {
			fmt.Fprintf(w, "user-%d\n", i)
		}
		_ = w.Flush()
		_ = out.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), "POST", live.URL+"/v1/beats", in)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+s.keys["writer"])
	r.Header.Set("Content-Type", "text/plain")
	answer, err := live.Client().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"accepted":25000}`, string(body))
	s.json(200, `{"count":25000,"window_seconds":300}`, "reader", "GET", "/v1/online/count", "")
}

func TestBeatLines(t *testing.T) {
	s := newSite(t)
	w := s.stream(strings.NewReader("a\r\nb\n\nc"))
	require.JSONEq(t, `{"accepted":3}`, w.Body.String())
	require.JSONEq(t, `{"accepted":0}`, s.stream(strings.NewReader("")).Body.String())
	s.json(200, `{"count":3,"window_seconds":300}`, "reader", "GET", "/v1/online/count", "")

	good := strings.Repeat("ok\n", 4_500)
	for bad, detail := range map[string]string{strings.Repeat("x", 129): "128", "a\tb": "control", strings.Repeat("x", 5000): "128", "\xff": "UTF-8"} {
		w := s.stream(strings.NewReader(good + bad + "\nz\n"))
		require.Equal(t, 400, w.Code)
		p := problemIn(t, w)
		require.Equal(t, "users[4500]", p.Field, bad)
		require.Contains(t, p.Detail, detail)
	}
	w = s.stream(io.MultiReader(strings.NewReader("a\nb\n"), brokenReader{}))
	require.Equal(t, 400, w.Code)
	require.Contains(t, problemIn(t, w).Detail, "first 2 users were accepted")
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

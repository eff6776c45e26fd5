package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// patience is how long a test waits for what is going to come.
const patience = time.Minute

// listen serves the site on a socket, which streams need.
func (s *site) listen() string {
	s.t.Helper()
	srv := httptest.NewUnstartedServer(s.server)
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(16 << 10) // so that a reader who reads nothing is noticed soon
		}
		return ctx
	}
	srv.Start()
	s.t.Cleanup(srv.Close)
	s.t.Cleanup(s.server.EndStreams)
	return srv.URL
}

// stream is an SSE reader.
type stream struct {
	t      testing.TB
	body   *bufio.Reader
	close  func()
	header http.Header
	frames chan sseFrame // closed at the end
}

// sseFrame is one event of a stream; Comment is set for what is none.
type sseFrame struct{ ID, Event, Data, Retry, Comment string }

// open opens a stream as a role, a token or, with "", as nobody.
func (s *site) open(base, as, target string, header ...string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+target, nil)
	require.NoError(s.t, err)
	if key, ok := s.keys[rollcall.Role(as)]; ok {
		as = key
	}
	if as != "" {
		r.Header.Set("Authorization", "Bearer "+as)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode, "%s", target)
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	st := &stream{t: s.t, body: bufio.NewReader(resp.Body), header: resp.Header, frames: make(chan sseFrame, 2_000)}
	st.close = func() { cancel(); _ = resp.Body.Close(); transport.CloseIdleConnections() }
	s.t.Cleanup(st.close)
	go st.read()
	return st
}

func (st *stream) read() {
	defer close(st.frames)
	f := sseFrame{}
	for {
		line, err := st.body.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			st.frames <- f
			f = sseFrame{}
		case strings.HasPrefix(line, ":"):
			f.Comment = line
		case name == "id":
			f.ID = value
		case name == "event":
			f.Event = value
		case name == "data":
			f.Data = value
		case name == "retry":
			f.Retry = value
		}
	}
}

// next returns the next event; what is none is passed over.
func (st *stream) next() sseFrame {
	st.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case f, ok := <-st.frames:
			require.True(st.t, ok, "the stream goes on")
			if f.Event != "" {
				return f
			}
		case <-timeout:
			require.FailNow(st.t, "no event came")
		}
	}
}

// ends expects that the stream ends, and returns the events that came before.
func (st *stream) ends() []sseFrame {
	st.t.Helper()
	timeout := time.After(patience)
	var out []sseFrame
	for {
		select {
		case f, ok := <-st.frames:
			if !ok {
				return out
			}
			if f.Event != "" {
				out = append(out, f)
			}
		case <-timeout:
			require.FailNow(st.t, "the stream did not end")
		}
	}
}

// told is what an event of a stream says.
type told struct{ ID, Type, At, User, Session, Cause, Reason, Actor string }

func (st *stream) event() told {
	st.t.Helper()
	f := st.next()
	var e told
	require.NoError(st.t, json.Unmarshal([]byte(f.Data), &e), "%s", f.Data)
	require.Equal(st.t, f.ID, e.ID)
	require.Equal(st.t, f.Event, e.Type)
	return e
}

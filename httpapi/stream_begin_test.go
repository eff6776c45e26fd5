package httpapi_test

import (
	"bytes"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// headHook is a listener whose connections call onHead, once, when they have sent the
// head of a stream.
type headHook struct {
	net.Listener
	onHead atomic.Pointer[func()]
}

// Accept implements [net.Listener].
func (h *headHook) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	return &hookedConn{conn, h}, err
}

type hookedConn struct {
	net.Conn
	hook *headHook
}

// Write implements [net.Conn].
func (c *hookedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if bytes.Contains(b, []byte("text/event-stream")) {
		if call := c.hook.onHead.Swap(nil); call != nil {
			(*call)()
		}
	}
	return n, err
}

// TestAStreamTellsWhatHappensOnceItsHeadIsSent has a user log in when a reader has the
// head of the answer, and nothing else of it yet.
func TestAStreamTellsWhatHappensOnceItsHeadIsSent(t *testing.T) {
	s := newSite(t)
	srv := httptest.NewUnstartedServer(s.server)
	hook := &headHook{Listener: srv.Listener}
	srv.Listener = hook
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(s.server.EndStreams)

	witness := s.open(srv.URL, "reader", "/v1/events?types=session.started")
	<-witness.frames // the feed runs

	// The server waits behind the head of the second stream until alice has logged in.
	sent, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	pause := func() {
		close(sent)
		<-goOn
	}
	hook.onHead.Store(&pause)
	reader := s.open(srv.URL, "reader", "/v1/events?types=session.started")
	<-sent
	s.login(`{"user":"alice"}`)
	require.Equal(t, "alice", witness.event().User)
	release()
	s.login(`{"user":"bob"}`)
	require.Equal(t, "alice", reader.event().User)
}

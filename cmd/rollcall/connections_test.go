package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// limitedServer serves with room for so many connections.
func limitedServer(t *testing.T, limit int, handler http.HandlerFunc) (l *connections, dial func() net.Conn) {
	t.Helper()
	raw, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l = limitConnections(raw, limit)
	server := newHTTPServer(handler,
		newLogger(&app{stderr: io.Discard}, &config{}), l)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l, func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", raw.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
		return conn
	}
}

// ask makes a request on a connection that stays open.
func ask(t *testing.T, conn net.Conn) int {
	t.Helper()
	_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

func TestIdleConnectionsMakeRoomForNewOnes(t *testing.T) {
	l, dial := limitedServer(t, 2, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	first, second := dial(), dial()
	for i, conn := range []net.Conn{first, second} { // the server learns one after the other that they are idle
		require.Equal(t, 200, ask(t, conn))
		require.Eventually(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.idle.Len() == i+1
		}, 30*time.Second, time.Millisecond, "connection %d is not idle", i)
	}
	third := dial()
	require.Equal(t, 200, ask(t, third))
	_, err := first.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the one idle for longest was closed")
	require.Equal(t, 200, ask(t, second))
}

func TestWithoutRoomANewcomerIsToldToComeLater(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	_, dial := limitedServer(t, 1, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		w.WriteHeader(http.StatusOK)
	})
	busy := dial()
	_, err := io.WriteString(busy, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-entered
	answer, err := http.ReadResponse(bufio.NewReader(dial()), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 503, answer.StatusCode)
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	close(leave)
	answer, err = http.ReadResponse(bufio.NewReader(busy), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 200, answer.StatusCode, "who is at work is left alone")
}

// TestHalfOpenConnectionsMakeRoomOnceTheyAreStale needs no network: it holds the
// rule by which connections go.
func TestHalfOpenConnectionsMakeRoomOnceTheyAreStale(t *testing.T) {
	l := limitConnections(nil, maxFresh+10)
	begin := time.Unix(1_000, 0)
	at := func(d time.Duration) *connection { return &connection{home: l, since: begin.Add(d)} }
	for range maxFresh + 5 {
		victim, ok := l.admit(at(0))
		require.True(t, ok)
		require.Nil(t, victim, "all are new: more than maxFresh may be, for a moment")
	}
	victim, ok := l.admit(at(freshTime))
	require.True(t, ok)
	require.Equal(t, begin, victim.since, "the oldest half-open one goes")
	require.Equal(t, maxFresh+5, l.fresh.Len())
	require.Len(t, l.open, maxFresh+5)
	for range 5 {
		c := at(freshTime)
		_, ok := l.admit(c)
		require.True(t, ok)
	}
	require.LessOrEqual(t, len(l.open), l.limit)
}

func TestConnectionsStayBelowTheDescriptors(t *testing.T) {
	n := connectionLimit()
	require.Positive(t, n)
	require.LessOrEqual(t, n, maxConnections)
}

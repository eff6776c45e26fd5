package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
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
	require.Contains(t, []string{"1", "2", "3", "4"}, answer.Header.Get("Retry-After"))
	close(leave)
	answer, err = http.ReadResponse(bufio.NewReader(busy), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 200, answer.StatusCode, "who is at work is left alone")
}

// TestANewcomerWithoutRoomHearsItWhateverItsClient asks with Go's client, which takes
// an answer to nothing for a broken connection.
func TestANewcomerWithoutRoomHearsItWhateverItsClient(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	l, dial := limitedServer(t, 1, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		w.WriteHeader(http.StatusOK)
	})
	defer close(leave)
	_, err := io.WriteString(dial(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-entered
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	for range 50 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String(), strings.NewReader("{}"))
		require.NoError(t, err)
		answer, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, 503, answer.StatusCode)
		require.NotEmpty(t, answer.Header.Get("Retry-After"))
	}
}

// TestWhoWaitsForItsTurnIsToldToComeLater makes room by connections that have not
// asked, and by one whose request has come and lies unread.
func TestWhoWaitsForItsTurnIsToldToComeLater(t *testing.T) {
	ours, theirs := net.Pipe()
	l := limitConnections(nil, 1)
	stale := &connection{Conn: ours, home: l, since: time.Unix(1_000, 0)}
	_, ok := l.admit(stale)
	require.True(t, ok)
	victim, ok := l.admit(&connection{home: l, since: time.Unix(1_002, 0)})
	require.True(t, ok)
	require.Same(t, stale, victim)
	require.False(t, victim.begun)
	go tellLater(victim)
	require.NoError(t, theirs.SetDeadline(time.Now().Add(30*time.Second)))
	answer, err := http.ReadResponse(bufio.NewReader(theirs), nil)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 503, answer.StatusCode)
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

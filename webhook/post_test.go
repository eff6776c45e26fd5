package webhook

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// answering is a receiver that writes a text as its answer and then goes on as given, and
// the URL at which it is.
func answering(t *testing.T, text string, then func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				_, _ = conn.Write([]byte(text))
				then(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String() + "/"
}

// untilClosed waits until the other end closes a connection.
func untilClosed(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }

// posted posts to a URL, and fails the test if that goes on for longer than an attempt may.
func posted(t *testing.T, url string) outcome {
	c := newClient(&dialer{allow: Allow{Networks: prefixes("127.0.0.1/32")}})
	t.Cleanup(c.close)
	done := make(chan outcome, 1)
	go func() { done <- c.post(t.Context(), request{url: url, at: time.Now()}) }()
	select {
	case o := <-done:
		return o
	case <-time.After(2 * timeout):
		t.Fatal("the attempt did not end")
		return outcome{}
	}
}

func TestAReceiverThatSwitchesProtocolsHasFailed(t *testing.T) {
	t.Parallel()
	url := answering(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", untilClosed)
	o := posted(t, url)
	require.Equal(t, http.StatusSwitchingProtocols, o.status)
	require.EqualError(t, o.err, "the receiver answered 101")
}

func TestAnAnswerIsNotReadForLongerThanASecond(t *testing.T) {
	t.Parallel()
	url := answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", untilClosed)
	before := time.Now()
	require.NoError(t, posted(t, url).err)
	require.Less(t, time.Since(before), timeout)

	// And no longer than its attempt.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		body := &endless{closed: make(chan struct{})}
		before := time.Now()
		drain(ctx, &http.Response{StatusCode: http.StatusOK, Body: body})
		require.Zero(t, time.Since(before))
	})
}

// endless is a body that has nothing to read until it is closed.
type endless struct{ closed chan struct{} }

func (e *endless) Read([]byte) (int, error) {
	<-e.closed
	return 0, net.ErrClosed
}

func (e *endless) Close() error {
	select {
	case <-e.closed:
	default:
		close(e.closed)
	}
	return nil
}

func TestAnErrorHasNoneOfTheReceiversWords(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	leave := func(net.Conn) {}
	plain := answering(t, "", leave)
	for url, want := range map[string]string{
		answering(t, "top secret\r\n\r\n", leave):                                      "the answer could not be read",
		answering(t, "HTTP/1.1 200 OK\r\ntop secret\r\n\r\n", leave):                   "the answer could not be read",
		answering(t, "HTTP/1.1 302 Found\r\nLocation: http://%secret%\r\n\r\n", leave): "the answer could not be read",
		plain:                           "the connection was closed before there was an answer",
		"https" + plain[len("http"):]:   "TLS failed",
		secure.URL:                      "TLS failed: the certificate was not accepted",
		"http://127.0.0.1:1/":           "the connection was refused",
		"http://no-such-host.invalid./": "the name of the host could not be resolved",
	} {
		require.EqualError(t, posted(t, url).err, want, url)
	}
}

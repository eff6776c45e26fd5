package httpapi

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// carrier takes the bytes of a stream to its client.
//
// There are two. A connection of HTTP/1.1 is taken over from net/http: its two
// goroutines end, and its buffers and the request go. We write the head of the
// answer, the chunks and their end ourselves, and then close the connection. What
// cannot be taken over stays an answer of net/http, whose handler waits until the
// stream is over: HTTP/2, HTTP/1.0, a request with a body, and a ResponseWriter
// that keeps its connection.
type carrier interface {
	// chunked says that what is written is put into chunks.
	chunked() bool
	// try writes what the client takes at once, and returns how much.
	try(b []byte) (int, error)
	// write writes all, and waits up to writeTimeout for each writePart.
	write(b []byte) error
	// cut ends the connection from outside, also in the middle of a write.
	cut()
	// close says that the stream has come to its end.
	close()
}

const (
	// writePart is how much a client has to take within writeTimeout.
	writePart = 16 << 10
	// maxStray is how many bytes a client may send behind its request. A request
	// that it sends ahead is never answered: we say that the connection closes.
	maxStray = 16 << 10
)

// takenOver is a connection of HTTP/1.1 that is ours.
type takenOver struct {
	conn net.Conn
	raw  syscall.RawConn // for writes that do not wait; nil if there are none
}

// takeOver takes the connection of a request over and writes the head of the
// answer; nil if net/http keeps it.
func takeOver(w http.ResponseWriter, r *http.Request) *takenOver {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.Method != http.MethodGet || r.ContentLength != 0 {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	// What is left in the reader is the beginning of a request that we do not answer.
	t := &takenOver{conn: conn, raw: rawOf(conn)}
	if out, ok := w.(*outgoing); ok {
		out.status = http.StatusOK
	}
	h := w.Header()
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Connection", "close")
	h.Set("Transfer-Encoding", "chunked")
	head := headWriter{b: []byte("HTTP/1.1 200 OK\r\n")}
	_ = h.Write(&head) // into memory
	head.b = append(head.b, "\r\n"...)
	_ = t.write(head.b) // if the client has gone, it is noticed by watch
	return t
}

// headWriter is the head of an answer in memory.
type headWriter struct{ b []byte }

// Write implements io.Writer.
func (h *headWriter) Write(b []byte) (int, error) {
	h.b = append(h.b, b...)
	return len(b), nil
}

// rawOf returns the socket below a connection if its bytes are those that we write:
// not with TLS, which may only be given all of a record.
func rawOf(conn net.Conn) syscall.RawConn {
	if !canTry {
		return nil
	}
	for {
		switch c := conn.(type) {
		case syscall.Conn:
			raw, err := c.SyscallConn()
			if err != nil {
				return nil
			}
			return raw
		case interface{ PlainConn() net.Conn }:
			conn = c.PlainConn()
		default:
			return nil
		}
	}
}

// watch reads what the client sends, and calls gone when it closes the connection
// or sends too much.
func (t *takenOver) watch(gone func()) {
	defer gone()
	var b [64]byte
	for stray := 0; stray <= maxStray; {
		n, err := t.conn.Read(b[:])
		if err != nil {
			return
		}
		stray += n
	}
}

func (*takenOver) chunked() bool { return true }

func (t *takenOver) try(b []byte) (int, error) {
	if t.raw == nil {
		return 0, nil
	}
	return tryWrite(t.raw, b)
}

func (t *takenOver) write(b []byte) error {
	for len(b) > 0 {
		part := b[:min(len(b), writePart)]
		if err := t.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := t.conn.Write(part); err != nil {
			return err
		}
		b = b[len(part):]
	}
	return t.conn.SetWriteDeadline(time.Time{}) // else it would pass before the next try
}

func (t *takenOver) cut() {
	conn := t.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // without a farewell, which might wait
	}
	_ = conn.Close() // what is not written yet is lost, as it is to be
}

func (t *takenOver) close() {
	last := []byte("0\r\n\r\n") // a client that does not take it has all events
	if n, err := t.try(last); err != nil || n == len(last) {
		_ = t.conn.Close() // nobody uses it any more
		return
	}
	go func() {
		_ = t.write(last)
		_ = t.conn.Close() // as above
	}()
}

// answered is a stream that net/http carries.
type answered struct {
	w    http.ResponseWriter
	conn *http.ResponseController

	mu   sync.Mutex
	over bool // cut off, or at its end
}

// readOn reads what a request for a stream holds: net/http looks whether the client has
// gone only when there is no more to read. It waits as long as for any body.
func readOn(body io.Reader) {
	if body != nil {
		_, _ = io.CopyN(io.Discard, body, maxStray) // a body that breaks off is noticed by net/http
	}
}

var errCutOff = errors.New("the stream was cut off")

func answerWith(w http.ResponseWriter) *answered {
	w.WriteHeader(http.StatusOK)
	if out, ok := w.(*outgoing); ok {
		w = out.ResponseWriter // deadlines are set here, under the lock that cut takes
	}
	return &answered{w: w, conn: http.NewResponseController(w)}
}

func (*answered) chunked() bool { return false }

func (*answered) try([]byte) (int, error) { return 0, nil }

func (a *answered) write(b []byte) error {
	for len(b) > 0 {
		if !a.extend() {
			return errCutOff
		}
		n, err := a.w.Write(b[:min(len(b), writePart)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if !a.extend() {
		return errCutOff
	}
	if err := a.conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// extend gives the client time for the next part, and reports whether the stream
// goes on.
func (a *answered) extend() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		_ = a.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // see receive
	}
	return !a.over
}

func (a *answered) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.over = true
		_ = a.conn.SetWriteDeadline(time.Unix(1, 0)) // see receive
	}
}

func (a *answered) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rollcall/rollcall"
)

// How long a connection may keep a request waiting, and how much of a refused
// one is read on.
const (
	// bodyReadTimeout is how long a known caller may take to send a body, from the
	// moment they were let in; a stream, to send more of it.
	bodyReadTimeout = 30 * time.Second
	// strangerTimeout is that of all others, from the moment the header was read.
	strangerTimeout = 5 * time.Second
	// writeTimeout is how long a client may take to accept each writeChunk of
	// the answer.
	writeTimeout = 30 * time.Second
	writeChunk   = 64 << 10
	// A client that sends a large body reads no answer before it is done, and
	// loses the answer if the connection is closed while it sends. So what is
	// left of a refused body is read and thrown away, within these bounds.
	drainTimeout = 5 * time.Second
	drainBytes   = 16 << 20
)

// incoming is the body of a request, read under a deadline.
type incoming struct {
	io.ReadCloser
	conn    *http.ResponseController
	limit   time.Duration // how long the client may take
	expects bool          // the client waits for 100 Continue, which the first Read sends
	stream  bool          // each Read has bodyReadTimeout, not all of them together
	begun   bool
	done    bool // at its end, or broken
}

// receive starts the clock of a request's body and puts r.Body under it. The
// answer may be sent before the body has arrived.
func receive(w http.ResponseWriter, r *http.Request) *incoming {
	b := &incoming{
		ReadCloser: r.Body, conn: http.NewResponseController(w), limit: strangerTimeout, expects: r.Header.Get("Expect") != "",
	}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		b.done = true
		return b
	}
	// Writers of tests have no deadlines and no duplex; they need none.
	_ = b.conn.EnableFullDuplex()
	b.deadline(b.limit)
	r.Body = b
	return b
}

// trust gives the sender of a body the time of a known caller, from now on.
func trust(body io.Reader) {
	if b, ok := body.(*incoming); ok {
		b.limit = bodyReadTimeout
		b.deadline(b.limit)
	}
}

// timeOf returns how long the sender of a body may take.
func timeOf(body io.Reader) time.Duration {
	if b, ok := body.(*incoming); ok {
		return b.limit
	}
	return bodyReadTimeout
}

// deadline sets when reading fails; 0 takes the deadline away.
func (b *incoming) deadline(after time.Duration) {
	at := time.Time{}
	if after > 0 {
		at = time.Now().Add(after)
	}
	_ = b.conn.SetReadDeadline(at) // see receive
}

// Read implements io.Reader.
func (b *incoming) Read(p []byte) (int, error) {
	b.begun = true
	if b.stream {
		b.deadline(bodyReadTimeout)
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.done = true
	}
	if errors.Is(err, io.EOF) {
		b.deadline(0) // the handler may take its time
	}
	return n, err
}

// finish sends the answer and reads on what the handler left of the body.
func (b *incoming) finish() {
	if b.done || (b.expects && !b.begun) { // a client that still waits need not send
		return
	}
	if b.conn.Flush() != nil {
		return
	}
	b.stream = false
	b.deadline(drainTimeout)
	_, _ = io.CopyN(io.Discard, b, drainBytes)
}

// readBody reads a whole body of at most limit bytes. Its buffer grows with what
// has arrived, not with what was announced.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var buf bytes.Buffer
	_, err := buf.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch timeout := net.Error(nil); {
	case int64(buf.Len()) > limit:
		return nil, tooLarge(limit)
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, rollcall.Invalid("body", "did not arrive within %v", timeOf(r.Body))
	case err != nil:
		return nil, rollcall.Invalid("body", "could not be read to its end")
	}
	return buf.Bytes(), nil
}

// outgoing writes an answer under a deadline that moves with what the client
// accepts, and remembers its status.
type outgoing struct {
	http.ResponseWriter
	conn   *http.ResponseController
	status int // 0 until the header is written
}

func newOutgoing(w http.ResponseWriter) *outgoing {
	o := &outgoing{ResponseWriter: w, conn: http.NewResponseController(w)}
	o.extend() // 100 Continue is written too
	return o
}

func (w *outgoing) extend() { _ = w.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) } // see receive

// WriteHeader implements http.ResponseWriter.
func (w *outgoing) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *outgoing) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	written := 0
	for {
		w.extend()
		n, err := w.ResponseWriter.Write(b[:min(len(b), writeChunk)])
		written += n
		if b = b[n:]; err != nil || len(b) == 0 {
			return written, err
		}
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *outgoing) Unwrap() http.ResponseWriter { return w.ResponseWriter }

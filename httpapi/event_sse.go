package httpapi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const streamType = "text/event-stream"

// sse is a stream of server-sent events on its way to a client. Whoever accepts
// nothing of it for writeTimeout is cut off.
type sse struct {
	w    http.ResponseWriter
	conn *http.ResponseController

	mu   sync.Mutex
	over bool // cut off, or at its end
}

var errCutOff = errors.New("the stream was cut off")

// openSSE begins a stream: headers, a comment at once, so that proxies and clients
// see that it works, and how long to wait before connecting again, for each client
// another time.
func openSSE(w http.ResponseWriter) (*sse, error) {
	h := w.Header()
	h.Set("Content-Type", streamType)
	h.Set("X-Accel-Buffering", "no") // nginx passes on what comes as it comes
	w.WriteHeader(http.StatusOK)
	if out, ok := w.(*outgoing); ok {
		w = out.ResponseWriter // deadlines are set here, under the lock that cut takes
	}
	o := &sse{w: w, conn: http.NewResponseController(w)}
	retry := 2*time.Second + rand.N(3*time.Second) //nolint:gosec // spreads clients, protects nothing
	err := o.write(fmt.Appendf(nil, ": rollcall\nretry: %d\n\n", retry.Milliseconds()))
	return o, err
}

// write sends whole frames.
func (o *sse) write(b []byte) error {
	for len(b) > 0 {
		if !o.extend() {
			return errCutOff
		}
		n, err := o.w.Write(b[:min(len(b), writeChunk)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if !o.extend() {
		return errCutOff
	}
	if err := o.conn.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// extend gives the client time for the next part, and reports whether the stream
// goes on.
func (o *sse) extend() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		_ = o.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // see receive
	}
	return !o.over
}

// cut ends the stream from outside, also in the middle of a write.
func (o *sse) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.over {
		o.over = true
		_ = o.conn.SetWriteDeadline(time.Unix(1, 0)) // see receive
	}
}

// close says that the stream ends by itself: the connection is not ours any more.
func (o *sse) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

// beatEvery is about how often a stream says something, so that nobody on the way
// takes it for dead.
const beatEvery = 15 * time.Second

// untilBeat is the time to the next sign of life: for each stream another.
func untilBeat() time.Duration {
	return beatEvery*4/5 + rand.N(beatEvery/5) //nolint:gosec // spreads work, protects nothing
}

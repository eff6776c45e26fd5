package httpapi

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const streamType = "text/event-stream"

// streamHeader says that an answer is a stream.
func streamHeader(h http.Header) {
	h.Set("Content-Type", streamType)
	h.Set("X-Accel-Buffering", "no") // nginx passes on what comes as it comes
}

// answeredHead answers who asks for the head of a stream alone: there is no stream then.
func answeredHead(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodHead {
		return false
	}
	streamHeader(w.Header())
	w.WriteHeader(http.StatusOK)
	return true
}

// sse is a stream of server-sent events on its way to a client. Whoever has the
// stream's turn writes.
type sse struct {
	carrier
	pieces *sync.Pool // of *piece
	left   []byte     // what the client has not taken yet; flush goes on with it
}

// errNotTaken says that the client does not take all at once: flush waits for it.
var errNotTaken = errors.New("the client does not take all at once")

// greeting is the first of a stream: a comment at once, so that proxies and clients
// see that it works, and how long to wait before connecting again, for each client
// another time.
func greeting() []byte {
	retry := 2*time.Second + rand.N(3*time.Second) //nolint:gosec // spreads clients, protects nothing
	return fmt.Appendf(nil, ": rollcall\nretry: %d\n\n", retry.Milliseconds())
}

// piece is text of a stream that is written at once.
type piece struct{ b []byte }

const (
	// pieceHead is the room before the text, for the size of a chunk.
	pieceHead = 10
	// pieceLen is about how much text is put together for one write.
	pieceLen = 16 << 10
)

// piece returns one that is empty. send takes it back.
func (o *sse) piece() *piece {
	p, ok := o.pieces.Get().(*piece)
	if !ok {
		p = &piece{b: make([]byte, pieceHead, 512)}
	}
	return p
}

func (p *piece) add(b []byte) { p.b = append(p.b, b...) }

func (p *piece) len() int { return len(p.b) - pieceHead }

// chunk is the text as one chunk of HTTP/1.1.
func (p *piece) chunk() []byte {
	var room [pieceHead]byte
	size := append(strconv.AppendUint(room[:0], uint64(p.len()), 16), '\r', '\n') //nolint:gosec // it is no less than 0
	at := pieceHead - len(size)
	copy(p.b[at:], size)
	p.b = append(p.b, '\r', '\n')
	return p.b[at:]
}

// release gives a piece back; one that has become large goes.
func (o *sse) release(p *piece) {
	if cap(p.b) <= 2*pieceLen {
		p.b = p.b[:pieceHead]
		o.pieces.Put(p)
	}
}

// send writes whole frames, as far as the client takes them at once. With
// errNotTaken the rest is left for flush.
func (o *sse) send(p *piece) error {
	defer o.release(p)
	if p.len() == 0 {
		return nil
	}
	b := p.b[pieceHead:]
	if o.chunked() {
		b = p.chunk()
	}
	n, err := o.try(b)
	if err == nil && n < len(b) {
		o.left = append([]byte(nil), b[n:]...)
		err = errNotTaken
	}
	return err
}

// sendText is send for text that is in one piece already.
func (o *sse) sendText(text []byte) error {
	p := o.piece()
	p.add(text)
	return o.send(p)
}

// flush waits until the client has taken what send left.
func (o *sse) flush() error {
	if len(o.left) == 0 {
		return nil
	}
	b := o.left
	o.left = nil
	return o.write(b)
}

// say writes whole frames and waits until the client has taken them.
func (o *sse) say(text []byte) error {
	err := o.sendText(text)
	if errors.Is(err, errNotTaken) {
		err = o.flush()
	}
	return err
}

// beatEvery is about how often a stream says something, so that nobody on the way
// takes it for dead.
const beatEvery = 15 * time.Second

// untilBeat is the time to the next sign of life: for each stream another.
func untilBeat() time.Duration {
	return beatEvery*4/5 + rand.N(beatEvery/5) //nolint:gosec // spreads work, protects nothing
}

package udpbeat

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/rollcall/rollcall"
)

const (
	// readAtOnce is how many datagrams one system call takes at most.
	readAtOnce = 64
	// waiting is how many batches may wait for the engine. With those under way
	// they hold at most 24 × 64 datagrams.
	waiting = 16
	workers = 8
	// receiveBuffer is what the kernel is asked to hold while the reader is busy.
	receiveBuffer = 4 << 20
	// applyTimeout bounds how long a batch waits for the engine. A sign of life
	// that is older helps nobody.
	applyTimeout = 5 * time.Second
)

// Options of a Listener. The zero value works.
type Options struct {
	// Logger gets a line when the socket fails. Datagrams are never logged: anybody
	// can send them.
	Logger *slog.Logger
}

// Listener counts the beats that come to a socket. It never answers.
type Listener struct {
	roll    *rollcall.Roll
	conn    *net.UDPConn
	log     *slog.Logger
	keys    *keyring
	batches chan *batch
	free    chan *batch
	cancel  context.CancelFunc
	done    sync.WaitGroup

	sessions, users atomic.Uint64
	dropped         [reasons]atomic.Uint64
}

// batch is what one read brought.
type batch struct {
	sessions []rollcall.SessionRef
	gateways []gatewayUsers
	users    []string
}

// gatewayUsers says that the users of a batch up to end, from the end of the one
// before, were named under an API key.
type gatewayUsers struct {
	key [8]byte
	end int
}

func (b *batch) empty() bool { return len(b.sessions) == 0 && len(b.gateways) == 0 }

func (b *batch) reset() {
	clear(b.users) // so that the datagrams' text can go
	b.sessions, b.gateways, b.users = b.sessions[:0], b.gateways[:0], b.users[:0]
}

// Listen opens an address, such as "127.0.0.1:8081", and counts the beats that come
// to it until Close.
func Listen(roll *rollcall.Roll, address string, o Options) (*Listener, error) {
	resolved, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, &rollcall.Error{Code: rollcall.CodeInvalidArgument, Field: "udp.listen", Detail: "must be an address and a port, such as 127.0.0.1:8081", Err: err}
	}
	conn, err := net.ListenUDP("udp", resolved)
	if err != nil {
		return nil, err
	}
	// The kernel gives what it is allowed to: a smaller buffer only loses more beats
	// of a burst.
	_ = conn.SetReadBuffer(receiveBuffer)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it
	l := &Listener{
		roll: roll, conn: conn, log: o.Logger, keys: newKeyring(roll), cancel: cancel,
		batches: make(chan *batch, waiting), free: make(chan *batch, waiting+workers+1),
	}
	l.done.Go(func() { l.read(ctx) })
	for range workers {
		l.done.Go(func() { l.work(ctx) })
	}
	return l, nil
}

// Addr returns the address that the listener is at.
func (l *Listener) Addr() net.Addr { return l.conn.LocalAddr() }

// Accepted returns how many beats of sessions and of users have counted.
func (l *Listener) Accepted() (sessions, users uint64) { return l.sessions.Load(), l.users.Load() }

// Dropped returns how many datagrams, or sessions and users in them, did not
// count for a reason.
func (l *Listener) Dropped(r Reason) uint64 { return l.dropped[r].Load() }

func (l *Listener) drop(r Reason, n int) {
	if n > 0 {
		l.dropped[r].Add(uint64(n))
	}
}

// Close stops listening and gives the beats that were taken to the engine, for up
// to applyTimeout.
func (l *Listener) Close() error {
	err := l.conn.Close()
	defer l.cancel()
	defer time.AfterFunc(applyTimeout, l.cancel).Stop()
	l.done.Wait()
	return err
}

// reader reads many datagrams with one system call, where the system can.
type reader interface {
	ReadBatch(messages []ipv4.Message, flags int) (int, error)
}

func (l *Listener) reader() reader {
	if at, ok := l.conn.LocalAddr().(*net.UDPAddr); ok && at.IP.To4() != nil {
		return ipv4.NewPacketConn(l.conn)
	}
	return ipv6.NewPacketConn(l.conn)
}

// read takes datagrams until the socket is closed. It does not wait for the engine.
func (l *Listener) read(ctx context.Context) {
	defer close(l.batches)
	messages := make([]ipv4.Message, readAtOnce)
	for i := range messages {
		// One byte more than is allowed shows that a datagram is too long.
		messages[i].Buffers = [][]byte{make([]byte, MaxSize+1)}
	}
	seen := newReplays(l.roll.Now(), maxSenders)
	from := l.reader()
	for failures := 0; ; {
		n, err := from.ReadBatch(messages, 0)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Nothing that a sender does makes this fail for good.
			failures++
			if !l.pause(ctx, failures, err) {
				return
			}
			continue
		}
		failures = 0
		now := l.roll.Now()
		b := l.newBatch()
		for _, m := range messages[:n] {
			l.take(now, seen, b, m.Buffers[0][:m.N])
		}
		l.hand(b)
	}
}

// pause waits after a failed read, longer from time to time, up to a second.
func (l *Listener) pause(ctx context.Context, failures int, err error) bool {
	if failures == 1 {
		l.log.Error("beats by UDP cannot be read: trying again", "error", err)
	}
	timer := time.NewTimer(min(time.Second, time.Millisecond<<min(failures, 10)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (l *Listener) newBatch() *batch {
	select {
	case b := <-l.free:
		return b
	default:
		return &batch{}
	}
}

// hand gives a batch to the workers, or drops it if too many wait already.
func (l *Listener) hand(b *batch) {
	if b.empty() {
		l.recycle(b)
		return
	}
	select {
	case l.batches <- b:
	default:
		l.drop(Overloaded, len(b.sessions)+len(b.users))
		l.recycle(b)
	}
}

func (l *Listener) recycle(b *batch) {
	b.reset()
	select {
	case l.free <- b:
	default:
	}
}

// take puts what a datagram says into the batch, or counts why not. The checks that
// cost least come first.
func (l *Listener) take(now time.Time, seen *replays, b *batch, datagram []byte) {
	if len(datagram) == SessionBeatSize && datagram[0] == versionSession {
		l.takeSession(now, seen, b, datagram)
		return
	}
	l.takeGateway(now, seen, b, datagram)
}

func (l *Listener) takeSession(now time.Time, seen *replays, b *batch, datagram []byte) {
	beat, ok := readSession(datagram)
	who := sender{version: versionSession, id: beat.Session}
	switch {
	case !ok:
		l.drop(Malformed, 1)
	case stale(now, beat.Seconds):
		l.drop(Stale, 1)
	case !authentic(datagram, l.roll.BeatKey(beat.Session)):
		l.drop(Unauthenticated, 1)
	default:
		switch seen.accept(now, who, uint64(beat.Counter)) {
		case again:
			l.drop(Replayed, 1)
		case tooMany:
			l.drop(RateLimited, 1)
		case fresh:
			b.sessions = append(b.sessions, rollcall.SessionRef{ID: beat.Session})
		}
	}
}

func (l *Listener) takeGateway(now time.Time, seen *replays, b *batch, datagram []byte) {
	head, ok := readGatewayHead(datagram)
	switch {
	case !ok:
		l.drop(Malformed, 1)
		return
	case stale(now, head.seconds):
		l.drop(Stale, 1)
		return
	case !authentic(datagram, l.roll.KeyBeatKey(head.key)):
		l.drop(Unauthenticated, 1)
		return
	}
	users, ok := appendUsers(b.users, datagram, head.users)
	if !ok {
		l.drop(Malformed, 1)
		return
	}
	who := sender{version: versionGateway}
	copy(who.id[:], head.key[:])
	if seen.accept(now, who, head.counter) != fresh {
		l.drop(Replayed, 1)
		return
	}
	b.users = users
	b.gateways = append(b.gateways, gatewayUsers{key: head.key, end: len(users)})
}

// stale reports whether a sender's seconds are too far from the server's clock.
func stale(now time.Time, seconds uint32) bool {
	skew := now.Unix() - int64(seconds)
	return skew > maxSkew || skew < -maxSkew
}

// work gives batches to the engine until there are no more.
func (l *Listener) work(ctx context.Context) {
	for b := range l.batches {
		l.apply(ctx, b)
		l.recycle(b)
	}
}

func (l *Listener) apply(ctx context.Context, b *batch) {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	if len(b.sessions) > 0 {
		l.touch(ctx, b.sessions)
	}
	if len(b.gateways) > 0 {
		l.beat(ctx, b)
	}
}

func (l *Listener) touch(ctx context.Context, sessions []rollcall.SessionRef) {
	touched, err := l.roll.TouchAll(ctx, sessions)
	if err != nil {
		l.drop(Unavailable, len(sessions))
		return
	}
	live := 0
	for _, t := range touched {
		if t.Live {
			live++
		}
	}
	l.sessions.Add(uint64(live))
	l.drop(Ended, len(touched)-live)
}

func (l *Listener) beat(ctx context.Context, b *batch) {
	// Those whose key may not write are cut out.
	users, start := b.users[:0], 0
	for _, g := range b.gateways {
		named := b.users[start:g.end]
		start = g.end
		switch may, err := l.keys.mayBeat(ctx, g.key); {
		case err != nil:
			l.drop(Unavailable, len(named))
		case !may:
			l.drop(Refused, len(named))
		default:
			users = append(users, named...)
		}
	}
	for some := range chunks(users) {
		if err := l.roll.Beat(ctx, some...); err != nil {
			l.drop(Unavailable, len(some))
			continue
		}
		l.users.Add(uint64(len(some)))
	}
}

// chunks yields users in parts that one call of Beat may name.
func chunks(users []string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(users) > 0 {
			n := min(len(users), rollcall.MaxBeatUsers)
			if !yield(users[:n]) {
				return
			}
			users = users[n:]
		}
	}
}

package respapi

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// strangerTime is how long a client may take to say who it is. At most one
	// connection in strangerShare may be of clients that have not.
	strangerTime  = 10 * time.Second
	strangerShare = 4
	// commandTime is how long a client may pause inside a command, and writeTime how long
	// it may let an answer lie.
	commandTime = 30 * time.Second
	writeTime   = 30 * time.Second
	// keyKept is how long a connection goes on at most once its API key is revoked.
	keyKept = 2 * time.Second
	// throttleTime is the longest wait for the allowance of a key.
	throttleTime = time.Second
	// drainTime is how long connections may take to finish when the listener closes.
	drainTime = 5 * time.Second
	// largeBudget bounds what buffers beyond their usual size hold together, in bytes.
	largeBudget = 256 << 20
)

// Listener serves RESP until it is closed.
type Listener struct {
	roll   *rollcall.Roll // the truth
	public *rollcall.Roll
	opts   Options
	socket net.Listener
	verbs  *table

	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	shut   chan struct{}

	perKey   *allowances[string]
	failures *allowances[netip.Prefix]
	scratch  *scratch
	friends  stripes
	large    atomic.Int64 // bytes of largeBudget that are in use

	mu        sync.Mutex
	open      map[*conn]struct{}
	strangers int
	lastID    int64
	refusals  refusals

	counts counts
}

// Listen opens an address, such as "127.0.0.1:6380", and serves it until Close.
func Listen(roll *rollcall.Roll, address string, o Options) (*Listener, error) {
	o.fill()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, rollcall.Invalid("resp.listen", "must be an address and a port, such as 127.0.0.1:6380, is %q", address)
	}
	if a, err := netip.ParseAddr(host); o.NoKeys && host != "localhost" && (err != nil || !a.IsLoopback()) {
		return nil, rollcall.Invalid("resp.listen", "without keys only a loopback address is served, and this is %q", address)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // Close ends it
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		cancel()
		return nil, err
	}
	l := &Listener{
		roll: roll, public: roll.As(rollcall.ViewerPublic), opts: o, socket: socket, ctx: ctx, cancel: cancel, shut: make(chan struct{}), verbs: newTable(),
		perKey: newAllowances[string](o.KeyLimit), failures: newAllowances[netip.Prefix](o.FailureLimit),
		scratch: newScratch(), open: make(map[*conn]struct{}),
	}
	l.counts.commands = make([]commandCount, len(l.verbs.all))
	l.done.Go(l.accept)
	return l, nil
}

// Addr returns the address that the listener is at.
func (l *Listener) Addr() net.Addr { return l.socket.Addr() }

// Close takes no more connections, has those there are finish the commands that have
// come, for up to 5 s, and ends them.
func (l *Listener) Close() error {
	close(l.shut)
	err := l.socket.Close()
	l.mu.Lock()
	for c := range l.open {
		_ = c.net.SetReadDeadline(time.Unix(1, 0)) // wakes those that wait for a command
	}
	l.mu.Unlock()
	end := time.AfterFunc(drainTime, func() {
		l.cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		for c := range l.open {
			_ = c.net.Close() // it has had its time
		}
	})
	l.done.Wait()
	end.Stop()
	l.cancel()
	return err
}

func (l *Listener) closing() bool {
	select {
	case <-l.shut:
		return true
	default:
		return false
	}
}

func (l *Listener) accept() {
	for failures := 0; ; {
		raw, err := l.socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// No descriptors are left, say: nothing that lasts.
			if failures++; failures == 1 {
				l.opts.Logger.Error("RESP connections cannot be accepted: trying again", "error", err)
			}
			select {
			case <-l.shut:
				return
			case <-time.After(min(time.Second, time.Millisecond<<min(failures, 10))):
			}
			continue
		}
		failures = 0
		l.admit(raw)
	}
}

// admit begins to serve a connection, if there is room.
func (l *Listener) admit(raw net.Conn) {
	c := newConn(l, raw)
	l.mu.Lock()
	full := len(l.open) >= l.opts.MaxConnections || (!c.known && l.strangers >= max(1, l.opts.MaxConnections/strangerShare))
	if !full && !l.closing() {
		l.lastID++
		c.id = l.lastID
		l.open[c] = struct{}{}
		if !c.known {
			l.strangers++
		}
	}
	l.mu.Unlock()
	if c.id == 0 {
		l.counts.refused.Add(1)
		if l.opts.TLS == nil { // a client of TLS would not understand
			_ = raw.SetWriteDeadline(time.Now().Add(time.Second))
			_, _ = raw.Write([]byte("-ERR unavailable there are as many connections as may be: try again later\r\n"))
		}
		_ = raw.Close()
		return
	}
	l.counts.accepted.Add(1)
	l.done.Go(func() {
		defer l.leave(c)
		c.serve()
	})
}

// introduced notes that a client has said who it is.
func (l *Listener) introduced(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !c.known {
		c.known = true
		l.strangers--
	}
}

// forgotten notes that a client has taken back who it is.
func (l *Listener) forgotten(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.known {
		c.known = false
		l.strangers++
	}
	_ = c.net.SetReadDeadline(time.Now().Add(strangerTime)) // else the next read fails
}

func (l *Listener) leave(c *conn) {
	_ = c.net.Close() // whatever there was to say has been said
	l.large.Add(-c.borrowed)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	if !c.known {
		l.strangers--
	}
}

// Connections returns how many connections there are.
func (l *Listener) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

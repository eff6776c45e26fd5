package respapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	smallBuffer = 4 << 10
	usualBuffer = 64 << 10 // buffers grow up to this as a matter of course
	flushAt     = 64 << 10 // answers are sent at the latest when there are so many bytes
	// strangerBuffer stands for both until a client has said who it is: anybody may have as
	// many connections as there are for strangers.
	strangerBuffer = 8 << 10
)

// conn is one connection. One goroutine works on it.
type conn struct {
	l    *Listener
	net  net.Conn
	id   int64
	name string // by CLIENT SETNAME
	reply
	parser parser

	buf      []byte // what came: from is done, to is its end
	from, to int
	borrowed int64 // bytes of largeBudget
	dated    bool  // a read deadline is set
	writeBy  time.Time

	known     bool // under l.mu: is no stranger
	who       identity
	roll      *rollcall.Roll  // as the client may see it
	ctx       context.Context // of commands
	acting    context.Context // of those that the audit trail is kept of
	now       time.Time       // when the commands at hand came
	charged   bool            // the allowance has been taken for them
	refusal   error           // why it has not
	beats     beats
	one       []string        // a user to ask for
	marks     []rollcall.Mark // a mark to make
	queue     *transaction    // of MULTI; nil for none
	temps     temps           // of the transaction that is being done
	ran       run
	failed    rollcall.Code // of the command at hand; "" if it was answered
	command   int           // the command at hand
	finishing bool          // nothing is read any more
}

func newConn(l *Listener, raw net.Conn) *conn {
	c := &conn{l: l, net: raw, reply: reply{resp: 2}, buf: make([]byte, smallBuffer), ctx: l.ctx}
	c.parser.limits = strangerBounds
	if l.opts.TLS != nil {
		c.net = tls.Server(raw, l.opts.TLS)
	}
	if l.opts.NoKeys {
		c.known = true
		c.become(identity{role: rollcall.RoleAdmin})
	}
	return c
}

// serve answers commands until the client or the listener closes. A command that panics ends
// its connection, and no other.
func (c *conn) serve() {
	defer c.countRun()
	defer func() {
		if v := recover(); v != nil {
			c.panicked(v)
		}
	}()
	if !c.who.is() {
		_ = c.net.SetReadDeadline(time.Now().Add(strangerTime)) // else the first read fails
	}
	for {
		if !c.fill() {
			return
		}
		c.charged, c.refusal = false, nil
		if !c.work() || c.finishing || c.l.closing() {
			return
		}
	}
}

// panicked tells of a command that panicked. What it had answered so far may be half of an
// answer, so the client is told no more.
func (c *conn) panicked(v any) {
	verb := c.l.verbs.all[c.command].name
	c.l.opts.Logger.Error("a RESP command panicked", "command", verb, "panic", v, "stack", string(debug.Stack()))
	c.count(c.command, Failed, 1)
	c.l.counts.cut.Add(1)
}

// work answers the commands that have come whole; false if the connection is to end.
func (c *conn) work() bool {
	for {
		args, used, err := c.parser.next(c.buf[c.from:c.to])
		if err != nil {
			c.settle()
			c.l.counts.cut.Add(1)
			if !errors.Is(err, errHTTP) {
				c.refuse("ERR", "Protocol error: "+err.Error())
			}
			_ = c.flush()
			return false
		}
		if used == 0 {
			break
		}
		c.from += used
		if len(args) == 0 {
			continue
		}
		if !c.handle(args) {
			c.settle()
			_ = c.flush()
			return false
		}
		if len(c.out) >= c.usual(flushAt) && !c.flush() {
			return false
		}
	}
	c.settle()
	c.countRun()
	return c.flush()
}

// fill reads more. It makes room first: what is done goes, and if a command fills the
// buffer, that grows.
func (c *conn) fill() bool {
	partial := c.from < c.to
	if !partial {
		c.from, c.to = 0, 0
		c.parser.shrink()
		if len(c.buf) > usualBuffer {
			c.buf = make([]byte, usualBuffer)
			c.giveBack()
		}
	}
	if c.to == len(c.buf) {
		if !c.makeRoom() {
			return false
		}
	}
	c.setDeadline(partial)
	n, err := c.net.Read(c.buf[c.to:])
	c.to += n
	if n > 0 {
		return true
	}
	if err != nil && !errors.Is(err, io.EOF) && !c.l.closing() {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			c.l.counts.cut.Add(1)
		}
	}
	return err == nil
}

// setDeadline bounds how long a client may pause inside a command. Between two it may be
// silent for as long as it likes, once it has said who it is.
func (c *conn) setDeadline(partial bool) {
	switch {
	case !c.who.is():
		return // that of serve
	case partial:
		_ = c.net.SetReadDeadline(time.Now().Add(commandTime)) // else the read fails
	case c.dated:
		_ = c.net.SetReadDeadline(time.Time{})
	default:
		return
	}
	c.dated = partial
	if c.l.closing() { // Close set its own, perhaps before this one
		_ = c.net.SetReadDeadline(time.Unix(1, 0))
	}
}

// makeRoom moves what is not done to the front, or has the buffer grow.
func (c *conn) makeRoom() bool {
	held := c.to - c.from
	size, usual := len(c.buf), c.usual(usualBuffer)
	if held > size/2 || size < usual {
		size = max(size, min(2*size, c.parser.limits.command+usual))
	}
	if size > usualBuffer && size != len(c.buf) {
		if c.l.large.Add(int64(size)) > largeBudget {
			c.l.large.Add(int64(-size))
			c.l.counts.cut.Add(1)
			c.fail(&rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "commands under way fill the memory they may: try again later"})
			_ = c.flush()
			return false
		}
		c.giveBack()
		c.borrowed = int64(size)
	}
	if size != len(c.buf) {
		grown := make([]byte, size)
		copy(grown, c.buf[c.from:c.to])
		c.buf = grown
	} else {
		copy(c.buf, c.buf[c.from:c.to])
	}
	c.from, c.to = 0, held
	return true
}

// usual is a size that a buffer has as a matter of course, or the one for strangers.
func (c *conn) usual(size int) int {
	if c.who.is() {
		return size
	}
	return strangerBuffer
}

func (c *conn) giveBack() {
	c.l.large.Add(-c.borrowed)
	c.borrowed = 0
}

// flush sends the answers.
func (c *conn) flush() bool {
	if len(c.out) == 0 {
		return true
	}
	// Setting a deadline costs about as much as a beat, so one serves for a while.
	most := writeTime
	if !c.who.is() {
		most = strangerTime
	}
	if now := time.Now(); c.writeBy.Sub(now) < most/2 {
		c.writeBy = now.Add(most)
		_ = c.net.SetWriteDeadline(c.writeBy) // else the write fails
	}
	size := int64(cap(c.out))
	if size <= 2*flushAt {
		size = 0 // as all may have
	}
	defer c.l.large.Add(-size)
	if c.l.large.Add(size) > largeBudget && size > 0 {
		c.l.counts.cut.Add(1)
		return false
	}
	_, err := c.net.Write(c.out)
	if cap(c.out) > usualBuffer {
		c.out = nil
	}
	c.out = c.out[:0]
	if err != nil {
		c.l.counts.cut.Add(1)
	}
	return err == nil
}

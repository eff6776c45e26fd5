package main

import (
	"bytes"
	queue "container/list"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// A server that runs out of file descriptors can neither accept clients nor
// write its data. So connections are counted, and their number stays below that
// of descriptors. When there is no room, those that ask for nothing make room:
// the one idle for longest, then the one that has been sending its first header
// for longest. Only if all are at work a newcomer is told to come again later. Who
// was cut off while it sent its first header is told the same: when all clients come
// back at once, it may have sent it long ago, and only waited for its turn.
const (
	// maxConnections is the most there may be; beyond it memory would be what
	// runs out.
	maxConnections = 32_768
	// maxFresh is how many connections may be sending their first header. More
	// may, as when all clients come back at once, but only for freshTime.
	maxFresh  = 1_024
	freshTime = time.Second
	// storeDescriptors are left to the store, the archive and the rest.
	storeDescriptors = 1_500
	// maxTurning is how many newcomers without room may be heard at a time, each for
	// turningTime. Further ones are told at once, which not every client understands.
	maxTurning  = 128
	turningTime = 500 * time.Millisecond
	// mostRetryAfter bounds the seconds after which they are told to come again. The
	// times differ, so that not all come at once again.
	mostRetryAfter = 4
)

// connectionLimit returns how many connections the limit of descriptors leaves
// room for. Go has raised the soft limit to the hard one at start.
func connectionLimit() int {
	descriptors, known := descriptorLimit()
	if !known {
		return 1_000
	}
	return min(descriptors-min(storeDescriptors, descriptors/2), maxConnections)
}

// connections is a listener that keeps the number of connections within a limit.
type connections struct {
	net.Listener
	limit int

	mu    sync.Mutex
	open  map[*connection]struct{}
	fresh *queue.List // no request yet, oldest first
	idle  *queue.List // between two requests, longest first

	turning  chan struct{} // holds one for each that is being turned away
	turnings sync.WaitGroup
}

// connection is one that counts until it is closed.
type connection struct {
	net.Conn
	home    *connections
	since   time.Time // when it was accepted
	waiting *queue.Element
	in      *queue.List // of those two the one it waits in; nil while it is at work
	begun   bool        // it has made a request
}

func limitConnections(l net.Listener, limit int) *connections {
	return &connections{Listener: l, limit: limit, open: map[*connection]struct{}{}, fresh: queue.New(), idle: queue.New(), turning: make(chan struct{}, maxTurning)}
}

// Close implements net.Listener.
func (l *connections) Close() error {
	err := l.Listener.Close()
	l.turnings.Wait()
	return err
}

// Accept implements net.Listener.
func (l *connections) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: raw, home: l, since: time.Now()}
		victim, ok := l.admit(c)
		switch {
		case victim == nil:
		case victim.begun:
			_ = victim.Close() // it was asking for nothing
		default:
			tellLater(victim) // what it asked may lie unread
		}
		if ok {
			return c, nil
		}
		l.turnAway(raw)
	}
}

// admit enters a connection if there is room, or if another makes room for it.
func (l *connections) admit(c *connection) (victim *connection, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stale := oldest(l.fresh)
	if stale != nil && c.since.Sub(stale.since) < freshTime {
		stale = nil
	}
	switch {
	case len(l.open) < l.limit && (l.fresh.Len() < maxFresh || stale == nil):
	case len(l.open) < l.limit:
		victim = stale
	case l.idle.Len() > 0:
		victim = oldest(l.idle)
	case stale != nil:
		victim = stale
	default:
		return nil, false
	}
	if victim != nil {
		l.remove(victim)
	}
	l.open[c] = struct{}{}
	c.wait(l.fresh)
	return victim, true
}

func oldest(waiting *queue.List) *connection {
	if front := waiting.Front(); front != nil {
		c, _ := front.Value.(*connection) // the lists hold nothing else
		return c
	}
	return nil
}

// wait moves a connection to the end of a list, or to none.
func (c *connection) wait(in *queue.List) {
	if c.in != nil {
		c.in.Remove(c.waiting)
	}
	if c.in = in; in != nil {
		c.waiting = in.PushBack(c)
	}
}

func (l *connections) remove(c *connection) {
	c.wait(nil)
	delete(l.open, c)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.home.mu.Lock()
	c.home.remove(c)
	c.home.mu.Unlock()
	return c.Conn.Close()
}

// PlainConn returns the connection that is counted: its bytes are those of this one.
func (c *connection) PlainConn() net.Conn { return c.Conn }

// changed is told by http.Server what its connections are doing.
func (l *connections) changed(conn net.Conn, state http.ConnState) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	c, ok := conn.(*connection)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, open := l.open[c]; !open {
		return
	}
	switch state {
	case http.StateActive:
		c.begun = true
		c.wait(nil)
	case http.StateIdle:
		c.wait(l.idle)
	case http.StateNew, http.StateHijacked, http.StateClosed: // entered by admit, left by Close
	}
}

// turnAway tells a newcomer that there is no room. A client that is answered before
// it has asked may take that for a fault of the connection, so its request is read
// first, for a short time and of a few clients at a time.
func (l *connections) turnAway(raw net.Conn) {
	select {
	case l.turning <- struct{}{}:
	default:
		tellLater(raw)
		return
	}
	l.turnings.Go(func() {
		defer func() { <-l.turning }()
		hear(raw)
		tellLater(raw)
	})
}

// hear reads the header of a request, as far as it comes within turningTime.
func hear(raw net.Conn) {
	_ = raw.SetReadDeadline(time.Now().Add(turningTime)) // a connection that is broken is heard no more
	head := make([]byte, 0, 4<<10)
	for len(head) < cap(head) && !bytes.Contains(head, []byte("\r\n\r\n")) {
		n, err := raw.Read(head[len(head):cap(head)])
		if head = head[:len(head)+n]; err != nil || head[0] == tlsHandshake {
			return
		}
	}
}

// tlsHandshake is the first byte of a TLS connection, on which HTTP is no answer.
const tlsHandshake = 0x16

// tellLater answers that there is no room, and closes the connection. It does not wait
// for the client.
func tellLater(conn net.Conn) {
	const answer = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	_ = conn.SetDeadline(time.Now().Add(10 * time.Millisecond))   // a fresh socket takes it at once
	_, _ = fmt.Fprintf(conn, answer, 1+rand.IntN(mostRetryAfter)) //nolint:gosec // to spread clients, no secret
	_ = conn.Close()
}

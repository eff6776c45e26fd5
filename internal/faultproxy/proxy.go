// Package faultproxy is a TCP proxy that breaks connections the ways networks
// do, for tests.
package faultproxy

import (
	"errors"
	"net"
	"sync"
)

// mode is what the proxy does with traffic.
type mode int

const (
	passing mode = iota
	holding      // connections stay open, no byte passes
	cutting      // connections are closed, new ones as well
)

// Proxy passes connections on to a target until told otherwise. Its methods are
// safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu     sync.Mutex
	change *sync.Cond
	mode   mode
	closed bool
	open   map[net.Conn]struct{}
}

// Listen starts a proxy on a free loopback port.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a listener of a test has no context to end with
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, target: target, open: make(map[net.Conn]struct{})}
	p.change = sync.NewCond(&p.mu)
	p.work.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Port is the port of Addr.
func (p *Proxy) Port() int {
	a, _ := p.listener.Addr().(*net.TCPAddr)
	return a.Port
}

// SetTarget passes new connections on to another address.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// BlackHole lets no byte pass in either direction, and closes nothing. What was
// sent meanwhile arrives after Heal.
func (p *Proxy) BlackHole() { p.set(holding) }

// Cut closes all connections, and every new one at once.
func (p *Proxy) Cut() {
	p.set(cutting)
	p.closeAll()
}

// Heal lets everything pass again.
func (p *Proxy) Heal() { p.set(passing) }

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.change.Broadcast()
	p.mu.Unlock()
	err := p.listener.Close()
	p.closeAll()
	p.work.Wait()
	return err
}

func (p *Proxy) set(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	p.change.Broadcast()
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close() // its copiers see to the rest
	}
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(c) })
	}
}

// keep notes a connection, unless it is not to be.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.mode == cutting {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close() // there is nobody to tell
}

func (p *Proxy) serve(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) || !p.wait() {
		return
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target) //nolint:noctx // see Listen
	if err != nil {
		return
	}
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client) })
	both.Go(func() { p.copy(client, server) })
	both.Wait()
}

// wait returns once bytes may pass; false if they never may.
func (p *Proxy) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.mode == holding && !p.closed {
		p.change.Wait()
	}
	return p.mode == passing && !p.closed
}

func (p *Proxy) copy(to, from net.Conn) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }() // one direction ends the other
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !p.wait() {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

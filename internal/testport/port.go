// Package testport chooses ports for servers of tests that are started, killed and
// started again on the same port.
//
// A port that the system chose, and that was given back, may be taken by anybody's next
// connection while its server is down. So these ports lie below those that the system
// chooses from, and no two processes of tests have the same one.
package testport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
)

// Ports are chosen from first on. The bus of a Redis Cluster is at the port plus BusOffset,
// where no chosen port lies. Linux takes the ports of clients from 32,768 on.
const (
	first     = 10_240
	choices   = 10_000
	BusOffset = 10_000
)

// errNone says that no port is free.
var errNone = errors.New("testport: no port is free")

// kept holds what keeps a port for this process, until the process ends.
var kept struct {
	mu    sync.Mutex
	locks map[int]net.Listener
}

// Reserve returns a port of the loopback address that is free, and whose port for the
// bus of a Cluster is. Nobody else gets it as long as this process lives.
func Reserve() (port int, err error) {
	return reserve(func() int { return first + rand.IntN(choices) })
}

// reserve reserves the first port that choose gives and that can be had.
func reserve(choose func() int) (int, error) {
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.locks == nil {
		kept.locks = make(map[int]net.Listener)
	}
	for range 1000 {
		port := choose()
		if _, ours := kept.locks[port]; ours {
			continue
		}
		// A look at a port takes it for a moment, in which a server of the process that has
		// the port could not start. So it is kept first.
		lock, err := keep(port)
		if err != nil { // another process has it
			continue
		}
		if !free(port) || !free(port+BusOffset) {
			giveBack(lock)
			continue
		}
		kept.locks[port] = lock
		return port, nil
	}
	return 0, errNone
}

// free tells whether nobody listens at a port.
func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // closed at once
	if err != nil {
		return false
	}
	_ = l.Close() // nothing was accepted
	return true
}

// keep takes a name that one process can have at a time, and that has no file. Other
// systems than Linux know no such names: there the port is only likely to be free.
func keep(port int) (net.Listener, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	return net.Listen("unix", fmt.Sprintf("@rollcall-test-port-%d", port)) //nolint:noctx // lasts as long as the process
}

// giveBack gives back what keep took.
func giveBack(lock net.Listener) {
	if lock != nil {
		_ = lock.Close() // it has accepted nothing
	}
}

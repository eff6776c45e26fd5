package httpapi

import (
	"runtime"
	"sync"
)

// turnLine is where streams wait for their turn. A turn never waits for a client, so
// a few workers are enough, and there are none while nothing waits.
type turnLine struct {
	mu      sync.Mutex
	streams []*stream // each at most once
	workers int
}

// put gives a stream its turn when it comes.
func (l *turnLine) put(s *stream) {
	l.mu.Lock()
	l.streams = append(l.streams, s)
	hire := l.workers < runtime.GOMAXPROCS(0)
	if hire {
		l.workers++
	}
	l.mu.Unlock()
	if hire {
		go l.work()
	}
}

// work gives turns until nobody waits.
func (l *turnLine) work() {
	for s := l.next(); s != nil; s = l.next() {
		s.turn()
	}
}

// next takes the stream that waits for longest; nil ends the worker.
func (l *turnLine) next() *stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.streams) == 0 {
		l.streams = nil // a burst leaves no room behind
		l.workers--
		return nil
	}
	s := l.streams[0]
	l.streams[0] = nil
	l.streams = l.streams[1:]
	return s
}

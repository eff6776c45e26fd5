package rollcall

import (
	"context"
	"sync"
	"time"
)

// lifetime is the context of work that lasts as long as its owner: it carries
// nothing and ends when the owner closes.
type lifetime struct {
	done chan struct{}
	once sync.Once
}

func newLifetime() *lifetime { return &lifetime{done: make(chan struct{})} }

func (l *lifetime) end() { l.once.Do(func() { close(l.done) }) }

func (*lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }
func (l *lifetime) Done() <-chan struct{}     { return l.done }
func (*lifetime) Value(any) any               { return nil }

func (l *lifetime) Err() error {
	select {
	case <-l.done:
		return context.Canceled
	default:
		return nil
	}
}

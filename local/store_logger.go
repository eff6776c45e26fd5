package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger passes Pebble's messages on: errors as errors, but each kind only once in a while, as
// Pebble repeats what fails.
type pebbleLogger struct {
	log     *slog.Logger
	fs      *tableFS // nil when checking
	notices *notices
}

func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("store: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	if l.quiet() {
		return
	}
	if n, ok := l.notices.take(format); ok {
		l.log.Error("store: "+fmt.Sprintf(format, args...), "repeated", n)
	}
}

// quiet reports whether what is logged comes from tables that were given up.
func (l pebbleLogger) quiet() bool { return l.fs != nil && l.fs.state.Load() == fsDead }

// Fatalf is called when Pebble finds its own state to be wrong. Faults of the disk do not lead here,
// as tableFS keeps them from Pebble.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if l.quiet() {
		l.log.Debug("store: " + text)
		runtime.Goexit()
	}
	l.log.Error("store: " + text)
	fmt.Fprintln(os.Stderr, "rollcall: the store failed and the process must end:", text)
	os.Exit(1) //nolint:forbidigo // Pebble relies on Fatalf not to return, and its state is not to be trusted any more
}

// events logs damaged blocks and failed work. Neither ends the process: what reads a damaged block
// gets an error.
func (l pebbleLogger) events() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if n, ok := l.notices.take(info.Path); ok && !l.quiet() {
				l.log.Error("store: a block on disk is damaged: run rollcall check", "path", info.Path, "error", info.Details, "repeated", n)
			}
		},
		BackgroundError: func(err error) {
			if n, ok := l.notices.take("background"); ok && !l.quiet() {
				l.log.Error("store: work in the background failed", "error", err, "repeated", n)
			}
		},
	}
}

func (pebbleLogger) Eventf(context.Context, string, ...any) {}

func (pebbleLogger) IsTracingEnabled(context.Context) bool { return false }

// noticeEvery is the least time between two messages of one kind, and
// noticeKinds how many kinds are told apart.
const (
	noticeEvery = 10 * time.Second
	noticeKinds = 64
)

// notices keeps what repeats from filling the log.
type notices struct {
	mu    sync.Mutex
	kinds map[string]*notice
}

type notice struct {
	at     time.Time
	missed int
}

// take reports whether a message of a kind is due, and how many were left out
// since the last.
func (n *notices) take(kind string) (missed int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kinds == nil || len(n.kinds) > noticeKinds {
		n.kinds = make(map[string]*notice)
	}
	one := n.kinds[kind]
	if one == nil {
		one = &notice{}
		n.kinds[kind] = one
	}
	if !one.at.IsZero() && time.Since(one.at) < noticeEvery {
		one.missed++
		return 0, false
	}
	missed, one.missed, one.at = one.missed, 0, time.Now() // of the log, not of the engine
	return missed, true
}

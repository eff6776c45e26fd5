package main

import (
	"bytes"
	"log"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// boundedLog passes on what net/http says of connections. Strangers decide how
// much that is, as each handshake that fails is a line: so lines come up to a
// rate, and the next one tells how many were left out.
type boundedLog struct {
	log     *slog.Logger
	allowed *rate.Limiter
	leftOut atomic.Int64
}

func newBoundedLog(l *slog.Logger) *log.Logger {
	const perSecond, burst = 0.2, 10
	return log.New(&boundedLog{log: l, allowed: rate.NewLimiter(perSecond, burst)}, "", 0)
}

// Write implements io.Writer; each call is a line.
func (b *boundedLog) Write(line []byte) (int, error) {
	if !b.allowed.Allow() {
		b.leftOut.Add(1)
		return len(line), nil
	}
	b.log.Warn("connection", "problem", string(bytes.TrimSpace(line)), "lines_left_out", b.leftOut.Swap(0))
	return len(line), nil
}

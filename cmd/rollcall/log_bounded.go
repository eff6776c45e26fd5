package main

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// boundedLog passes on what net/http says of connections. Strangers decide how
// much that is, as each handshake that fails is a line: so lines come up to a
// rate, and the next one tells how many were left out.
type boundedLog struct {
	slog.Handler
	allowed *rate.Limiter
	leftOut atomic.Int64
}

func newBoundedLog(l *slog.Logger) *boundedLog {
	const perSecond, burst = 0.2, 10
	return &boundedLog{Handler: l.Handler(), allowed: rate.NewLimiter(perSecond, burst)}
}

// Handle implements [slog.Handler].
func (b *boundedLog) Handle(ctx context.Context, r slog.Record) error {
	if !b.allowed.Allow() {
		b.leftOut.Add(1)
		return nil
	}
	line := slog.NewRecord(r.Time, r.Level, "connection", r.PC)
	line.Add("problem", strings.TrimSpace(r.Message), "lines_left_out", b.leftOut.Swap(0))
	return b.Handler.Handle(ctx, line)
}

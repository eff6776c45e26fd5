package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/rollcall/rollcall"
)

// While a disk is full or Redis is away every request fails, and a line for each
// would fill what is left of the disk. So faultLog writes one line when requests
// begin to fail with a code, one a minute while that lasts, and one when they
// succeed again; between them it counts. Faults of the server itself are each
// worth a line, up to a rate.
const (
	faultRepeat = time.Minute      // between lines while a fault lasts
	faultFlap   = 10 * time.Second // between the beginnings of two faults
)

type faultLog struct {
	log      *slog.Logger
	internal boundedLines
	lasting  atomic.Bool // whether some fault lasts

	mu    sync.Mutex
	codes map[rollcall.Code]*fault // one for each code of status 503
}

// fault is a code that requests fail with.
type fault struct {
	lasts   bool
	route   string    // of the first request that failed: when it succeeds, the fault is over
	since   time.Time // when that was
	said    time.Time // when there was a line last
	refused int       // since it began
}

func newFaultLog(log *slog.Logger) *faultLog {
	return &faultLog{log: log, internal: newBoundedLines(), codes: map[rollcall.Code]*fault{}}
}

// failed notes a request that failed with a status of 500 or 503, and reports
// whether the log has a line for it.
func (l *faultLog) failed(ctx context.Context, code rollcall.Code, err error) bool {
	c := callerOf(ctx)
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, errDraining) {
		return false // the client went, or we do: nothing is wrong
	}
	if code != rollcall.CodeUnavailable && code != rollcall.CodeStorageFull {
		return l.internal.write(ctx, l.log, slog.LevelError, "request failed",
			slog.String("request", c.requestID), slog.String("code", string(code)), slog.Any("error", err))
	}
	route := ""
	if c.gate != nil {
		route = c.gate.Pattern()
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.codes[code]
	if f == nil {
		f = &fault{}
		l.codes[code] = f
	}
	message, quiet := "requests are still refused", faultRepeat
	if !f.lasts {
		message, quiet = "requests are refused from now on", faultFlap
		f.lasts, f.route, f.since, f.refused = true, route, now, 0
		l.lasting.Store(true)
	}
	f.refused++
	if !f.said.IsZero() && now.Sub(f.said) < quiet {
		return false
	}
	f.said = now
	l.log.LogAttrs(ctx, slog.LevelError, message, slog.String("code", string(code)), slog.Int("refused", f.refused),
		slog.String("route", route), slog.String("request", c.requestID), slog.Any("error", err))
	return true
}

// succeeded notes a request that was answered.
func (l *faultLog) succeeded(route string, status int) {
	if !l.lasting.Load() || status >= http.StatusInternalServerError {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lasting := false
	for code, f := range l.codes {
		if f.lasts && f.route == route {
			f.lasts = false
			l.log.Info("requests are answered again", "code", string(code), "refused", f.refused, "after", time.Since(f.since).Round(time.Millisecond).String())
		}
		lasting = lasting || f.lasts
	}
	l.lasting.Store(lasting)
}

func (l *faultLog) panicked(ctx context.Context, value any, stack []byte) {
	l.internal.write(ctx, l.log, slog.LevelError, "panic",
		slog.String("request", callerOf(ctx).requestID), slog.Any("value", value), slog.String("stack", string(stack)))
}

// boundedLines writes log lines up to a rate, and with the next line says how
// many were left out.
type boundedLines struct {
	allowed *rate.Limiter
	leftOut *atomic.Int64
}

func newBoundedLines() boundedLines {
	const perSecond, burst = 5, 50
	return boundedLines{rate.NewLimiter(perSecond, burst), &atomic.Int64{}}
}

// write reports whether the line was written.
func (b boundedLines) write(ctx context.Context, log *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) bool {
	if !b.allowed.Allow() {
		b.leftOut.Add(1)
		return false
	}
	if n := b.leftOut.Swap(0); n > 0 {
		attrs = append(attrs, slog.Int64("lines_left_out", n))
	}
	log.LogAttrs(ctx, level, message, attrs...)
	return true
}

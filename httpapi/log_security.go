package httpapi

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// securityLog writes a line for each act that somebody may later ask about: keys
// made and revoked, bans, kicks of many, erasures, clears. A line names the key
// that did it and a pseudonym of the user, never a user, a token or a reason.
// Refused credentials come in lines of many.
type securityLog struct {
	log     *slog.Logger
	metrics *Metrics
	acts    boundedLines

	mu     sync.Mutex
	failed map[string]*refusals // by event: two of them
}

// refusals are requests that were refused for who made them.
type refusals struct {
	since int       // how many, since there was a line
	said  time.Time // when there was a line last
}

// refusalLines is how far lines on refused credentials are apart.
const refusalLines = 10 * time.Second

func newSecurityLog(log *slog.Logger, metrics *Metrics) *securityLog {
	return &securityLog{log: log, metrics: metrics, acts: newBoundedLines(), failed: map[string]*refusals{}}
}

// act writes the line of an act that succeeded.
func (l *securityLog) act(ctx context.Context, event string, attrs ...slog.Attr) {
	c := callerOf(ctx)
	all := append([]slog.Attr{
		slog.String("event", event), slog.String("actor", c.actorID()),
		slog.String("address", addrText(c.addr)), slog.String("request", c.requestID),
	}, attrs...)
	l.acts.write(ctx, l.log, slog.LevelInfo, "security", all...)
}

// authenticationFailed counts a credential that was never known, or no longer.
func (l *securityLog) authenticationFailed(c *caller) { l.refused("authentication_failed", c) }

// refused counts a refusal and writes a line, unless there was one just now.
func (l *securityLog) refused(event string, c *caller) {
	l.metrics.refusals.WithLabelValues(event).Inc()
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.failed[event]
	if r == nil {
		r = &refusals{}
		l.failed[event] = r
	}
	r.since++
	if !r.said.IsZero() && now.Sub(r.said) < refusalLines {
		return
	}
	route := ""
	if c.gate != nil {
		route = c.gate.Pattern()
	}
	l.log.Warn("security", "event", event, "times", r.since, "last_actor", c.actorID(),
		"last_address", addrText(c.addr), "last_route", route, "last_request", c.requestID)
	r.said, r.since = now, 0
}

// turnedAway notes that a gate turned a known caller away.
func (s *Server) turnedAway(c *caller, err error) {
	if rollcall.CodeOf(err) == rollcall.CodeForbidden {
		s.security.refused("forbidden", c)
	}
}

// whom is the user of a line, by pseudonym.
func (s *Server) whom(user string) slog.Attr {
	return slog.String("user", s.roll.Pseudonym(user))
}

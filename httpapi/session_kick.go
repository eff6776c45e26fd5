package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rollcall/rollcall"
)

type kickRequest struct {
	Session string      `json:"session,omitempty" given:"filled" doc:"this session"`
	User    string      `json:"user,omitempty" given:"filled" doc:"this user's sessions"`
	Device  string      `json:"device,omitempty" given:"filled" doc:"with user: only those of this device class"`
	Except  string      `json:"except,omitempty" given:"filled" doc:"with user: all but this session"`
	Filter  *filterBody `json:"filter,omitempty" doc:"all sessions that meet these conditions"`
	All     bool        `json:"all,omitempty" doc:"every session"`
	Reason  string      `json:"reason,omitempty" doc:"shown to the client, ≤ 256 bytes"`
	Ban     span        `json:"ban,omitempty" doc:"with user or filter: keep the users out for so long, up to 10 years"`
	DryRun  bool        `json:"dry_run,omitempty" doc:"only count"`
}

type kickInput struct {
	Body kickRequest
}

// ended says how many sessions ended, and names the first 100.
type ended struct {
	Ended    int                  `json:"ended"`
	Sessions []rollcall.SessionID `json:"sessions" nullable:"false" doc:"the first 100"`
}

func endedOf(r rollcall.EndResult) ended {
	return ended{Ended: r.Ended, Sessions: each(r.Sessions, func(id rollcall.SessionID) rollcall.SessionID { return id })}
}

func (s *Server) registerKicks() {
	register(s, op("POST /v1/kicks", "kick", "Sessions", "End a session, a user's sessions, those that meet conditions, or all"), s.kick)
}

func (s *Server) kick(ctx context.Context, in *kickInput) (ended, error) {
	b, c := in.Body, callerOf(ctx)
	k, err := b.domain()
	if err != nil {
		return ended{}, err
	}
	if k.Filter != nil || k.All || b.Ban != "" {
		if err := c.need(rollcall.RoleAdmin, "a kick with filter, all or ban"); err != nil {
			return ended{}, err
		}
	}
	k.Actor = c.actor()
	res, err := s.view(ctx).Kick(ctx, k)
	s.noteKick(ctx, k, res, err)
	if err != nil && res.Ended > 0 {
		return ended{}, cutShort(err, res.Ended)
	}
	return endedOf(res), err
}

// noteKick writes the line of a kick of many, or with a ban; also of one that
// was cut short.
func (s *Server) noteKick(ctx context.Context, k rollcall.Kick, res rollcall.EndResult, err error) {
	many := k.Filter != nil || k.All
	if k.DryRun || (err != nil && res.Ended == 0) || (!many && k.Ban == 0) {
		return
	}
	attrs := []slog.Attr{slog.Int("ended", res.Ended)}
	if k.Ban > 0 {
		attrs = append(attrs, slog.String("for", k.Ban.String()))
	}
	switch {
	case k.All:
		s.security.act(ctx, "kicked_all", attrs...)
	case many:
		s.security.act(ctx, "kicked_by_filter", attrs...)
	default:
		s.security.act(ctx, "banned", append(attrs, s.whom(k.User))...)
	}
}

// cutShortError is the error of a kick that had ended some sessions by then.
type cutShortError struct {
	err   error
	ended int
}

func (e *cutShortError) Error() string { return e.err.Error() }
func (e *cutShortError) Unwrap() error { return e.err }

// cutShort tells the caller how far a kick got before it failed.
func cutShort(err error, n int) error {
	var e *rollcall.Error
	if !errors.As(err, &e) {
		e = &rollcall.Error{Code: rollcall.CodeInternal, Err: err}
	}
	told := *e
	told.Detail = fmt.Sprintf("%s; %d sessions had been ended before", e.Detail, n)
	return &cutShortError{&told, n}
}

func (b *kickRequest) domain() (rollcall.Kick, error) {
	k := rollcall.Kick{User: b.User, Device: b.Device, All: b.All, Reason: b.Reason, DryRun: b.DryRun}
	var err error
	if k.Session, err = parseID("session", b.Session); err != nil {
		return k, err
	}
	if k.Except, err = parseID("except", b.Except); err != nil {
		return k, err
	}
	if k.Ban, err = b.Ban.parse("ban"); err != nil || b.Filter == nil {
		return k, err
	}
	if b.Filter.err != nil {
		return k, within("filter", b.Filter.err)
	}
	f, err := b.Filter.domain("filter.")
	if err != nil {
		return k, err
	}
	if f.Users != nil && len(f.Users) == 0 {
		return k, rollcall.Invalid("filter.users", "must name 1 to %d users", rollcall.MaxQueryUsers)
	}
	k.Filter = &f
	return k, nil
}

// within names the object in which the field at fault stands.
func within(object string, err error) error {
	var e *rollcall.Error
	if !errors.As(err, &e) {
		return err
	}
	named := *e
	named.Field = object + "." + e.Field
	return &named
}

package httpapi

import (
	"context"
	"log/slog"
	"time"

	"github.com/rollcall/rollcall"
)

type onlineInput struct {
	Paging
	Window span `query:"window" doc:"how recently a user must have been seen; the server's own window unless said; all lists everyone whose last-seen time is kept, also who has left"`
}

type countInput struct {
	Window span `query:"window" doc:"how recently a user must have been seen; all counts everyone whose last-seen time is kept"`
}

// count is a number of users. WindowSeconds is absent when it counts all.
type count struct {
	Count         int `json:"count"`
	WindowSeconds int `json:"window_seconds,omitempty" doc:"absent for window=all"`
}

type seen struct {
	User     string  `json:"user"`
	LastSeen instant `json:"last_seen"`
}

type statusInput struct {
	Body struct {
		Users []string `json:"users" nullable:"false" maxItems:"1000"`
	} `nameHint:"StatusRequest"`
}

type status struct {
	User       string  `json:"user"`
	Online     bool    `json:"online"`
	LastSeen   instant `json:"last_seen,omitempty"`
	AgeSeconds *int64  `json:"age_seconds,omitempty" doc:"how long ago that is"`
	Sessions   int     `json:"sessions"`
}

type clearInput struct {
	Body struct {
		OlderThan span `json:"older_than" doc:"forget users last seen longer ago than this"`
	} `nameHint:"ClearRequest"`
}

type cleared struct {
	Cleared int `json:"cleared"`
}

func (s *Server) registerPresence() {
	register(s, op("GET /v1/online", "list-online", "Presence", "Users online, last seen first"), s.listOnline)
	register(s, op("GET /v1/online/count", "count-online", "Presence", "How many users are online"), s.countOnline)
	register(s, op("POST /v1/online/status", "status", "Presence", "The presence of up to 1,000 users, in the order asked"), s.status)
	register(s, op("POST /v1/online/clear", "clear-online", "Presence", "Forget users not seen for long"), s.clearOnline)
}

func (s *Server) listOnline(ctx context.Context, in *onlineInput) (page[seen], error) {
	wire := func(u rollcall.Seen) seen { return seen{u.User, instantOf(u.LastSeen)} }
	if in.Window == "all" {
		found, err := s.view(ctx).KnownUsers(ctx, in.request())
		return pageOf(found, wire), err
	}
	window, err := in.Window.parseWindow("window")
	if err != nil {
		return page[seen]{}, err
	}
	found, err := s.view(ctx).Online(ctx, window, in.request())
	return pageOf(found, wire), err
}

func (s *Server) countOnline(ctx context.Context, in *countInput) (count, error) {
	if in.Window == "all" {
		n, err := s.view(ctx).KnownCount(ctx)
		return count{Count: n}, err
	}
	window, err := in.Window.parseWindow("window")
	if err != nil {
		return count{}, err
	}
	n, err := s.view(ctx).OnlineCount(ctx, window)
	if window == 0 {
		window = s.roll.Window()
	}
	return count{Count: n, WindowSeconds: int(window / time.Second)}, err
}

// parseWindow reads a window; 0 stands for the server's own, and so only if
// nothing was said.
func (s span) parseWindow(field string) (time.Duration, error) {
	window, err := s.parse(field)
	if err == nil && s != "" && window == 0 {
		return 0, rollcall.Invalid(field, "must be at least 1s")
	}
	return window, err
}

func (s *Server) status(ctx context.Context, in *statusInput) (items[status], error) {
	found, err := s.view(ctx).Status(ctx, in.Body.Users...)
	now := s.roll.Now()
	return items[status]{each(found, func(u rollcall.Status) status { return presenceOf(u, now) })}, err
}

func presenceOf(u rollcall.Status, now time.Time) status {
	out := status{User: u.User, Online: u.Online, LastSeen: instantOf(u.LastSeen), Sessions: u.Sessions}
	if !u.LastSeen.IsZero() {
		age := max(0, now.Unix()-u.LastSeen.Unix())
		out.AgeSeconds = &age
	}
	return out
}

func (s *Server) clearOnline(ctx context.Context, in *clearInput) (cleared, error) {
	if in.Body.OlderThan == "" {
		return cleared{}, rollcall.Invalid("older_than", "is required")
	}
	age, err := in.Body.OlderThan.parse("older_than")
	if err != nil {
		return cleared{}, err
	}
	n, err := s.view(ctx).ClearPresence(ctx, age)
	if err == nil {
		s.security.act(ctx, "presence_cleared", slog.Int("users", n))
	}
	return cleared{n}, err
}

package httpapi

import (
	"context"
	"log/slog"

	"github.com/rollcall/rollcall"
)

// BanRecord keeps a user from logging in.
type BanRecord struct {
	User   string  `json:"user,omitempty" doc:"absent once the user was erased"`
	At     instant `json:"at"`
	Until  instant `json:"until"`
	Reason string  `json:"reason,omitempty"`
	Actor  string  `json:"actor,omitempty" doc:"who set it"`
}

func banOf(b rollcall.Ban) BanRecord {
	return BanRecord{User: b.User, At: instantOf(b.At), Until: instantOf(b.Until), Reason: b.Reason, Actor: b.Actor}
}

type putBanInput struct {
	UserInput
	Body struct {
		Duration span   `json:"duration" doc:"1s to 10 years"`
		Reason   string `json:"reason,omitempty" doc:"shown to the client, ≤ 256 bytes"`
	} `nameHint:"BanRequest"`
}

// newBan is a ban and how many sessions it ended.
type newBan struct {
	BanRecord
	Ended int `json:"ended" doc:"sessions ended by it"`
}

func (s *Server) registerBans() {
	register(s, op("GET /v1/bans", "list-bans", "Users", "The bans in force, by user"), s.listBans)
	register(s, op("GET /v1/bans/{user}", "get-ban", "Users", "A user's ban"), s.getBan)
	register(s, op("PUT /v1/bans/{user}", "put-ban", "Users", "Ban a user, and end the user's sessions"), s.putBan)
	registerQuiet(s, op("DELETE /v1/bans/{user}", "lift-ban", "Users", "Lift a ban"), s.liftBan)
}

func (s *Server) listBans(ctx context.Context, in *struct{ Paging }) (page[BanRecord], error) {
	found, err := s.view(ctx).Bans(ctx, in.request())
	return pageOf(found, banOf), err
}

func (s *Server) getBan(ctx context.Context, in *UserInput) (BanRecord, error) {
	found, err := s.view(ctx).BanOf(ctx, in.User)
	return banOf(found), err
}

func (s *Server) putBan(ctx context.Context, in *putBanInput) (newBan, error) {
	d, err := in.Body.Duration.parse("duration")
	if err != nil {
		return newBan{}, err
	}
	if d <= 0 || d > rollcall.MaxBan {
		return newBan{}, rollcall.Invalid("duration", "must be between 1s and 10 years, is %v", d)
	}
	view := s.view(ctx)
	res, err := view.Ban(ctx, in.User, d, in.Body.Reason, callerOf(ctx).actor())
	if err != nil {
		return newBan{}, err
	}
	s.security.act(ctx, "banned", s.whom(in.User), slog.String("for", d.String()), slog.Int("ended", res.Ended))
	set, err := view.BanOf(ctx, in.User)
	return newBan{BanRecord: banOf(set), Ended: res.Ended}, err
}

func (s *Server) liftBan(ctx context.Context, in *UserInput) error {
	err := s.view(ctx).Unban(ctx, in.User)
	if err == nil {
		s.security.act(ctx, "ban_lifted", s.whom(in.User))
	}
	return err
}

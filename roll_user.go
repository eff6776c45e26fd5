package rollcall

import (
	"context"
	"time"
)

// User returns what there is to say about a user. One never heard of has the
// defaults: every id is somebody.
func (r *Roll) User(ctx context.Context, user string) (UserSummary, error) {
	return observe(ctx, r, "user", func() (UserSummary, error) { return r.userSummary(ctx, user) })
}

func (r *Roll) userSummary(ctx context.Context, user string) (UserSummary, error) {
	var sum UserSummary
	if err := validateUser("user", user); err != nil {
		return sum, err
	}
	now := r.clock.Now()
	u, err := r.engine.User(ctx, user)
	if err != nil {
		return sum, err
	}
	sum.User = u
	if r.viewer == ViewerPublic {
		sum.Invisible = false
	}
	status, err := r.engine.Status(ctx, now, r.opts.Window, []string{user}, r.viewer)
	if err != nil {
		return sum, err
	}
	sum.Status = status[0]
	friends, err := r.engine.Friends(ctx, now, FriendQuery{User: user, Window: r.opts.Window, Viewer: r.viewer})
	if err != nil {
		return sum, err
	}
	sum.Friends = friends.Total
	streak, known, err := r.streak(ctx, user, "")
	if err != nil {
		return sum, err
	}
	sum.Streak, sum.StreakUnavailable = streak, !known
	ban, ok, err := r.engine.BanOf(ctx, now, user, r.banKey(user))
	if ok {
		sum.Ban = &ban
	}
	return sum, err
}

// PutUser changes a user's kind, name or visibility.
func (r *Roll) PutUser(ctx context.Context, user string, p UserPatch) (User, error) {
	return observe(ctx, r, "put_user", func() (User, error) {
		if err := validateUser("user", user); err != nil {
			return User{}, err
		}
		if p.Kind != nil {
			if *p.Kind == "" {
				return User{}, Invalid("kind", "must not be empty")
			}
			if err := validateKind("kind", *p.Kind); err != nil {
				return User{}, err
			}
		}
		if p.Name != nil {
			if err := validateText("name", *p.Name, MaxNameLen); err != nil {
				return User{}, err
			}
		}
		return r.engine.PutUser(ctx, r.clock.Now(), user, p)
	})
}

// Erase removes everything about a user, also from the archive; see [Users]. A
// later login of the same id is a new user. The webhooks for the user's events alone
// are removed too.
func (r *Roll) Erase(ctx context.Context, user string) error {
	return r.do(ctx, "erase", func() error {
		if err := validateUser("user", user); err != nil {
			return err
		}
		n := NewAuditEntry{Action: AuditUserErased, User: user, noSalt: true}
		return r.actErr(ctx, n, func() error { return r.erase(ctx, user) })
	})
}

// Ban keeps a user from logging in for a time, up to 10 years, and ends their
// sessions.
func (r *Roll) Ban(ctx context.Context, user string, d time.Duration, reason, actor string) (EndResult, error) {
	return observe(ctx, r, "ban", func() (EndResult, error) {
		if err := validateUser("user", user); err != nil {
			return EndResult{}, err
		}
		if d < time.Second || d > MaxBan {
			return EndResult{}, Invalid("ban", "must be between 1s and 10 years, is %v", d)
		}
		if err := validateText("reason", reason, MaxReasonLen); err != nil {
			return EndResult{}, err
		}
		if err := validateText("actor", actor, MaxActorLen); err != nil {
			return EndResult{}, err
		}
		return act(ctx, r, banning(user, d), func() (EndResult, error) {
			now := r.clock.Now()
			return r.engine.Ban(ctx, now, r.newBan(now, user, Kick{Ban: d, Reason: reason, Actor: actor}))
		}, nil)
	})
}

// banning is the entry of a user who is about to be banned.
func banning(user string, d time.Duration) NewAuditEntry {
	return NewAuditEntry{Action: AuditBanSet, User: user, Detail: map[string]string{"for": d.String()}}
}

// Unban lifts a ban; CodeNotFound if there is none.
func (r *Roll) Unban(ctx context.Context, user string) error {
	return r.do(ctx, "unban", func() error {
		if err := validateUser("user", user); err != nil {
			return err
		}
		return r.actErr(ctx, NewAuditEntry{Action: AuditBanLifted, User: user, noSalt: true}, func() error {
			ok, err := r.engine.Unban(ctx, r.clock.Now(), user, r.banKey(user))
			if err == nil && !ok {
				return NotFound("ban")
			}
			return err
		})
	})
}

// BanOf returns the ban in force for a user; CodeNotFound if there is none.
func (r *Roll) BanOf(ctx context.Context, user string) (Ban, error) {
	return observe(ctx, r, "ban_of", func() (Ban, error) {
		if err := validateUser("user", user); err != nil {
			return Ban{}, err
		}
		ban, ok, err := r.engine.BanOf(ctx, r.clock.Now(), user, r.banKey(user))
		if err == nil && !ok {
			return Ban{}, NotFound("ban")
		}
		return ban, err
	})
}

// Bans lists the bans in force.
func (r *Roll) Bans(ctx context.Context, p PageRequest) (Page[Ban], error) {
	return observe(ctx, r, "bans", func() (Page[Ban], error) {
		p, err := r.openPage(p, "bans", false)
		if err != nil {
			return Page[Ban]{}, err
		}
		page, err := r.engine.Bans(ctx, r.clock.Now(), p)
		return sealPage(r, page, "bans"), err
	})
}

// Kinds lists the kinds known, by name, with their use.
func (r *Roll) Kinds(ctx context.Context) ([]KindUse, error) {
	return observe(ctx, r, "kinds", func() ([]KindUse, error) { return r.engine.Kinds(ctx) })
}

// DeleteKind removes a kind that nothing is of, which makes room for another.
// Errors: not_found, conflict while it is in use; DefaultKind always is.
func (r *Roll) DeleteKind(ctx context.Context, kind string) error {
	return r.do(ctx, "delete_kind", func() error {
		if kind == "" {
			return NotFound("kind")
		}
		if err := validateKind("kind", kind); err != nil {
			return err
		}
		n := NewAuditEntry{Action: AuditKindRemoved, Target: "kind:" + kind}
		return r.actErr(ctx, n, func() error { return r.engine.DeleteKind(ctx, kind) })
	})
}

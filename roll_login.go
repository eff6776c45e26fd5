package rollcall

import (
	"context"
	"encoding/binary"
)

// Login starts a session and returns its token, once. It is a beat of the user
// and, with AttendOnLogin or AttendOnBeat, marks the day. Errors: user_banned,
// session_limit with the sessions in the way, conflict, invalid_argument; with
// a RetryKey also session_ended.
func (r *Roll) Login(ctx context.Context, l Login) (LoggedIn, error) {
	return observe(ctx, r, "login", func() (LoggedIn, error) { return r.login(ctx, l) })
}

func (r *Roll) login(ctx context.Context, l Login) (LoggedIn, error) {
	if err := l.validate(); err != nil {
		return LoggedIn{}, err
	}
	nonce, random := newSecret(), newSecret()
	token, hash := r.newToken(l.User, nonce)
	now := r.clock.Now()
	b := StartSession{
		Session: Session{
			User: l.User, Kind: l.Kind, Name: l.Name, App: l.App, Device: l.Device, DeviceID: l.DeviceID,
			IP: l.IP.Unmap(), UserAgent: l.UserAgent, Attrs: l.Attrs,
		},
		Evict:     l.Evict,
		Random:    binary.BigEndian.Uint64(random[:]),
		Token:     hash,
		BanKey:    r.banKey(l.User),
		Policies:  r.policies.Load(),
		MarkToday: r.opts.AttendanceOn != AttendManual,
		Today:     DayOf(now, r.opts.Timezone),
	}
	if l.RetryKey != "" {
		b.Retry = &Retry{
			Key:     r.keyed("retry", []byte(l.RetryScope), []byte(l.RetryKey)),
			Request: l.digest(),
			Nonce:   nonce,
		}
	}
	started, err := r.engine.StartSession(ctx, now, b)
	if err != nil {
		return LoggedIn{}, err
	}
	if started.Replayed {
		if token, err = r.replayedToken(ctx, l.User, started.Nonce); err != nil {
			return LoggedIn{}, err
		}
	}
	return LoggedIn{Session: started.Session, Token: token, BeatKey: r.BeatKey(started.Session.ID), Ended: started.Ended}, nil
}

// replayedToken derives the token of the first login again, and makes sure that
// it still is the session's.
func (r *Roll) replayedToken(ctx context.Context, user string, nonce [32]byte) (string, error) {
	token, hash := r.newToken(user, nonce)
	s, err := r.engine.Lookup(ctx, r.clock.Now(), Ref{Token: &hash}, ViewerAdmin)
	switch {
	case CodeOf(err) == CodeNotFound:
		return "", &Error{
			Code: CodeConflict, Field: "idempotency_key",
			Detail: "was used for a login whose token has been rotated since: log in with another key",
		}
	case err == nil && s.End != nil:
		return "", SessionEndedError(s.End)
	}
	return token, err
}

// newToken derives a user's token from 256 random bits. Going through the
// secret lets a retried login get the same token, though it is not kept.
func (r *Roll) newToken(user string, nonce [32]byte) (string, TokenHash) {
	return newToken(uint16(HashUser(user)), r.keyed("token", nonce[:]))
}

// Rotate gives a live session a new token and returns it; the old one is
// unknown from then on.
func (r *Roll) Rotate(ctx context.Context, id SessionID) (Session, string, error) {
	token, hash := newToken(id.Home(), newSecret())
	s, err := observe(ctx, r, "rotate", func() (Session, error) {
		return r.engine.Rotate(ctx, r.clock.Now(), id, hash)
	})
	if err != nil {
		return Session{}, "", err
	}
	return s, token, nil
}

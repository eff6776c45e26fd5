package rollcall

import (
	"context"
	"strings"
	"time"
)

// The texts of passes begin so, and 43 characters follow.
const (
	linkPrefix           = "rcl_"
	consoleSessionPrefix = "rcs_"
)

// consoleExtendEvery is how far apart the writes are that a session in use makes.
const consoleExtendEvery = time.Minute

// NewConsoleLink makes a link that signs in once, within ConsoleLinkTTL, with a role
// that key has. The session that it begins depends on key: it ends with it.
// CodeForbidden if the key may do less than role. The text is kept only as a hash
// and shown here once.
func (r *Roll) NewConsoleLink(ctx context.Context, key APIKey, role Role) (text string, expires time.Time, err error) {
	if role.rank() == 0 {
		return "", expires, Invalid("role", "must be reader, writer or admin, is %q", role)
	}
	if !key.Role.Allows(role) {
		return "", expires, &Error{Code: CodeForbidden, Field: "role", Detail: "a link cannot have a higher role than the key that makes it, which is " + string(key.Role)}
	}
	now := r.consoleNow()
	p := ConsolePass{Kind: PassLink, Role: role, Key: key.Hash, CreatedAt: now, ExpiresAt: now.Add(ConsoleLinkTTL), EndsAt: now.Add(ConsoleLinkTTL)}
	if !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(p.EndsAt) {
		p.ExpiresAt, p.EndsAt = key.ExpiresAt, key.ExpiresAt
	}
	text = newPassText(linkPrefix)
	p.Hash = HashPass(text)
	err = r.do(ctx, "console_link", func() error { return r.engine.PutPass(ctx, now, p) })
	return text, p.ExpiresAt, err
}

// SignIn begins a session of the console and returns its text, which is kept only
// as a hash and shown here once. CodeUnauthenticated if what is presented is not
// known, was used, or works no more.
func (r *Roll) SignIn(ctx context.Context, in ConsoleSignIn) (string, ConsoleSession, error) {
	var text string
	s, err := observe(ctx, r, "console_sign_in", func() (ConsoleSession, error) {
		now := r.consoleNow()
		p, key, err := r.checkSignIn(ctx, now, in)
		if err != nil {
			return ConsoleSession{}, err
		}

		// The session of before goes first: a browser has one at a time.
		if err := r.endConsoleSession(ctx, now, in.Replaces); err != nil {
			return ConsoleSession{}, err
		}

		text = newPassText(consoleSessionPrefix)
		p.Hash, p.Kind, p.CreatedAt = HashPass(text), PassSession, now
		p.ExpiresAt, p.EndsAt = now.Add(ConsoleIdle), now.Add(ConsoleLifetime)
		if !key.ExpiresAt.IsZero() && key.ExpiresAt.Before(p.EndsAt) {
			p.EndsAt = key.ExpiresAt
		}
		p.ExpiresAt = earlier(p.ExpiresAt, p.EndsAt)
		return consoleSessionOf(p, key), r.engine.PutPass(ctx, now, p)
	})
	if err != nil {
		return "", ConsoleSession{}, err
	}
	return text, s, nil
}

// checkSignIn returns whom what is presented lets in: by, role, key and name of the
// pass. A link is used up by that.
func (r *Roll) checkSignIn(ctx context.Context, now time.Time, in ConsoleSignIn) (ConsolePass, APIKey, error) {
	given := 0
	for _, text := range []string{in.Link, in.Key, in.Proxy} {
		if text != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return ConsolePass{}, APIKey{}, Invalid("link", "give one of link and key")
	case in.Link != "":
		return r.takeLink(ctx, now, in.Link)
	case in.Key != "":
		key, err := r.Authenticate(ctx, in.Key)
		return ConsolePass{By: SignedInByKey, Role: key.Role, Key: key.Hash}, key, err
	default:
		err := validateText("proxy", in.Proxy, MaxNameLen)
		if err == nil && in.Role.rank() == 0 {
			err = Invalid("role", "must be reader, writer or admin, is %q", in.Role)
		}
		return ConsolePass{By: SignedInByProxy, Role: in.Role, Name: in.Proxy}, APIKey{}, err
	}
}

// takeLink uses a link up.
func (r *Roll) takeLink(ctx context.Context, now time.Time, text string) (ConsolePass, APIKey, error) {
	bad := &Error{Code: CodeUnauthenticated, Field: "link", Detail: "this link is not known: it was used, or is older than 15 minutes. Make another with \"rollcall console link\""}
	if !strings.HasPrefix(text, linkPrefix) {
		return ConsolePass{}, APIKey{}, bad
	}
	p, err := r.engine.TakePass(ctx, now, HashPass(text))
	if CodeOf(err) == CodeNotFound || err == nil && p.Kind != PassLink {
		return p, APIKey{}, bad
	}
	if err != nil {
		return p, APIKey{}, err
	}
	key, err := r.keyOfPass(ctx, now, &p)
	return ConsolePass{By: SignedInByLink, Role: p.Role, Key: p.Key}, key, err
}

// ConsoleSession returns the session with a text; CodeUnauthenticated if there is
// none, it has ended, or its key works no more. Looking does not count as use.
func (r *Roll) ConsoleSession(ctx context.Context, text string) (ConsoleSession, error) {
	return observe(ctx, r, "console_session", func() (ConsoleSession, error) {
		p, key, err := r.consolePass(ctx, r.consoleNow(), text)
		return consoleSessionOf(p, key), err
	})
}

// ConsoleSessionOf is ConsoleSession for who keeps the hash of the text alone.
func (r *Roll) ConsoleSessionOf(ctx context.Context, hash PassHash) (ConsoleSession, error) {
	return observe(ctx, r, "console_session", func() (ConsoleSession, error) {
		p, key, err := r.passWith(ctx, r.consoleNow(), hash)
		return consoleSessionOf(p, key), err
	})
}

// UseConsoleSession is ConsoleSession for a request of the session's browser: it
// keeps the session for another ConsoleIdle, to within a minute.
func (r *Roll) UseConsoleSession(ctx context.Context, text string) (ConsoleSession, error) {
	return observe(ctx, r, "console_session", func() (ConsoleSession, error) {
		now := r.consoleNow()
		p, key, err := r.consolePass(ctx, now, text)
		if err != nil {
			return ConsoleSession{}, err
		}
		expires := earlier(now.Add(ConsoleIdle), p.EndsAt)
		last := expires.Equal(p.EndsAt) && expires.After(p.ExpiresAt) // there is no later write
		if last || expires.Sub(p.ExpiresAt) >= consoleExtendEvery {
			err = r.engine.ExtendPass(ctx, now, p.Hash, expires)
			switch CodeOf(err) {
			case CodeNotFound: // signed out meanwhile
				return ConsoleSession{}, consoleSessionEnded()
			case CodeUnavailable, CodeStorageFull: // a store that takes no writes can be read
			default:
				if err != nil {
					return ConsoleSession{}, err
				}
				p.ExpiresAt = expires
			}
		}
		return consoleSessionOf(p, key), nil
	})
}

// SignOut ends a session of the console. That of a text that is none is no error.
func (r *Roll) SignOut(ctx context.Context, text string) error {
	return r.do(ctx, "console_sign_out", func() error { return r.endConsoleSession(ctx, r.consoleNow(), text) })
}

func (r *Roll) endConsoleSession(ctx context.Context, now time.Time, text string) error {
	if !strings.HasPrefix(text, consoleSessionPrefix) {
		return nil
	}
	_, err := r.engine.TakePass(ctx, now, HashPass(text))
	if CodeOf(err) == CodeNotFound {
		return nil
	}
	return err
}

// consolePass finds the pass of a live session, and the key that it depends on.
func (r *Roll) consolePass(ctx context.Context, now time.Time, text string) (ConsolePass, APIKey, error) {
	if !strings.HasPrefix(text, consoleSessionPrefix) {
		return ConsolePass{}, APIKey{}, consoleSessionEnded()
	}
	return r.passWith(ctx, now, HashPass(text))
}

// passWith is consolePass by the hash of the text.
func (r *Roll) passWith(ctx context.Context, now time.Time, hash PassHash) (ConsolePass, APIKey, error) {
	p, err := r.engine.Pass(ctx, now, hash)
	if CodeOf(err) == CodeNotFound || err == nil && p.Kind != PassSession {
		return p, APIKey{}, consoleSessionEnded()
	}
	if err != nil {
		return p, APIKey{}, err
	}
	key, err := r.keyOfPass(ctx, now, &p)
	return p, key, err
}

// keyOfPass returns the key that a pass depends on, and takes from the pass what the
// key may not do. A key made after the pass is another one, even with the same text.
func (r *Roll) keyOfPass(ctx context.Context, now time.Time, p *ConsolePass) (APIKey, error) {
	if p.Key == (KeyHash{}) {
		return APIKey{}, nil
	}
	key, err := r.engine.Key(ctx, p.Key)
	switch {
	case CodeOf(err) == CodeNotFound:
		return key, consoleKeyEnded()
	case err != nil:
		return key, err
	case key.revoked(), key.expired(now), key.CreatedAt.After(p.CreatedAt):
		return key, consoleKeyEnded()
	}
	if !key.Role.Allows(p.Role) {
		p.Role = key.Role
	}
	return key, nil
}

func consoleSessionEnded() error {
	return &Error{Code: CodeUnauthenticated, Detail: "nobody is signed in to the console here, or no more: sign in"}
}

func consoleKeyEnded() error {
	return &Error{Code: CodeUnauthenticated, Detail: "the API key that this depends on was revoked or has expired: sign in with another"}
}

func consoleSessionOf(p ConsolePass, key APIKey) ConsoleSession {
	s := ConsoleSession{
		ID: passID(p.Hash), By: p.By, Role: p.Role, Key: key, Name: p.Name,
		CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt, EndsAt: p.EndsAt,
	}
	if s.Name == "" {
		s.Name = key.Name
	}
	return s
}

// consoleNow is the time to the millisecond, as passes keep it.
func (r *Roll) consoleNow() time.Time { return r.clock.Now().Truncate(time.Millisecond) }

func newPassText(prefix string) string {
	secret := newSecret()
	return prefix + tokenCoding.EncodeToString(secret[:])
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

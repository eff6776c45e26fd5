package rollcall

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"sort"
	"time"
)

// Login asks for a new session. Only User is required; an empty Kind or Name is
// the user's own.
type Login struct {
	User      string
	Kind      string
	Name      string
	App       string
	Device    string
	DeviceID  string
	IP        netip.Addr
	UserAgent string
	Attrs     map[string]string

	// Evict names sessions that are to end (CauseReplaced) if the login
	// succeeds, whatever the policy: those of them that are live sessions of
	// User. Others are ignored, as they may have ended meanwhile. At most
	// MaxEvict. It answers a refusal with session_limit, whose Conflicts name
	// the sessions in the way.
	Evict []SessionID

	// RetryKey makes the login safe to repeat for 10 minutes: the same key with
	// the same login returns the same session and token as long as the session
	// lives, and session_ended with its cause afterwards. With another login it
	// is a conflict, and so it is once the token has been rotated. A login that
	// was refused holds no key. RetryScope keeps callers' keys apart.
	RetryKey, RetryScope string
}

// MaxEvict is how many sessions one login may name to be ended.
const MaxEvict = 50

// LoggedIn is a login's outcome. Token is shown here and never again.
type LoggedIn struct {
	Session Session
	Token   string
	BeatKey [sha256.Size]byte // see BeatKey
	Ended   []Ended           // sessions that made room
}

func (l *Login) validate() error {
	if err := validateUser("user", l.User); err != nil {
		return err
	}
	if err := validateKind("kind", l.Kind); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name, value string
		limit       int
	}{
		{"name", l.Name, MaxNameLen},
		{"app", l.App, MaxAppLen},
		{"device", l.Device, MaxDeviceLen},
		{"device_id", l.DeviceID, MaxDeviceIDLen},
		{"user_agent", l.UserAgent, MaxUserAgentLen},
		{"idempotency_key", l.RetryKey, 255},
	} {
		if err := validateText(f.name, f.value, f.limit); err != nil {
			return err
		}
	}
	if l.IP.Zone() != "" {
		return Invalid("ip", "must not have a zone")
	}
	if len(l.Evict) > MaxEvict {
		return Invalid("evict", "names %d sessions, the limit is %d", len(l.Evict), MaxEvict)
	}
	return validateAttrs(l.Attrs)
}

// digest is a hash of all that the login says.
func (l *Login) digest() [sha256.Size]byte {
	h := sha256.New()
	put := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, s := range []string{l.User, l.Kind, l.Name, l.App, l.Device, l.DeviceID, l.IP.String(), l.UserAgent} {
		put(s)
	}
	for _, id := range l.Evict {
		put(string(id[:]))
	}
	put("") // no id is empty: the attributes begin
	keys := make([]string, 0, len(l.Attrs))
	for k := range l.Attrs {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		put(k)
		put(l.Attrs[k])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Login starts a session and returns its token, once. It is a beat of the user
// and, with AttendOnLogin or AttendOnBeat, marks the day. Errors: user_banned,
// session_limit with the sessions in the way, conflict, invalid_argument; with
// a RetryKey also session_ended.
func (r *Roll) Login(ctx context.Context, l Login) (LoggedIn, error) {
	return observe(r, "login", func() (LoggedIn, error) { return r.login(ctx, l) })
}

func (r *Roll) login(ctx context.Context, l Login) (LoggedIn, error) {
	if err := l.validate(); err != nil {
		return LoggedIn{}, err
	}
	nonce := newSecret()
	token := r.newToken(l.User, nonce)
	hash, _ := HashToken(token)
	random := newSecret()
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
	begun, err := r.engine.StartSession(ctx, now, b)
	if err != nil {
		return LoggedIn{}, err
	}
	if begun.Replayed {
		if token, err = r.replayedToken(ctx, l.User, begun.Nonce); err != nil {
			return LoggedIn{}, err
		}
	}
	return LoggedIn{Session: begun.Session, Token: token, BeatKey: r.BeatKey(begun.Session.ID), Ended: begun.Ended}, nil
}

// replayedToken derives the token of the first login again, and makes sure that
// it still is the session's.
func (r *Roll) replayedToken(ctx context.Context, user string, nonce [32]byte) (string, error) {
	token := r.newToken(user, nonce)
	hash, _ := HashToken(token)
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
func (r *Roll) newToken(user string, nonce [32]byte) string {
	return tokenText(uint16(HashUser(user)), r.keyed("token", nonce[:]))
}

// Rotate gives a live session a new token and returns it; the old one is
// unknown from then on.
func (r *Roll) Rotate(ctx context.Context, id SessionID) (Session, string, error) {
	secret := newSecret()
	token := tokenText(id.Home(), secret)
	hash, _ := HashToken(token)
	s, err := observe(r, "rotate", func() (Session, error) {
		return r.engine.Rotate(ctx, r.clock.Now(), id, hash)
	})
	if err != nil {
		return Session{}, "", err
	}
	return s, token, nil
}

// SessionRef names a session by its token or, if that is empty, its id.
type SessionRef struct {
	Token string
	ID    SessionID
}

func (s SessionRef) engineRef() (Ref, bool) {
	if s.Token == "" {
		return Ref{ID: s.ID}, !s.ID.IsZero()
	}
	hash, ok := HashToken(s.Token)
	return Ref{Token: &hash}, ok
}

// Touch is a sign of life of a session and so of its user. The session is
// returned as it is now. Errors: session_ended with its cause, unauthenticated
// if the session is not known.
func (r *Roll) Touch(ctx context.Context, ref SessionRef) (Session, error) {
	touched, err := r.TouchAll(ctx, []SessionRef{ref})
	if err != nil {
		return Session{}, err
	}
	return liveOrWhyNot(touched[0].Session, touched[0].Live)
}

// TouchAll touches up to 1,000 sessions, each on its own, and answers in the
// order asked; duplicates are allowed.
func (r *Roll) TouchAll(ctx context.Context, refs []SessionRef) ([]Touched, error) {
	if len(refs) > MaxLimit {
		return nil, Invalid("sessions", "holds %d entries, the limit is %d", len(refs), MaxLimit)
	}
	return observe(r, "touch", func() ([]Touched, error) { return r.touchAll(ctx, refs) })
}

func (r *Roll) touchAll(ctx context.Context, refs []SessionRef) ([]Touched, error) {
	known := make([]Ref, 0, len(refs))
	at := make([]int, 0, len(refs))
	for i, ref := range refs {
		if e, ok := ref.engineRef(); ok {
			known, at = append(known, e), append(at, i)
		}
	}
	now := r.clock.Now()
	touched, err := r.engine.Touch(ctx, now, known, r.policies.Load())
	if err != nil {
		return nil, err
	}
	out := make([]Touched, len(refs))
	for i, t := range touched {
		out[at[i]] = t
	}
	if r.opts.AttendanceOn == AttendOnBeat {
		return out, r.markTouched(ctx, now, touched)
	}
	return out, nil
}

func (r *Roll) markTouched(ctx context.Context, now time.Time, touched []Touched) error {
	day := DayOf(now, r.opts.Timezone)
	marks := make([]Mark, 0, len(touched))
	for _, t := range touched {
		if t.Live {
			marks = append(marks, Mark{User: t.Session.User, Kind: t.Session.Kind, Day: day})
		}
	}
	_, _, err := r.engine.Mark(ctx, now, marks)
	return err
}

// Verify returns the live session a token or id stands for, without counting
// as a sign of life. A token is its user's own and always works; by id the
// public does not find sessions of invisible users. Errors: session_ended with
// its cause, unauthenticated.
func (r *Roll) Verify(ctx context.Context, ref SessionRef) (Session, error) {
	return observe(r, "verify", func() (Session, error) {
		e, ok := ref.engineRef()
		if !ok {
			return Session{}, unknownSession()
		}
		viewer := r.viewer
		if e.Token != nil {
			viewer = ViewerAdmin
		}
		s, err := r.engine.Lookup(ctx, r.clock.Now(), e, viewer)
		if CodeOf(err) == CodeNotFound {
			return Session{}, unknownSession()
		}
		if err != nil {
			return Session{}, err
		}
		return liveOrWhyNot(s, s.End == nil)
	})
}

func liveOrWhyNot(s Session, live bool) (Session, error) {
	switch {
	case live:
		return s, nil
	case s.End != nil:
		return s, SessionEndedError(s.End)
	default:
		return Session{}, unknownSession()
	}
}

func unknownSession() error {
	return &Error{Code: CodeUnauthenticated, Detail: "no such session: log in"}
}

// SessionEndedError is the error that tells a client how its session ended.
func SessionEndedError(end *End) error {
	return &Error{
		Code: CodeSessionEnded, Cause: end.Cause, Reason: end.Reason,
		Detail: fmt.Sprintf("the session ended at %s", end.At.UTC().Format(time.RFC3339)),
	}
}

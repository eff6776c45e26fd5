package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// SessionService is what [Sessions] needs. A [rollcall.Roll] has it.
type SessionService interface {
	// Touch is a sign of life of a session; see [rollcall.Roll.Touch].
	Touch(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error)
	// Verify returns a live session; see [rollcall.Roll.Verify].
	Verify(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error)
}

// BeatService is what [Beats] needs. A [rollcall.Roll] has it.
type BeatService interface {
	// Beat is a sign of life of users; see [rollcall.Roll.Beat].
	Beat(ctx context.Context, users ...string) error
}

// DefaultEvery is how often a user's requests are written as signs of life, unless
// Options say otherwise: a tenth of the default window.
const DefaultEvery = rollcall.DefaultWindow / 10

// Options of the middleware. The zero value works.
type Options struct {
	// Cookie is the name of the cookie that carries the session token. It is read
	// where there is no "Authorization: Bearer" header; "" reads no cookie.
	Cookie string
	// Optional lets requests without a token through, without a session. A token
	// that is given has to be good all the same.
	Optional bool
	// Every is the time in which the requests of a session, or of a user, count as
	// one sign of life. It must be well below the window after which a user is
	// offline, and below the idle timeout of sessions: a tenth of the window is a
	// good measure. Default [DefaultEvery].
	Every time.Duration
	// Refuse answers a request that is refused. The error is a [rollcall.Error] that
	// says why: CodeSessionEnded with the cause and the reason, CodeUnauthenticated,
	// or what kept the service from answering. Default: 401, or 503, with
	// problem+json.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// Logger is told of beats that failed. Default: nobody is.
	Logger *slog.Logger
}

func (o *Options) fill() {
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Refuse == nil {
		o.Refuse = refuse
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Sessions returns middleware that lets requests of live sessions through. The
// token comes from the Authorization header or the cookie. Where the service cannot
// be asked, requests are refused: nobody gets in unseen.
func Sessions(service SessionService, o Options) func(http.Handler) http.Handler {
	o.fill()
	touched := newRecent[[sha256.Size]byte](o.Every)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token := tokenOf(r, o.Cookie)
			if token == "" && o.Optional {
				next.ServeHTTP(w, r)
				return
			}
			session, err := liveSession(r.Context(), service, touched, token)
			if err != nil {
				o.Refuse(w, r, err)
				return
			}
			next.ServeHTTP(w, r.WithContext(WithSession(r.Context(), session)))
		})
	}
}

// liveSession returns the session of a token. One request in a while is a sign of
// life, the others only ask.
func liveSession(ctx context.Context, service SessionService, touched *recent[[sha256.Size]byte], token string) (rollcall.Session, error) {
	hash, ok := rollcall.HashToken(token)
	if !ok {
		return rollcall.Session{}, &rollcall.Error{Code: rollcall.CodeUnauthenticated, Detail: "no session token: log in"}
	}
	ref := rollcall.SessionRef{Token: token}
	if !touched.first(hash.Sum) {
		return service.Verify(ctx, ref)
	}
	session, err := service.Touch(ctx, ref)
	if err != nil {
		touched.forget(hash.Sum)
	}
	switch rollcall.CodeOf(err) {
	case rollcall.CodeStorageFull, rollcall.CodeUnavailable:
		// A service that cannot write, as on a full disk, may still know who may come in.
		return service.Verify(ctx, ref)
	}
	return session, err
}

// Beats returns middleware by which each request is a sign of life of its user,
// for applications that know their users by themselves. user names the user of a
// request, "" for nobody. It refuses nothing: a beat that fails is logged.
func Beats(service BeatService, user func(*http.Request) string, o Options) func(http.Handler) http.Handler {
	o.fill()
	heard := newRecent[string](o.Every)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if id := user(r); id != "" && heard.first(id) {
				if err := service.Beat(r.Context(), id); err != nil {
					heard.forget(id)
					o.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a sign of life was not counted", slog.Any("error", err))
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// tokenOf returns the session token of a request, "" if there is none.
func tokenOf(r *http.Request, cookie string) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if cookie == "" {
		return ""
	}
	c, err := r.Cookie(cookie)
	if err != nil {
		return ""
	}
	return c.Value
}

type sessionKey struct{}

// WithSession returns a context that carries a session.
func WithSession(ctx context.Context, s rollcall.Session) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

// Session returns the session that a request behind [Sessions] belongs to; false
// if it belongs to none.
func Session(ctx context.Context) (rollcall.Session, bool) {
	s, ok := ctx.Value(sessionKey{}).(rollcall.Session)
	return s, ok
}

// problem is the body of a refusal, as RFC 9457 has it.
type problem struct {
	Type   string         `json:"type"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Code   rollcall.Code  `json:"code"`
	Detail string         `json:"detail,omitempty"`
	Cause  rollcall.Cause `json:"cause,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

// refuse says 401 where logging in helps, and 503 where it does not.
func refuse(w http.ResponseWriter, _ *http.Request, err error) {
	p := problem{Type: "about:blank", Status: http.StatusServiceUnavailable, Code: rollcall.CodeUnavailable, Detail: "the session cannot be checked now: try again"}
	var e *rollcall.Error
	if errors.As(err, &e) && (e.Code == rollcall.CodeSessionEnded || e.Code == rollcall.CodeUnauthenticated) {
		p = problem{Type: "about:blank", Status: http.StatusUnauthorized, Code: e.Code, Detail: e.Detail, Cause: e.Cause, Reason: e.Reason}
	}
	p.Title = http.StatusText(p.Status)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	} else {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever hung up does not need it
}

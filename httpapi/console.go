package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// signInRequest is what somebody signs in to the console with: one of its members.
type signInRequest struct {
	Link  string `json:"link,omitempty" given:"filled" doc:"what stands behind #link= in a one-time link"`
	Key   string `json:"key,omitempty" given:"filled" doc:"an API key; it is looked at once and not kept"`
	Proxy bool   `json:"proxy,omitempty" doc:"true: as whom a trusted proxy names in the header that console.header is set to"`
}

// consoleSession is a browser that is signed in to the console.
type consoleSession struct {
	Role  rollcall.Role `json:"role"`
	By    string        `json:"by" enum:"link,key,proxy,off" doc:"how it was signed in; off: nobody has to, as auth is off"`
	Name  string        `json:"name" doc:"of the API key, or whom the proxy named"`
	KeyID string        `json:"key_id,omitempty" doc:"of the API key that the session depends on: it ends with it"`

	ExpiresAt     instant       `json:"expires_at,omitempty" doc:"when it ends at the latest"`
	IdleExpiresAt instant       `json:"idle_expires_at,omitempty" doc:"when it ends unless it is used before"`
	Server        consoleServer `json:"server"`
}

// consoleState says whether the browser is signed in to the console. That it is not is
// no error: a page asks it first of all.
type consoleState struct {
	SignedIn bool            `json:"signed_in"`
	Proxy    bool            `json:"proxy,omitempty" doc:"true: nobody is signed in, and a trusted proxy names somebody who may sign in"`
	Session  *consoleSession `json:"session,omitempty"` // if somebody is signed in
}

// consoleServer is what a page has to know of the server.
type consoleServer struct {
	Engine        string `json:"engine" enum:"local,redis"`
	Version       string `json:"version"`
	Timezone      string `json:"timezone" doc:"IANA name of the zone of the civil day"`
	WindowSeconds int    `json:"window_seconds" doc:"the default window of presence"`
	Archive       bool   `json:"archive" doc:"whether login days are archived from here"`
}

type consoleLinkInput struct {
	Body struct {
		Role rollcall.Role `json:"role,omitempty" enum:"reader,writer,admin" doc:"of the session; that of the key unless said"`
	} `nameHint:"ConsoleLinkRequest"`
}

// consoleLink is a link that signs in once.
type consoleLink struct {
	Path      string        `json:"path" doc:"secret; the link, to be put behind the server's address. The secret in it stands behind #, which no browser sends"`
	Role      rollcall.Role `json:"role"`
	ExpiresAt instant       `json:"expires_at" doc:"15 minutes from now"`
}

// consoleLinkPath is the path of a one-time link, but for its secret.
const consoleLinkPath = "/console/#link="

// ConsoleLink returns the one-time link that a text of [rollcall.Roll.NewConsoleLink]
// is, below the address of a server.
func ConsoleLink(base, text string) string { return base + consoleLinkPath + text }

func (s *Server) registerConsole() {
	in := op("POST /v1/console/session", "console-sign-in", "Console", "Sign in to the console")
	in.Description = "Sets a cookie that a page of this server is let in by, in place of an API key. A session that the browser had ends. " +
		"The session ends when it is not used for 30 minutes, after 12 hours, with the API key that it depends on, and at the sign-out. " +
		"A request of a page that changes something needs a body of application/json or the header Rollcall-Console."
	in.RequestBody = s.jsonBody(&in, signInRequest{})
	in.Responses = s.consoleResponses("Signed in", consoleSession{})
	s.registerPlain(in, s.signIn)

	look := op("GET /v1/console/session", "console-session", "Console", "Who is signed in to the console")
	look.Description = "Says so too if nobody is, and drops a cookie that signs nobody in any more."
	look.Responses = s.consoleResponses("Whether somebody is, and who", consoleState{})
	s.registerPlain(look, s.lookAtSession)

	out := op("DELETE /v1/console/session", "console-sign-out", "Console", "Sign out of the console")
	out.Responses = map[string]*huma.Response{"204": {Description: "Nobody is signed in any more"}}
	s.registerPlain(out, s.signOut)

	link := op("POST /v1/console/links", "create-console-link", "Console", "Make a link that signs in to the console once")
	link.DefaultStatus = http.StatusCreated
	register(s, link, s.createConsoleLink)
}

func (s *Server) consoleResponses(about string, answer any) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {Description: about, Content: s.jsonContent(answer)}}
}

// signIn begins a session of the console.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	c := callerOf(ctx)
	if s.opts.Auth == AuthOff {
		s.replySession(w, r, nil)
		return
	}
	var in signInRequest
	if err := decode(c.body, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	cookie := consoleCookieOf(r)
	if err := checkCookieIsKept(r, cookie); err != nil {
		s.fail(w, r, err)
		return
	}
	with := rollcall.ConsoleSignIn{Link: in.Link, Key: in.Key, Replaces: cookie.Value}
	if in.Proxy {
		with.Proxy, with.Role = s.proxyUser(c, r), s.opts.ConsoleHeaderRole
		if with.Proxy == "" {
			s.fail(w, r, s.chargeFailure(c, unauthenticated("no trusted proxy names anybody here: sign in by a link or an API key")))
			return
		}
	}
	text, session, err := s.roll.SignIn(ctx, with)
	if err != nil {
		s.fail(w, r, s.chargeFailure(c, err))
		return
	}
	s.streams.credentials.changed() // the session that it replaces has ended
	c.console, c.key, c.role = &session, session.Key, session.Role
	if err := s.signedIn(ctx, &session); err != nil {
		s.fail(w, r, errors.Join(err, s.roll.SignOut(ctx, text)))
		return
	}
	cookie.Value, cookie.MaxAge = text, int(session.EndsAt.Sub(s.roll.Now())/time.Second)
	http.SetCookie(w, cookie)
	s.replySession(w, r, &session)
}

// signedIn is the one place where a sign-in that succeeded is known.
func (s *Server) signedIn(ctx context.Context, session *rollcall.ConsoleSession) error {
	s.security.act(ctx, "console_signed_in", slog.String("session", session.ID),
		slog.String("by", string(session.By)), slog.String("role", string(session.Role)))
	return s.roll.Audit(rollcall.WithActor(ctx, callerOf(ctx).auditor()), rollcall.NewAuditEntry{
		Action: rollcall.AuditSignedIn, Detail: map[string]string{"by": string(session.By), "role": string(session.Role)},
	})
}

// lookAtSession says who is signed in, if anybody is.
func (s *Server) lookAtSession(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r.Context())
	if s.opts.Auth != AuthOff {
		if err := s.admitConsole(c, r); rollcall.CodeOf(err) == rollcall.CodeUnauthenticated {
			dropConsoleCookie(w, r)
			s.reply(w, r, http.StatusOK, consoleState{Proxy: s.proxyUser(c, r) != ""})
			return
		} else if err != nil {
			s.fail(w, r, err)
			return
		}
	}
	session, err := s.sessionOf(r.Context(), c.console)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, http.StatusOK, consoleState{SignedIn: true, Session: &session})
}

// signOut ends the session, also one that has ended.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	cookie := consoleCookieOf(r)
	if cookie.Value != "" && s.opts.Auth != AuthOff {
		c := callerOf(ctx)
		if session, err := s.roll.ConsoleSession(ctx, cookie.Value); err == nil {
			c.console, c.key, c.role = &session, session.Key, session.Role
			if err := s.roll.Audit(rollcall.WithActor(ctx, c.auditor()), rollcall.NewAuditEntry{Action: rollcall.AuditSignedOut}); err != nil {
				s.fail(w, r, err)
				return
			}
		}
		if err := s.roll.SignOut(ctx, cookie.Value); err != nil {
			s.fail(w, r, err)
			return
		}
		s.streams.credentials.changed()
		if c.console != nil {
			s.security.act(ctx, "console_signed_out", slog.String("session", c.console.ID))
		}
	}
	dropConsoleCookie(w, r)
	w.WriteHeader(http.StatusNoContent)
}

// createConsoleLink makes a one-time link. It depends on the key that asks for it.
func (s *Server) createConsoleLink(ctx context.Context, in *consoleLinkInput) (consoleLink, error) {
	c := callerOf(ctx)
	switch {
	case s.opts.Auth == AuthOff:
		return consoleLink{}, forbidden("no links are made while auth is off: nobody has to sign in")
	case c.key.ID == "":
		return consoleLink{}, forbidden("a link depends on an API key, and this session of the console has none")
	}
	role := in.Body.Role
	if role == "" {
		role = c.role
	}
	if err := c.need(role, "a link of this role"); err != nil {
		return consoleLink{}, err
	}
	text, expires, err := s.roll.NewConsoleLink(ctx, c.key, role)
	if err != nil {
		return consoleLink{}, err
	}
	s.security.act(ctx, "console_link_made", slog.String("role", string(role)))
	return consoleLink{Path: ConsoleLink("", text), Role: role, ExpiresAt: instantOf(expires)}, nil
}

// replySession answers with a session; nil is that of everyone while auth is off.
func (s *Server) replySession(w http.ResponseWriter, r *http.Request, session *rollcall.ConsoleSession) {
	out, err := s.sessionOf(r.Context(), session)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, http.StatusOK, out)
}

// sessionOf returns what pages are told of a session; nil is that of everyone while auth
// is off.
func (s *Server) sessionOf(ctx context.Context, session *rollcall.ConsoleSession) (consoleSession, error) {
	engine, err := s.engineName(ctx)
	if err != nil {
		return consoleSession{}, err
	}
	out := consoleSession{Role: rollcall.RoleAdmin, By: "off", Name: "local"}
	if session != nil {
		out = consoleSession{
			Role: session.Role, By: string(session.By), Name: session.Name, KeyID: session.Key.ID,
			ExpiresAt: instantOf(session.EndsAt), IdleExpiresAt: instantOf(session.ExpiresAt),
		}
	}
	out.Server = consoleServer{
		Engine: engine, Version: s.opts.Version,
		Timezone: s.roll.Timezone().String(), WindowSeconds: int(s.roll.Window() / time.Second),
		Archive: s.opts.Archive != nil,
	}
	return out, nil
}

// engineName asks the engine once what it is.
func (s *Server) engineName(ctx context.Context) (string, error) {
	if name := s.engine.Load(); name != nil {
		return *name, nil
	}
	stats, err := s.roll.Stats(ctx)
	if err != nil {
		return "", err
	}
	s.engine.Store(&stats.Engine)
	return stats.Engine, nil
}

// proxyUser returns whom a trusted proxy names in the header of the configuration,
// "" for nobody. A header that is there twice names nobody: one of them may be the
// client's own.
func (s *Server) proxyUser(c *caller, r *http.Request) string {
	if s.opts.ConsoleHeader == "" || c.peer == (netip.Addr{}) || !s.opts.trusts(c.peer) {
		return ""
	}
	named := r.Header.Values(s.opts.ConsoleHeader)
	if len(named) != 1 {
		return ""
	}
	return named[0]
}

package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// gate stands before the handler of one route: it lets in who may call it, and
// turns away requests that the route has no use for.
type gate struct {
	Route
	params    []string // the parameters in its path
	queries   []string // the query parameters the route knows
	attrs     bool     // and those that begin with "attr."
	bodyTypes []string // the media types it takes; none if it takes no body
	body      *shape   // of its JSON body; nil if it takes none
}

// attrParam stands in the OpenAPI document for all parameters attr.<key>.
const (
	attrParam  = "attr.*"
	attrPrefix = "attr."
)

// learn takes from the route's description what a request may hold.
func (g *gate) learn(op *huma.Operation) {
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			g.params = append(g.params, p.Name)
		case p.In != "query":
		case p.Name == attrParam:
			g.attrs = true
		default:
			g.queries = append(g.queries, p.Name)
		}
	}
	if op.RequestBody != nil {
		for t := range op.RequestBody.Content {
			g.bodyTypes = append(g.bodyTypes, t)
		}
		slices.Sort(g.bodyTypes)
	}
}

// guard puts the gate before a handler.
func (s *Server) guard(g *gate, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.decodePath(r)
		c := callerOf(r.Context())
		c.gate = g
		// Who calls is decided before anything is read or decoded: strangers
		// get a few kilobytes, a few seconds and no work.
		err := s.admit(g, c, r)
		if err == nil && (c.role != "" || c.session.User != "") {
			trust(r.Body)
		}
		if err == nil {
			err = g.check(c, r)
		}
		if err == nil {
			err = g.takeBody(c, r)
		}
		if err != nil {
			s.turnedAway(c, err)
			s.fail(w, r, err)
			return
		}
		if g.Needs == AccessAdmin || g.AdminWhen != "" { // what the audit trail is kept of
			r = r.WithContext(rollcall.WithActor(r.Context(), c.auditor()))
		}
		next(w, r)
	}
}

// takeBody reads a JSON body into memory and checks it, so that handlers decode
// what has been found to be strict.
func (g *gate) takeBody(c *caller, r *http.Request) error {
	if g.body == nil || streams(r) {
		return nil
	}
	data, err := readBody(r, g.bodyLimit(c))
	if err != nil {
		return err
	}
	if len(data) > 0 {
		if err := checkJSON(data, g.body); err != nil {
			return err
		}
	}
	c.body = data
	r.Body = io.NopCloser(bytes.NewReader(data)) // for huma, which reads for itself
	return nil
}

// maxStrangerBody is the largest body of callers without an API key, in bytes.
// It holds a token, and there is nothing else for them to say.
const maxStrangerBody = 4 << 10

func (g *gate) bodyLimit(c *caller) int64 {
	if c.role == "" {
		return maxStrangerBody
	}
	return g.maxBody()
}

// decodePath undoes what exactPath did to the route's parameters.
func (g *gate) decodePath(r *http.Request) {
	for _, name := range g.params {
		if plain, err := url.PathUnescape(r.PathValue(name)); err == nil {
			r.SetPathValue(name, plain)
		}
	}
}

// admit decides whether the caller may call the route, and fills in who it is.
func (s *Server) admit(g *gate, c *caller, r *http.Request) error {
	switch g.Needs {
	case AccessPublic:
		return nil
	case AccessUser:
		return s.admitUser(g, c, r)
	case AccessConsole:
		return s.admitPage(r)
	case AccessReader, AccessWriter, AccessAdmin:
		if ticket := ticketIn(g, r); ticket != "" {
			return s.admitTicket(c, r, ticket)
		}
		return s.admitKey(rollcall.Role(g.Needs), c, r)
	default:
		return forbidden("this route is served to nobody")
	}
}

const keyPrefix = "rck_"

func (s *Server) admitKey(need rollcall.Role, c *caller, r *http.Request) error {
	if s.opts.Auth == AuthOff {
		c.role = rollcall.RoleAdmin
		return nil
	}
	if hasConsoleCookie(r) {
		if err := s.admitConsole(c, r); err != nil {
			return err
		}
		return c.need(need, "this")
	}
	text := bearer(r)
	if !strings.HasPrefix(text, keyPrefix) {
		return unauthenticated("this needs an API key: Authorization: Bearer rck_…")
	}
	key, err := s.roll.Authenticate(r.Context(), text)
	if err != nil {
		return s.chargeFailure(c, err)
	}
	c.key, c.role = key, key.Role
	if err := s.perKey.take(key.ID, time.Now()); err != nil {
		return err
	}
	return c.need(need, "this")
}

func (s *Server) admitUser(g *gate, c *caller, r *http.Request) error {
	text := bearer(r)
	switch {
	case text == "":
		var err error
		if c.token, err = s.cookieToken(g, r); err != nil {
			return err
		}
	case g.Keys != "" && strings.HasPrefix(text, keyPrefix):
		return s.admitKey(g.Keys, c, r)
	default:
		c.token = text
	}
	if g.Keys != "" && s.opts.Auth == AuthOff {
		c.role = rollcall.RoleAdmin
	}
	// Only routes that need a live session verify it here. Touch and verify ask the
	// engine themselves: how a session ended is part of their answers.
	if !g.Live {
		return nil
	}
	var err error
	c.session, err = s.ofSession(c.token, func() (rollcall.Session, error) {
		return s.live(r, rollcall.SessionRef{Token: c.token})
	})
	return err
}

// ofSession runs an end user's own request under the allowance of the session
// that the token belongs to. A token that was never known has none: live and
// chargeFailure charge it to its address, so that nobody there can use up the
// allowance of others.
func (s *Server) ofSession(token string, run func() (rollcall.Session, error)) (rollcall.Session, error) {
	hash, ok := rollcall.HashToken(token)
	if !ok {
		return run()
	}
	who, now := [sessionHashSize]byte(hash.Sum[:]), time.Now()
	if err := s.perSession.takeKnown(who, now); err != nil {
		return rollcall.Session{}, err
	}
	session, err := run()
	if err == nil || rollcall.CodeOf(err) == rollcall.CodeSessionEnded {
		s.perSession.know(who, now)
	}
	return session, err
}

// live verifies a session, and counts what was never one as a failure of the
// client's address.
func (s *Server) live(r *http.Request, ref rollcall.SessionRef) (rollcall.Session, error) {
	if ref.Token == "" && ref.ID.IsZero() {
		return rollcall.Session{}, unauthenticated("this needs the token of a session: Authorization: Bearer rct_…")
	}
	c := callerOf(r.Context())
	roll := s.roll // a token is its user's own, and who may end a session by id may know it
	if c.role == rollcall.RoleReader {
		roll = s.public
	}
	session, err := roll.Verify(r.Context(), ref)
	return session, s.chargeFailure(c, err)
}

// chargeFailure charges a credential that was never known to the address it came
// from. Once an address has presented too many, err becomes a refusal to answer.
// Good credentials are not charged: nobody shuts out others behind the same proxy.
func (s *Server) chargeFailure(c *caller, err error) error {
	if rollcall.CodeOf(err) != rollcall.CodeUnauthenticated {
		return err
	}
	s.security.authenticationFailed(c)
	if limited := s.failures.take(limitKey(c.addr), time.Now()); limited != nil {
		return limited
	}
	return err
}

// cookieToken returns the token in the verify cookie, if there is one. As
// browsers send cookies on their own, the request must come from a page of the
// same origin or of one of CORSOrigins. A reverse proxy that verifies has its
// own rules.
func (s *Server) cookieToken(g *gate, r *http.Request) (string, error) {
	if s.opts.VerifyCookie == "" {
		return "", nil
	}
	cookie, err := r.Cookie(s.opts.VerifyCookie)
	if err != nil {
		return "", nil //nolint:nilerr // there is one error only: no such cookie
	}
	if !g.Pages {
		return cookie.Value, nil
	}
	asPost := *r
	asPost.Method = http.MethodPost // the check lets every GET pass, and a page must not read either
	if err := s.crossOrigin.Check(&asPost); err != nil {
		return "", forbidden("a page of another origin may not use this cookie")
	}
	return cookie.Value, nil
}

func bearer(r *http.Request) string {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(text)
}

// check refuses query parameters and bodies the route does not know.
func (g *gate) check(c *caller, r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return rollcall.Invalid("query", "is not a query string")
	}
	for name, values := range query {
		known := slices.Contains(g.queries, name) || (g.Tickets && name == ticketParam) ||
			(g.attrs && strings.HasPrefix(name, attrPrefix) && name != attrPrefix)
		switch {
		case !known:
			return rollcall.Invalid(clip(name), "is not a query parameter of this route")
		case len(values) > 1:
			return rollcall.Invalid(clip(name), "is given %d times, once is the limit", len(values))
		case values[0] == "" && !strings.HasPrefix(name, attrPrefix):
			return rollcall.Invalid(clip(name), "is given but empty: leave it out, or say which")
		}
	}
	c.query = query
	r.URL.RawQuery = query.Encode() // one form for all who read it after
	return g.checkBody(r)
}

func (g *gate) checkBody(r *http.Request) error {
	if len(g.bodyTypes) == 0 {
		if r.ContentLength > 0 && r.Method != http.MethodGet && r.Method != http.MethodHead {
			return rollcall.Invalid("body", "this route takes no body")
		}
		return nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &rollcall.Error{Code: codeMediaType, Field: "content-encoding", Detail: fmt.Sprintf("bodies are not taken packed, and this one is %.60q: send it as it is", encoding)}
	}
	header := r.Header.Get("Content-Type")
	if header == "" || r.ContentLength == 0 {
		return nil // taken for JSON, or nothing to take
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil || !slices.Contains(g.bodyTypes, mediaType) {
		return &rollcall.Error{Code: codeMediaType, Field: "content-type", Detail: fmt.Sprintf("must be %s, is %.60q", strings.Join(g.bodyTypes, " or "), header)}
	}
	return nil
}

// clip keeps a name from the outside short enough to be quoted.
func clip(name string) string {
	const limit = 64
	if len(name) <= limit {
		return name
	}
	return strings.ToValidUTF8(name[:limit], "") + "…"
}

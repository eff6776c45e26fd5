package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

type verifyRequest struct {
	Session string `json:"session,omitempty" given:"filled" doc:"the session's id"`
}

func (s *Server) registerVerify() {
	const about = "For nginx auth_request, Caddy forward_auth, Traefik ForwardAuth and Envoy ext_authz: 200 with the headers " +
		"Rollcall-User, Rollcall-Session and Rollcall-Kind, percent-encoded, always all three; or 401, with Rollcall-Cause and Rollcall-Reason, " +
		"percent-encoded, if the session has ended. Rollcall-Code has the code of every error. It is no sign of life, unless a trusted proxy asks with touch=1."
	headers := map[string]*huma.Header{}
	for _, name := range []string{"Rollcall-User", "Rollcall-Session", "Rollcall-Kind"} {
		headers[name] = &huma.Header{Schema: &huma.Schema{Type: huma.TypeString}, Description: "percent-encoded"}
	}
	touch := []*huma.Param{{
		Name: "touch", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean},
		Description: "1: count as a touch; from trusted proxies only, and written at most every 5 s a session",
	}, {
		Name: "proxy", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean},
		Description: "1: answer 200, 401 or 403 only, as proxies know no other status; what cannot be checked is 401",
	}}
	get := op("GET /v1/verify", "verify", "End user", "Whether a session is live, by its token")
	get.Description, get.Parameters = about, touch
	get.Responses = map[string]*huma.Response{"200": {Description: "The session is live", Headers: headers}}
	s.registerPlain(get, s.verifyToken)

	post := op("POST /v1/verify", "verify-by-id", "End user", "Whether a session is live, by its id with an API key, or by its token")
	post.Description, post.Parameters = about, touch
	post.RequestBody = s.jsonBody(&post, verifyRequest{})
	post.Responses = map[string]*huma.Response{"200": {Description: "The session is live", Headers: headers, Content: s.jsonContent(touched{})}}
	s.registerPlain(post, s.verifyID)
}

func (s *Server) verifyToken(w http.ResponseWriter, r *http.Request) {
	s.verify(w, r, rollcall.SessionRef{Token: callerOf(r.Context()).token})
}

// verifyID answers for an id if the caller has a key, and else for the token:
// some proxies pass on the method of the request they ask about.
func (s *Server) verifyID(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r.Context())
	var in verifyRequest
	if err := decode(c.body, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	switch {
	case in.Session == "" && c.token != "":
		s.verifyToken(w, r)
		return
	case c.role == "":
		s.fail(w, r, unauthenticated("a session's id needs an API key: Authorization: Bearer rck_…"))
		return
	case in.Session == "":
		s.fail(w, r, rollcall.Invalid("session", "is required"))
		return
	}
	id, err := parseID("session", in.Session)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.verify(w, r, rollcall.SessionRef{ID: id})
}

func (s *Server) verify(w http.ResponseWriter, r *http.Request, ref rollcall.SessionRef) {
	found, err := s.verified(r, ref)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Rollcall-User", percent(found.User))
	h.Set("Rollcall-Session", found.ID.String())
	h.Set("Rollcall-Kind", percent(found.Kind))
	if r.Method == http.MethodPost {
		s.reply(w, r, http.StatusOK, touched{State: "live", Session: sessionOf(found)})
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) verified(r *http.Request, ref rollcall.SessionRef) (rollcall.Session, error) {
	c := callerOf(r.Context())
	if _, err := flag(c.query, "proxy"); err != nil {
		return rollcall.Session{}, err
	}
	asTouch, err := flag(c.query, "touch")
	switch {
	case err != nil:
		return rollcall.Session{}, err
	case asTouch && !s.opts.trusts(c.peer):
		return rollcall.Session{}, forbidden("touch=1 is for trusted proxies only, and %s is not one", addrText(c.peer))
	}
	found, err := s.live(r, ref)
	if err != nil || !asTouch || s.roll.Now().Sub(found.SeenAt) < verifyTouchEvery {
		return found, err
	}
	touched, err := s.roll.Touch(r.Context(), ref)
	switch rollcall.CodeOf(err) {
	case rollcall.CodeStorageFull, rollcall.CodeUnavailable:
		return found, nil // it lives; that nothing can be written, as on a full disk, shuts nobody out
	}
	return touched, err
}

// verifyTouchEvery is how often verify?touch=1 writes for a session: a page of
// fifty pictures is one sign of life.
const verifyTouchEvery = 5 * time.Second

// wantsProxy reports whether a verify asks for ?proxy=1.
func wantsProxy(r *http.Request) bool {
	on, err := flag(r.URL.Query(), "proxy")
	return err == nil && on
}

// tellProxy puts what a reverse proxy may want to pass on into headers, and with
// proxy=1 gives the problem a status that proxies take for an answer.
func tellProxy(h http.Header, p *problem, proxy bool) {
	h.Set("Rollcall-Code", string(p.Code))
	if p.Cause != "" {
		h.Set("Rollcall-Cause", percent(string(p.Cause)))
	}
	if p.Reason != "" {
		h.Set("Rollcall-Reason", percent(p.Reason))
	}
	if proxy && p.Status != http.StatusForbidden {
		p.Status = http.StatusUnauthorized
	}
}

// flag reads a parameter that is on or off.
func flag(query url.Values, name string) (bool, error) {
	switch query.Get(name) {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, rollcall.Invalid(name, "must be 1 or 0")
	}
}

// percent encodes all but the unreserved characters of RFC 3986, so that any
// text is a header's value and decodes the same everywhere.
func percent(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

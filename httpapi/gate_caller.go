package httpapi

import (
	"context"
	"mime"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/rollcall/rollcall"
)

// caller is who makes a request, as far as it is known: the chain fills in
// where from, the gate who.
type caller struct {
	requestID string
	peer      netip.Addr // the other end of the connection
	addr      netip.Addr // the client: peer, or whom a trusted proxy speaks for
	gate      *gate      // of the route; nil before it is found
	query     url.Values // checked by the gate
	body      []byte     // as JSON, checked by the gate

	role    rollcall.Role         // of the API key; "" without one
	key     rollcall.APIKey       // zero with AuthOff
	token   string                // a session's token, not yet looked up
	ticket  *rollcall.EventTicket // in place of a key; nil for none
	session rollcall.Session      // of the token, on routes that need a live one

	console *rollcall.ConsoleSession // in place of a key's text; nil for none
	pass    rollcall.PassHash        // of that session
}

type callerKey struct{}

func withCaller(ctx context.Context, c *caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) *caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return c
	}
	return &caller{}
}

// actor names the caller in what is remembered of an end or a ban.
func (c *caller) actor() string {
	switch {
	case c.key.Name != "":
		return c.key.Name
	case c.key.ID != "":
		return "key " + c.key.ID
	case c.console != nil:
		return c.console.Name
	default:
		return "local"
	}
}

// actorID names the caller in lines of the log, where names of keys, which
// anyone may choose, have no place.
func (c *caller) actorID() string {
	switch {
	case c.key.ID != "":
		return "key " + c.key.ID
	case c.console != nil:
		return "console " + c.console.ID
	case c.role != "":
		return "local"
	case c.session.User != "":
		return "self"
	default:
		return "nobody"
	}
}

// auditor names the caller in the audit trail.
func (c *caller) auditor() string {
	switch {
	case c.key.ID != "" && c.console != nil:
		return "key:" + c.key.ID + " console:" + c.console.ID
	case c.key.ID != "":
		return "key:" + c.key.ID
	case c.console != nil:
		return "console:" + c.console.Name // whom the proxy named
	default:
		return "local"
	}
}

// streams reports whether the body is a text of any length instead of JSON.
func streams(r *http.Request) bool {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return mediaType == textType
}

// worksNoMore refuses a caller whose key, or session of the console, has ended meanwhile.
func (c *caller) worksNoMore() error {
	if c.console != nil {
		return unauthenticated("this session of the console has ended: sign in")
	}
	return unauthenticated("this API key does not work any more")
}

// need refuses callers below a role; what says which part of the request asks
// for it.
func (c *caller) need(role rollcall.Role, what string) error {
	if c.role.Allows(role) {
		return nil
	}
	if c.console != nil {
		return forbidden("%s needs the role %s, and you are signed in as %s", what, role, c.role)
	}
	return forbidden("%s needs a key of role %s, this one is %s", what, role, c.role)
}

// view returns the service as the caller may see it.
func (s *Server) view(ctx context.Context) *rollcall.Roll {
	if callerOf(ctx).role == rollcall.RoleAdmin {
		return s.roll
	}
	return s.public
}

package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/rollcall/rollcall"
)

// session is a session on the wire.
type session struct {
	ID               rollcall.SessionID
	User, Kind, Name string
	App, Device, IP  string
	UserAgent        string `json:"user_agent"`
	Attrs            map[string]string
	LoginAt          time.Time `json:"login_at"`
	SeenAt           time.Time `json:"seen_at"`
	ExpiresAt        time.Time `json:"expires_at"`
	EndsAt           time.Time `json:"ends_at"`
	EndedAt          time.Time `json:"ended_at"`
	Cause            rollcall.Cause
	Reason           string
}

func (s session) domain() rollcall.Session {
	out := rollcall.Session{
		ID: s.ID, User: s.User, Kind: s.Kind, Name: s.Name, App: s.App, Device: s.Device, UserAgent: s.UserAgent,
		LoginAt: s.LoginAt, SeenAt: s.SeenAt, ExpiresAt: s.ExpiresAt, EndsAt: s.EndsAt,
	}
	out.IP, _ = netip.ParseAddr(s.IP) // "" is none
	if len(s.Attrs) > 0 {
		out.Attrs = s.Attrs
	}
	if s.Cause != "" {
		out.End = &rollcall.End{At: s.EndedAt, Cause: s.Cause, Reason: s.Reason}
		if s.User == "" { // of an erased user only the end is remembered
			out.ExpiresAt = time.Time{}
		}
	}
	return out
}

// ended says how many sessions ended, and names the first 100.
type ended struct {
	Ended    int
	Sessions []rollcall.SessionID
}

func (e ended) domain() rollcall.EndResult {
	if len(e.Sessions) == 0 {
		e.Sessions = nil
	}
	return rollcall.EndResult{Ended: e.Ended, Sessions: e.Sessions}
}

type loginRequest struct {
	User      string               `json:"user"`
	Kind      string               `json:"kind,omitempty"`
	Name      string               `json:"name,omitempty"`
	App       string               `json:"app,omitempty"`
	Device    string               `json:"device,omitempty"`
	DeviceID  string               `json:"device_id,omitempty"`
	IP        string               `json:"ip,omitempty"`
	UserAgent string               `json:"user_agent,omitempty"`
	Attrs     map[string]string    `json:"attrs,omitempty"`
	Evict     []rollcall.SessionID `json:"evict,omitempty"`
}

// Login starts a session and returns its token, once; see [rollcall.Roll.Login].
// Without a RetryKey the client makes one, so that a login that has to be sent
// again begins one session only.
func (c *Client) Login(ctx context.Context, l rollcall.Login) (rollcall.LoggedIn, error) {
	if err := notSent("retry_scope", l.RetryScope); err != nil {
		return rollcall.LoggedIn{}, err
	}
	r := call{method: http.MethodPost, path: "/v1/sessions", retryKey: l.RetryKey}
	if r.retryKey == "" {
		r.retryKey = rand.Text()
	}
	body := loginRequest{
		User: l.User, Kind: l.Kind, Name: l.Name, App: l.App, Device: l.Device, DeviceID: l.DeviceID,
		UserAgent: l.UserAgent, Attrs: l.Attrs, Evict: l.Evict,
	}
	if l.IP.IsValid() {
		body.IP = l.IP.String()
	}
	r.body = body

	var answer struct {
		Session session
		Token   string
		BeatKey string `json:"beat_key"`
		Ended   []struct {
			ID    rollcall.SessionID
			Cause rollcall.Cause
		}
	}
	if err := c.do(ctx, r, &answer); err != nil {
		return rollcall.LoggedIn{}, err
	}
	out := rollcall.LoggedIn{Session: answer.Session.domain(), Token: answer.Token}
	key, err := hex.DecodeString(answer.BeatKey)
	if err != nil || len(key) != len(out.BeatKey) {
		return out, &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the answer's beat_key is not 32 bytes in hex"}
	}
	copy(out.BeatKey[:], key)
	for _, e := range answer.Ended {
		out.Ended = append(out.Ended, rollcall.Ended{ID: e.ID, Cause: e.Cause})
	}
	return out, nil
}

// Session returns a session by id; see [rollcall.Roll.Session].
func (c *Client) Session(ctx context.Context, id rollcall.SessionID) (rollcall.Session, error) {
	var s session
	err := c.do(ctx, call{method: http.MethodGet, path: path("v1", "sessions", id.String())}, &s)
	return s.domain(), err
}

// UpdateSession changes a live session; see [rollcall.Roll.UpdateSession].
func (c *Client) UpdateSession(ctx context.Context, id rollcall.SessionID, p rollcall.SessionPatch) (rollcall.Session, error) {
	body := struct {
		Name  *string            `json:"name,omitempty"`
		App   *string            `json:"app,omitempty"`
		Attrs *map[string]string `json:"attrs,omitempty"`
	}{p.Name, p.App, p.Attrs}
	if p.Attrs != nil && *p.Attrs == nil { // none, which is not null
		body.Attrs = &map[string]string{}
	}
	var s session
	err := c.do(ctx, call{method: http.MethodPatch, path: path("v1", "sessions", id.String()), body: body}, &s)
	return s.domain(), err
}

// Rotate gives a live session a new token; see [rollcall.Roll.Rotate]. If it has
// to be sent again, the last token is the one that works.
func (c *Client) Rotate(ctx context.Context, id rollcall.SessionID) (rollcall.Session, string, error) {
	var answer struct {
		Session session
		Token   string
	}
	err := c.do(ctx, call{method: http.MethodPost, path: path("v1", "sessions", id.String(), "rotate")}, &answer)
	return answer.Session.domain(), answer.Token, err
}

// Verify returns the live session a token or id stands for, without a sign of
// life; see [rollcall.Roll.Verify]. By token it needs no key.
func (c *Client) Verify(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error) {
	r := call{method: http.MethodPost, path: "/v1/verify", token: ref.Token}
	if ref.Token == "" {
		r.body = map[string]string{"session": ref.ID.String()}
	} else if err := checkToken(ref.Token); err != nil {
		return rollcall.Session{}, err
	}
	var answer struct{ Session session }
	err := c.do(ctx, r, &answer)
	return answer.Session.domain(), err
}

// Touch is a sign of life of a session; see [rollcall.Roll.Touch]. By token it is
// one request and needs no key, by id it is two.
func (c *Client) Touch(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error) {
	if ref.Token == "" {
		return c.touchID(ctx, ref.ID)
	}
	if err := checkToken(ref.Token); err != nil {
		return rollcall.Session{}, err
	}
	var answer struct{ Session session }
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/touch", token: ref.Token}, &answer)
	return answer.Session.domain(), err
}

// Leave notes that a session's client went away and left it open; see
// [rollcall.Roll.Leave]. Over HTTP it takes the token, which the client has.
func (c *Client) Leave(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error) {
	if ref.Token == "" {
		return rollcall.Session{}, rollcall.Invalid("token", "is required: over HTTP a session leaves by its token")
	}
	if err := checkToken(ref.Token); err != nil {
		return rollcall.Session{}, err
	}
	q := newParams()
	q.flag("leave", true)
	var answer struct{ Session session }
	err := c.do(ctx, call{method: http.MethodPost, path: "/v1/touch", query: q.Values, token: ref.Token}, &answer)
	return answer.Session.domain(), err
}

// touchID touches by id and then asks for the session, which the touch of many
// does not show.
func (c *Client) touchID(ctx context.Context, id rollcall.SessionID) (rollcall.Session, error) {
	touched, err := c.TouchAll(ctx, []rollcall.SessionRef{{ID: id}})
	if err != nil {
		return rollcall.Session{}, err
	}
	if !touched[0].Live && touched[0].Session.End == nil {
		return rollcall.Session{}, unknownSession()
	}
	s, err := c.Session(ctx, id)
	if err == nil && s.End != nil {
		return rollcall.Session{}, rollcall.SessionEndedError(s.End)
	}
	return s, err
}

// checkToken refuses what cannot be a token: it would not fit into a header.
func checkToken(token string) error {
	if _, ok := rollcall.HashToken(token); !ok {
		return unknownSession()
	}
	return nil
}

func unknownSession() error {
	return &rollcall.Error{Code: rollcall.CodeUnauthenticated, Detail: "this session is not known"}
}

// TouchAll touches up to 1,000 sessions and answers in the order asked; see
// [rollcall.Roll.TouchAll]. Of a session that ended only the id, if it was asked by
// that, and the cause are told; of a live one only the id. Tokens and ids may be
// mixed: they are two requests then.
func (c *Client) TouchAll(ctx context.Context, refs []rollcall.SessionRef) ([]rollcall.Touched, error) {
	if len(refs) > rollcall.MaxLimit {
		return nil, rollcall.Invalid("sessions", "holds %d entries, the limit is %d", len(refs), rollcall.MaxLimit)
	}
	out := make([]rollcall.Touched, len(refs))
	tokens, ids := split(refs)
	for name, part := range map[string]touchPart{"tokens": tokens, "sessions": ids} {
		if len(part.names) == 0 {
			continue
		}
		var answer struct {
			Results []struct {
				State string
				Cause rollcall.Cause
			}
		}
		r := call{method: http.MethodPost, path: "/v1/touch", body: map[string][]string{name: part.names}}
		if err := c.do(ctx, r, &answer); err != nil {
			return nil, err
		}
		if len(answer.Results) != len(part.names) {
			return nil, &rollcall.Error{Code: rollcall.CodeInternal, Detail: fmt.Sprintf("%d sessions were touched, and %d answers came", len(part.names), len(answer.Results))}
		}
		for i, res := range answer.Results {
			at := part.at[i]
			out[at] = rollcall.Touched{Live: res.State == "live", Session: rollcall.Session{ID: refs[at].ID}}
			if res.State == "ended" {
				out[at].Session.End = &rollcall.End{Cause: res.Cause}
			}
		}
	}
	return out, nil
}

// touchPart is what is touched by one request, and where its answers go.
type touchPart struct {
	names []string
	at    []int
}

func split(refs []rollcall.SessionRef) (tokens, ids touchPart) {
	for i, ref := range refs {
		part, name := &ids, ref.ID.String()
		if ref.Token != "" {
			part, name = &tokens, ref.Token
		}
		part.names, part.at = append(part.names, name), append(part.at, i)
	}
	return tokens, ids
}

package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

type touchRequest struct {
	Token    string   `json:"token,omitempty" given:"filled" doc:"an end user's token, if it does not come as Authorization: Bearer"`
	Tokens   []string `json:"tokens,omitempty" nullable:"false" maxItems:"1000" doc:"with an API key: many tokens"`
	Sessions []string `json:"sessions,omitempty" nullable:"false" maxItems:"1000" doc:"with an API key: many sessions by id"`
}

// touched is a session that was touched, and so is live.
type touched struct {
	State   string  `json:"state" enum:"live"`
	Session session `json:"session"`
}

// touchedAll answers a batch, in the order asked.
type touchedAll struct {
	Results []touchResult `json:"results" nullable:"false"`
}

type touchResult struct {
	State string         `json:"state" enum:"live,ended,unknown"`
	Cause rollcall.Cause `json:"cause,omitempty" doc:"how it ended"`
}

func (s *Server) registerTouch() {
	touch := op("POST /v1/touch", "touch", "End user", "A sign of life of a session")
	touch.Description = "By an end user's token: the session, or problem+json saying that it ended and how. " +
		"By an API key, up to 1,000 tokens or sessions: what became of each, in the order asked."
	touch.Parameters = []*huma.Param{{
		Name: "leave", In: "query", Schema: &huma.Schema{Type: huma.TypeBoolean},
		Description: "1: the session's client goes away and leaves it open, as a closed page does: no sign of life, and the user is offline unless another of their sessions was heard within the window",
	}}
	touch.RequestBody = s.jsonBody(&touch, touchRequest{})
	touch.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		jsonType: {Schema: &huma.Schema{OneOf: []*huma.Schema{s.schema(touched{}), s.schema(touchedAll{})}}},
	}}}
	s.registerPlain(touch, s.touch)
}

func (s *Server) touch(w http.ResponseWriter, r *http.Request) {
	c := callerOf(r.Context())
	var in touchRequest
	if err := decode(c.body, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	leave, err := flag(c.query, "leave")
	switch {
	case err != nil:
		s.fail(w, r, err)
		return
	case in.Tokens != nil || in.Sessions != nil:
		if leave {
			s.fail(w, r, rollcall.Invalid("leave", "goes with one token"))
			return
		}
		s.touchAll(w, r, in)
		return
	}
	token := in.Token
	if token == "" {
		token = c.token
	}
	if token == "" {
		s.fail(w, r, unauthenticated("this needs the token of a session, as Authorization: Bearer rct_… or as token in the body"))
		return
	}
	ctx := r.Context()
	command := s.roll.Touch
	if leave {
		command = s.roll.Leave
	}
	live, err := s.ofSession(token, func() (rollcall.Session, error) {
		live, err := command(ctx, rollcall.SessionRef{Token: token})
		return live, s.chargeFailure(c, err)
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, http.StatusOK, touched{State: "live", Session: sessionOf(live)})
}

func (s *Server) touchAll(w http.ResponseWriter, r *http.Request, in touchRequest) {
	c := callerOf(r.Context())
	refs, err := in.refs()
	switch {
	case c.role == "":
		err = unauthenticated("tokens and sessions need an API key: Authorization: Bearer rck_…")
	case err == nil:
		var results []rollcall.Touched
		if results, err = s.roll.TouchAll(r.Context(), refs); err == nil {
			s.reply(w, r, http.StatusOK, touchedAll{each(results, touchResultOf)})
			return
		}
	}
	s.fail(w, r, err)
}

// refs reads what a batch names. What is no session id names no session: the
// entry is answered as unknown, on its own.
func (in *touchRequest) refs() ([]rollcall.SessionRef, error) {
	switch {
	case in.Token != "":
		return nil, rollcall.Invalid("token", "cannot be combined with tokens or sessions")
	case in.Tokens != nil && in.Sessions != nil:
		return nil, rollcall.Invalid("sessions", "cannot be combined with tokens")
	case len(in.Tokens) > rollcall.MaxLimit:
		return nil, rollcall.Invalid("tokens", "holds %d entries, the limit is %d", len(in.Tokens), rollcall.MaxLimit)
	case in.Tokens != nil:
		return each(in.Tokens, func(t string) rollcall.SessionRef { return rollcall.SessionRef{Token: t} }), nil
	}
	return each(in.Sessions, func(text string) rollcall.SessionRef {
		id, err := rollcall.ParseSessionID(text)
		if err != nil {
			return rollcall.SessionRef{}
		}
		return rollcall.SessionRef{ID: id}
	}), nil
}

func touchResultOf(t rollcall.Touched) touchResult {
	switch {
	case t.Live:
		return touchResult{State: "live"}
	case t.Session.End != nil:
		return touchResult{State: "ended", Cause: t.Session.End.Cause}
	default:
		return touchResult{State: "unknown"}
	}
}

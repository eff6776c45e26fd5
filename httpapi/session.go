package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// session is a session on the wire; an ended one says when and how.
type session struct {
	ID        rollcall.SessionID `json:"id" doc:"public, sortable, not secret"`
	User      string             `json:"user"`
	Kind      string             `json:"kind"`
	Name      string             `json:"name"`
	App       string             `json:"app"`
	Device    string             `json:"device"`
	IP        string             `json:"ip" doc:"empty if the login did not give one"`
	UserAgent string             `json:"user_agent"`
	Attrs     map[string]string  `json:"attrs"`
	LoginAt   instant            `json:"login_at"`
	SeenAt    instant            `json:"seen_at"`
	ExpiresAt instant            `json:"expires_at" doc:"when idleness ends it"`
	EndsAt    instant            `json:"ends_at,omitempty" doc:"its absolute end"`

	EndedAt instant        `json:"ended_at,omitempty"`
	Cause   rollcall.Cause `json:"cause,omitempty"`
	Reason  string         `json:"reason,omitempty"`
}

func sessionOf(s rollcall.Session) session {
	out := session{
		ID: s.ID, User: s.User, Kind: s.Kind, Name: s.Name, App: s.App, Device: s.Device,
		IP: addrText(s.IP), UserAgent: s.UserAgent, Attrs: s.Attrs,
		LoginAt: instantOf(s.LoginAt), SeenAt: instantOf(s.SeenAt),
		ExpiresAt: instantOf(s.ExpiresAt), EndsAt: instantOf(s.EndsAt),
	}
	if out.Attrs == nil {
		out.Attrs = map[string]string{}
	}
	if s.End != nil {
		out.EndedAt, out.Cause, out.Reason = instantOf(s.End.At), s.End.Cause, s.End.Reason
		if s.ExpiresAt.IsZero() { // of an erased user only the end is remembered
			out.ExpiresAt = out.EndedAt
		}
	}
	return out
}

// SessionInput is the path of a session.
type SessionInput struct {
	ID string `path:"id" doc:"the session's id"`
}

type sessionPatch struct {
	Name  *string            `json:"name,omitempty" doc:"≤ 128 bytes"`
	App   *string            `json:"app,omitempty" doc:"≤ 64 bytes"`
	Attrs *map[string]string `json:"attrs,omitempty" doc:"replaces all"`
}

type patchSessionInput struct {
	SessionInput
	Body sessionPatch
}

type endSessionInput struct {
	SessionInput
	Cause  string `query:"cause" default:"logout" enum:"logout,kicked"`
	Reason string `query:"reason" doc:"shown to the client, ≤ 256 bytes; with cause=kicked"`
}

// rotated is a session's new token, shown once.
type rotated struct {
	Session session `json:"session"`
	Token   string  `json:"token"`
}

func (s *Server) registerSessions() {
	register(s, op("GET /v1/sessions/{id}", "get-session", "Sessions", "One session, live or ended within the last 24 hours"), s.getSession)
	register(s, op("PATCH /v1/sessions/{id}", "update-session", "Sessions", "Change a live session's name, app or attributes"), s.updateSession)
	register(s, op("DELETE /v1/sessions/{id}", "end-session", "Sessions", "End a session"), s.endSession)
	register(s, op("POST /v1/sessions/{id}/rotate", "rotate-session", "Sessions", "Give a live session a new token; the old one is unknown from then on"), s.rotateSession)
	s.registerSessionList()
}

// id reads the path's id. What is no id names no session.
func (in SessionInput) id() (rollcall.SessionID, error) {
	id, err := rollcall.ParseSessionID(in.ID)
	if err != nil {
		return id, rollcall.NotFound("session")
	}
	return id, nil
}

func (s *Server) getSession(ctx context.Context, in *SessionInput) (session, error) {
	id, err := in.id()
	if err != nil {
		return session{}, err
	}
	found, err := s.view(ctx).Session(ctx, id)
	return sessionOf(found), err
}

func (s *Server) updateSession(ctx context.Context, in *patchSessionInput) (session, error) {
	id, err := in.id()
	if err != nil {
		return session{}, err
	}
	patch := rollcall.SessionPatch{Name: in.Body.Name, App: in.Body.App, Attrs: in.Body.Attrs}
	updated, err := s.view(ctx).UpdateSession(ctx, id, patch)
	return sessionOf(updated), err
}

func (s *Server) endSession(ctx context.Context, in *endSessionInput) (ended, error) {
	id, err := in.id()
	if err != nil {
		return ended{}, err
	}
	if in.Reason != "" && in.Cause != string(rollcall.CauseKicked) {
		return ended{}, rollcall.Invalid("reason", "goes with cause=kicked only")
	}
	res, err := s.view(ctx).Kick(ctx, rollcall.Kick{
		Session: id, Cause: rollcall.Cause(in.Cause), Reason: in.Reason, Actor: callerOf(ctx).actor(),
	})
	return endedOf(res), err
}

func (s *Server) rotateSession(ctx context.Context, in *SessionInput) (rotated, error) {
	id, err := in.id()
	if err != nil {
		return rotated{}, err
	}
	live, token, err := s.view(ctx).Rotate(ctx, id)
	return rotated{Session: sessionOf(live), Token: token}, err
}

package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

type myFriendsInput struct {
	OnlineFriendsQuery
}

type endOthersInput struct {
	Others bool `query:"others" required:"true" doc:"must be 1: end all my sessions but this one"`
}

func (s *Server) registerMe() {
	register(s, op("GET /v1/me/sessions", "my-sessions", "End user", "My own sessions"), s.mySessions)
	register(s, op("DELETE /v1/me/sessions", "end-my-other-sessions", "End user", "Sign out everywhere else"), s.endMyOthers)
	register(s, op("DELETE /v1/me/sessions/{id}", "end-my-session", "End user", "Sign one of my sessions out"), s.endMySession)
	register(s, op("GET /v1/me/friends/online", "my-online-friends", "End user", "My friends who are online"), s.myOnlineFriends)
}

func (s *Server) mySessions(ctx context.Context, in *struct{ Paging }) (page[session], error) {
	me := callerOf(ctx).session.User
	found, err := s.roll.Sessions(ctx, rollcall.SessionQuery{ // the truth: they are the user's own
		Filter: rollcall.SessionFilter{Users: []string{me}}, Page: in.request(),
	})
	return pageOf(found, sessionOf), err
}

func (s *Server) endMyOthers(ctx context.Context, in *endOthersInput) (ended, error) {
	if !in.Others {
		return ended{}, rollcall.Invalid("others", "must be 1")
	}
	me := callerOf(ctx).session
	res, err := s.public.Kick(ctx, rollcall.Kick{User: me.User, Except: me.ID, Cause: rollcall.CauseLogout, Actor: "self"})
	return endedOf(res), err
}

func (s *Server) endMySession(ctx context.Context, in *SessionInput) (ended, error) {
	id, err := in.id()
	if err != nil {
		return ended{}, err
	}
	found, err := s.roll.Session(ctx, id)
	if err != nil {
		return ended{}, err
	}
	if found.User != callerOf(ctx).session.User {
		return ended{}, rollcall.NotFound("session")
	}
	res, err := s.public.Kick(ctx, rollcall.Kick{Session: id, Cause: rollcall.CauseLogout, Actor: "self"})
	return endedOf(res), err
}

func (s *Server) myOnlineFriends(ctx context.Context, in *myFriendsInput) (page[friend], error) {
	return s.friendsOnline(ctx, callerOf(ctx).session.User, in.OnlineFriendsQuery)
}

package httpapi

import (
	"context"

	"github.com/rollcall/rollcall"
)

// UserInput is the path of a user.
type UserInput struct {
	User string `path:"user" doc:"the user's id, percent-encoded"`
}

type userRequest struct {
	Name      *string `json:"name,omitempty" doc:"≤ 128 bytes"`
	Kind      *string `json:"kind,omitempty" doc:"≤ 32 of a-z 0-9 _ -; at most 64 kinds in all"`
	Invisible *bool   `json:"invisible,omitempty" doc:"looks offline to all but administrators"`
}

type putUserInput struct {
	UserInput
	Body userRequest
}

// UserRecord is the record of a user.
type UserRecord struct {
	User      string `json:"user"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Invisible bool   `json:"invisible"`
}

// summary is all there is to say about a user at a glance.
type summary struct {
	UserRecord
	Online   bool    `json:"online"`
	LastSeen instant `json:"last_seen,omitempty"`
	Sessions int     `json:"sessions" doc:"live ones"`
	Friends  int     `json:"friends"`
	StreakState
	Ban *BanRecord `json:"ban,omitempty"`
}

func (s *Server) registerUsers() {
	register(s, op("GET /v1/users/{user}", "get-user", "Users", "A user's presence, sessions, friends and streak at a glance"), s.getUser)
	register(s, op("PUT /v1/users/{user}", "put-user", "Users", "Change a user's name, kind or visibility; what is not given stays"), s.putUser)
	registerQuiet(s, op("DELETE /v1/users/{user}", "erase-user", "Users", "Erase everything about a user"), s.eraseUser)
}

func userOf(u rollcall.User) UserRecord {
	return UserRecord{User: u.ID, Kind: u.Kind, Name: u.Name, Invisible: u.Invisible}
}

func (s *Server) getUser(ctx context.Context, in *UserInput) (summary, error) {
	u, err := s.view(ctx).User(ctx, in.User)
	if err != nil {
		return summary{}, err
	}
	out := summary{
		UserRecord: userOf(u.User),
		Online:     u.Status.Online, LastSeen: instantOf(u.Status.LastSeen), Sessions: u.Status.Sessions,
		Friends: u.Friends, StreakState: streakState(u.Streak, u.StreakUnavailable),
	}
	if u.Ban != nil {
		b := banOf(*u.Ban)
		out.Ban = &b
	}
	return out, nil
}

func (s *Server) putUser(ctx context.Context, in *putUserInput) (UserRecord, error) {
	b := in.Body
	put, err := s.view(ctx).PutUser(ctx, in.User, rollcall.UserPatch{Name: b.Name, Kind: b.Kind, Invisible: b.Invisible})
	return userOf(put), err
}

func (s *Server) eraseUser(ctx context.Context, in *UserInput) error {
	err := s.view(ctx).Erase(ctx, in.User)
	if err == nil {
		s.streams.friendsChanged(in.User)
		s.security.act(ctx, "erased", s.whom(in.User))
	}
	return err
}

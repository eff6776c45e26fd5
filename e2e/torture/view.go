package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/rollcall/rollcall"
)

// caller asks servers; each request may go to another one.
type caller interface {
	call(ctx context.Context, r request) (answer, error)
}

// get reads an answer with status 200 into v. Anything else is an error: the
// servers are well.
func get(ctx context.Context, s caller, r request, v any) (answer, error) {
	a, err := s.call(ctx, r)
	if err != nil {
		return a, fmt.Errorf("%s: %w", r, err)
	}
	if a.status != http.StatusOK {
		return a, fmt.Errorf("%s: %s", r, a)
	}
	return a, a.read(v)
}

// endsAsked is how many ended sessions a view asks for, the newest ones.
const endsAsked = 8

// readView reads all that servers know of a user.
func readView(ctx context.Context, s caller, id string, ideas []*userModel) (*view, error) {
	v := &view{days: map[string][]rollcall.Day{}, tokens: map[string]string{}, ended: map[string]wireSession{}}
	var sessions struct {
		Total int
		Items []wireSession
	}
	a, err := get(ctx, s, request{method: "POST", path: "/v1/sessions/query", body: map[string]any{"users": []string{id}, "limit": 1000}}, &sessions)
	if err != nil {
		return nil, err
	}
	v.at = a.at
	if v.sessions = sessions.Items; len(v.sessions) != sessions.Total {
		return nil, &difference{nil, fmt.Errorf("user %q: total is %d and %d sessions are listed", id, sessions.Total, len(v.sessions))}
	}
	path := "/v1/users/" + inPath(id)
	var friends struct{ Items []wireFriend }
	var status struct{ Items []wireStatus }
	for _, one := range []struct {
		r  request
		to any
	}{
		{request{method: "GET", path: path}, &v.user},
		{request{method: "GET", path: path + "/friends?limit=1000"}, &friends},
		{request{method: "POST", path: "/v1/online/status", body: map[string]any{"users": []string{id}}}, &status},
	} {
		if _, err := get(ctx, s, one.r, one.to); err != nil {
			return nil, err
		}
	}
	v.friends, v.status = friends.Items, status.Items[0]
	today := dayOf(v.at.lo)
	for _, kind := range append(kinds(), "") {
		var attended struct{ Days []rollcall.Day }
		r := request{method: "GET", path: fmt.Sprintf("/v1/attendance/users/%s?from=%s&to=%s", inPath(id), today-daysBack, today+2)}
		if kind != "" {
			r.path += "&kind=" + kind
		}
		if _, err := get(ctx, s, r, &attended); err != nil {
			return nil, err
		}
		v.days[kind] = attended.Days
	}
	for _, p := range ideas {
		if err := v.lookAtSessions(ctx, s, p); err != nil {
			return nil, err
		}
	}
	v.at.hi = a.at.hi
	if last, err := s.call(ctx, request{method: "GET", path: "/v1/online/count"}); err == nil {
		v.at.hi = last.at.hi
	}
	return v, nil
}

// lookAtSessions asks for tokens, and for sessions that have ended.
func (v *view) lookAtSessions(ctx context.Context, s caller, p *userModel) error {
	var ended []string
	for id, x := range p.sessions {
		if !slices.ContainsFunc(v.sessions, func(l wireSession) bool { return l.ID == id }) {
			ended = append(ended, id)
		}
		if _, asked := v.tokens[x.token]; asked || x.token == "" || (x.end != nil && len(v.tokens) > 2*endsAsked) {
			continue
		}
		state, err := stateOf(ctx, s, x.token)
		if err != nil {
			return err
		}
		v.tokens[x.token] = state
	}
	slices.Sort(ended)
	for _, id := range ended[max(0, len(ended)-endsAsked):] {
		a, err := s.call(ctx, request{method: "GET", path: "/v1/sessions/" + id})
		switch {
		case err != nil:
			return err
		case a.status == http.StatusNotFound:
			v.ended[id] = wireSession{}
		case a.status != http.StatusOK:
			return fmt.Errorf("session %s: %s", id, a)
		default:
			var x wireSession
			if err := a.read(&x); err != nil {
				return err
			}
			if x.Cause != "" { // else it was listed too early to be in the list
				v.ended[id] = x
			}
		}
	}
	return nil
}

// stateOf is what servers say of a token: "live", how the session ended, or
// "unknown".
func stateOf(ctx context.Context, s caller, token string) (string, error) {
	a, err := s.call(ctx, request{method: "GET", path: "/v1/verify", key: token})
	if err != nil {
		return "", err
	}
	var problem struct{ Cause rollcall.Cause }
	switch {
	case a.status == http.StatusOK:
		return "live", nil
	case a.code == rollcall.CodeUnauthenticated:
		return "unknown", nil
	case a.code != rollcall.CodeSessionEnded:
		return "", fmt.Errorf("verify: %s", a)
	}
	err = a.read(&problem)
	return string(problem.Cause), err
}

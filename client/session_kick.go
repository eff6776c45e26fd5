package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/rollcall/rollcall"
)

type kickRequest struct {
	Session string  `json:"session,omitempty"`
	User    string  `json:"user,omitempty"`
	Device  string  `json:"device,omitempty"`
	Except  string  `json:"except,omitempty"`
	Filter  *filter `json:"filter,omitempty"`
	All     bool    `json:"all,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Ban     string  `json:"ban,omitempty"`
	DryRun  bool    `json:"dry_run,omitempty"`
}

// Kick ends what k names; see [rollcall.Roll.Kick]. With an error the result says
// how many had ended by then. A kick that had to be sent again counts what the
// last attempt ended.
func (c *Client) Kick(ctx context.Context, k rollcall.Kick) (rollcall.EndResult, error) {
	if err := notSent("actor", k.Actor); err != nil {
		return rollcall.EndResult{}, err
	}
	if k.Filter != nil && k.Filter.Users != nil && len(k.Filter.Users) == 0 { // none at all, which is not any
		return rollcall.EndResult{}, nil
	}
	var r call
	switch k.Cause {
	case "", rollcall.CauseKicked:
		r = kickCall(k)
	case rollcall.CauseLogout:
		session := k.Session
		k.Session, k.Cause = rollcall.SessionID{}, ""
		if session.IsZero() || k != (rollcall.Kick{}) {
			return rollcall.EndResult{}, rollcall.Invalid("cause", "logout goes with session alone, over HTTP")
		}
		r = call{method: http.MethodDelete, path: path("v1", "sessions", session.String()), query: url.Values{"cause": {"logout"}}}
	default:
		return rollcall.EndResult{}, rollcall.Invalid("cause", "must be kicked or logout, is %q", k.Cause)
	}

	var answer ended
	err := c.do(ctx, r, &answer)
	if cut := (*cutShortError)(nil); errors.As(err, &cut) {
		return rollcall.EndResult{Ended: cut.ended}, cut.err
	}
	return answer.domain(), err
}

func kickCall(k rollcall.Kick) call {
	body := kickRequest{
		Session: sessionID(k.Session), User: k.User, Device: k.Device, Except: sessionID(k.Except), All: k.All,
		Reason: k.Reason, Ban: span(k.Ban), DryRun: k.DryRun,
	}
	if k.Filter != nil {
		f := filterOf(k.Filter)
		body.Filter = &f
	}
	// Those who log in between two attempts at a kick of many were not meant.
	once := (k.Filter != nil || k.All) && !k.DryRun
	return call{method: http.MethodPost, path: "/v1/kicks", body: body, once: once}
}

package enginetest

import (
	"fmt"
	"slices"

	"github.com/rollcall/rollcall"
)

// login logs a user in and returns what came of it.
func (h *harness) login(user string) rollcall.LoggedIn {
	return h.loginAs(rollcall.Login{User: user})
}

func (h *harness) loginAs(l rollcall.Login) rollcall.LoggedIn {
	in, err := h.roll.Login(h.ctx, l)
	h.NoError(err)
	h.NotEmpty(in.Token)
	h.False(in.Session.ID.IsZero())
	return in
}

// loginFails requires a login to be refused.
func (h *harness) loginFails(l rollcall.Login, want rollcall.Code) *rollcall.Error {
	_, err := h.roll.Login(h.ctx, l)
	return h.code(want, err)
}

// touch is a sign of life of a session that must be alive.
func (h *harness) touch(l rollcall.LoggedIn) rollcall.Session {
	s, err := h.roll.Touch(h.ctx, rollcall.SessionRef{Token: l.Token})
	h.NoError(err)
	return s
}

// alive requires that every read shows the sessions as live.
func (h *harness) alive(logins ...rollcall.LoggedIn) {
	for _, l := range logins {
		id := l.Session.ID
		for _, ref := range []rollcall.SessionRef{{Token: l.Token}, {ID: id}} {
			s, err := h.roll.Verify(h.ctx, ref)
			h.NoError(err)
			h.Equal(id, s.ID)
			h.Nil(s.End)
		}
		s, err := h.roll.Session(h.ctx, id)
		h.NoError(err)
		h.Nil(s.End)
		h.Contains(h.idsOf(l.Session.User), id)
	}
}

// ended requires that every read and every write shows the sessions as ended.
func (h *harness) ended(cause rollcall.Cause, logins ...rollcall.LoggedIn) {
	for _, l := range logins {
		id := l.Session.ID
		h.NotContains(h.idsOf(l.Session.User), id)
		for _, ref := range []rollcall.SessionRef{{Token: l.Token}, {ID: id}} {
			_, err := h.roll.Verify(h.ctx, ref)
			h.Equal(cause, h.code(rollcall.CodeSessionEnded, err).Cause)
			_, err = h.roll.Touch(h.ctx, ref)
			h.Equal(cause, h.code(rollcall.CodeSessionEnded, err).Cause)
		}
		s, err := h.roll.Session(h.ctx, id)
		h.NoError(err)
		h.NotNil(s.End)
		h.Equal(cause, s.End.Cause)
		_, err = h.roll.UpdateSession(h.ctx, id, rollcall.SessionPatch{Name: ptr("x")})
		h.code(rollcall.CodeSessionEnded, err)
		_, _, err = h.roll.Rotate(h.ctx, id)
		h.code(rollcall.CodeSessionEnded, err)
		res, err := h.roll.Kick(h.ctx, rollcall.Kick{Session: id})
		h.NoError(err)
		h.Zero(res.Ended)
	}
}

// unknown requires that nothing is left of the sessions.
func (h *harness) unknown(logins ...rollcall.LoggedIn) {
	for _, l := range logins {
		for _, ref := range []rollcall.SessionRef{{Token: l.Token}, {ID: l.Session.ID}} {
			_, err := h.roll.Verify(h.ctx, ref)
			h.code(rollcall.CodeUnauthenticated, err)
			_, err = h.roll.Touch(h.ctx, ref)
			h.code(rollcall.CodeUnauthenticated, err)
		}
		_, err := h.roll.Session(h.ctx, l.Session.ID)
		h.code(rollcall.CodeNotFound, err)
		_, err = h.roll.UpdateSession(h.ctx, l.Session.ID, rollcall.SessionPatch{Name: ptr("x")})
		h.code(rollcall.CodeNotFound, err)
		_, _, err = h.roll.Rotate(h.ctx, l.Session.ID)
		h.code(rollcall.CodeNotFound, err)
		_, err = h.roll.Kick(h.ctx, rollcall.Kick{Session: l.Session.ID})
		h.code(rollcall.CodeNotFound, err)
	}
}

func (h *harness) kick(k rollcall.Kick) rollcall.EndResult {
	res, err := h.roll.Kick(h.ctx, k)
	h.NoError(err)
	return res
}

// logout signs a session out by itself.
func (h *harness) logout(l rollcall.LoggedIn) {
	h.Equal(1, h.kick(rollcall.Kick{Session: l.Session.ID, Cause: rollcall.CauseLogout}).Ended)
}

// list returns the one page that holds all a query finds.
func (h *harness) list(q rollcall.SessionQuery) []rollcall.Session {
	q.Page = all()
	page, err := h.roll.Sessions(h.ctx, q)
	h.NoError(err)
	h.Empty(page.Next)
	h.Len(page.Items, page.Total)
	return page.Items
}

// idsOf returns the ids of a user's live sessions, newest login first.
func (h *harness) idsOf(user string) []rollcall.SessionID {
	return ids(h.list(rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{user}}}))
}

func ids(sessions []rollcall.Session) []rollcall.SessionID {
	out := make([]rollcall.SessionID, len(sessions))
	for i, s := range sessions {
		out[i] = s.ID
	}
	return out
}

func idsOfLogins(logins []rollcall.LoggedIn) []rollcall.SessionID {
	out := make([]rollcall.SessionID, len(logins))
	for i, l := range logins {
		out[i] = l.Session.ID
	}
	return out
}

// crowd logs in n users, one session each, step apart in time.
func (h *harness) crowd(prefix string, n int, edit func(i int, l *rollcall.Login)) []rollcall.LoggedIn {
	out := make([]rollcall.LoggedIn, n)
	for i := range out {
		l := rollcall.Login{User: fmt.Sprintf("%s%04d", prefix, i)}
		if edit != nil {
			edit(i, &l)
		}
		out[i] = h.loginAs(l)
	}
	return out
}

func sortedIDs(in []rollcall.SessionID) []rollcall.SessionID {
	out := slices.Clone(in)
	slices.SortFunc(out, compareIDs)
	return out
}

func compareIDs(a, b rollcall.SessionID) int { return slices.Compare(a[:], b[:]) }

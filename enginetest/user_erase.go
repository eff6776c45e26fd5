package enginetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

func eraseTests() []test {
	return []test{
		{"erase ends the sessions", eraseSessions},
		{"an erasure leaves nothing of a session that was past its deadline", eraseOverdue},
		{"erase removes presence, marks, name and kind", eraseRemoves},
		{"erase removes friends in both directions", eraseFriends},
		{"erase removes who named a user as friend, however many", eraseManyFriends},
		{"erase redacts the user's events and appends one that names nobody", eraseEvents},
		{"a later login of the same id is a new user", eraseThenNew},
		{"erasing a user never heard of is no error", eraseNobody},
		{"an erasure survives a restart", eraseSurvives},
		{"an erasure that is cut short has begun nothing or is finished", eraseCutShort},
		{"a login after an erasure that was cut short stays", eraseCutShortThenNew},
		{"an export after an erasure that was cut short has the user whole or not", eraseCutShortThenExport},
	}
}

func (h *harness) erase(user string) { h.NoError(h.roll.Erase(h.ctx, user)) }

// lived gives a user a bit of everything.
func (h *harness) lived(user string) rollcall.LoggedIn {
	h.put(user, rollcall.UserPatch{Name: ptr("Somebody"), Kind: ptr("staff")})
	s := h.loginAs(rollcall.Login{User: user, App: "shop", DeviceID: "phone"})
	h.mark(h.on(user, -1), h.on(user, -200), rollcall.Mark{User: user, Kind: "guest", Day: h.roll.Today() - 3})
	h.NoError(h.roll.AddFriends(h.ctx, user, true, rollcall.Friend{User: "bob"}, rollcall.Friend{User: "carol"}))
	h.beat("bob", "carol")
	return s
}

// forgotten requires that nothing of a user is left.
func (h *harness) forgotten(user string) {
	h.Equal(rollcall.Status{User: user}, h.status(user))
	h.Equal(rollcall.User{ID: user, Kind: rollcall.DefaultKind}, h.user(user))
	h.Empty(h.idsOf(user))
	h.Empty(h.attended(user, ""))
	_, ok, err := h.engine.SpanOf(h.ctx, user, "")
	h.NoError(err)
	h.False(ok)
	h.NotContains(h.active("", rollcall.MatchAny, 0, rollcall.MaxDayRange-1), user)
	h.NotContains(h.active("", rollcall.MatchAny, h.roll.Today()-300, h.roll.Today()), user)
	h.Empty(h.friends(user))
	for _, other := range []string{"bob", "carol"} {
		h.NotContains(h.friends(other), user)
	}
	h.NotContains(h.online(rollcall.DefaultRetention), user)
}

func eraseSessions(h *harness) {
	mine, other := h.logins("alice", 3), h.login("bob")
	h.erase("alice")
	h.ended(rollcall.CauseErased, mine...)
	h.alive(other)
	s, err := h.roll.Session(h.ctx, mine[0].Session.ID)
	h.NoError(err)
	h.Empty(s.User, "what is remembered of it names nobody")
	h.Equal([]rollcall.SessionID{other.Session.ID}, ids(h.list(rollcall.SessionQuery{})))
}

func eraseOverdue(h *harness) {
	h.policies(rollcall.Policy{Device: "tv", IdleTimeout: time.Hour}, rollcall.Policy{IdleTimeout: time.Minute})
	for _, sessions := range []int{1, 40} {
		alive := h.loginAs(rollcall.Login{User: "alice", Device: "tv"})
		over := h.logins("alice", sessions)
		h.advance(2 * time.Minute)
		h.erase("alice")
		h.ended(rollcall.CauseErased, alive)
		for _, l := range over {
			s, err := h.roll.Session(h.ctx, l.Session.ID)
			h.Empty(s.User)
			h.Empty(s.Kind)
			h.Empty(s.IP)
			if err != nil {
				h.code(rollcall.CodeNotFound, err)
			}
			_, err = h.roll.Verify(h.ctx, rollcall.SessionRef{Token: l.Token})
			h.Error(err)
		}
	}
}

func eraseRemoves(h *harness) {
	h.lived("alice")
	h.lived("dave")
	known := h.known()
	h.erase("alice")
	h.forgotten("alice")
	h.Equal(known-1, h.known())
	h.Equal([]int{-200, -3, -1, 0}, h.attended("dave", ""))
	h.Equal("Somebody", h.user("dave").Name)
	series, err := h.roll.Series(h.ctx, rollcall.SeriesQuery{Range: rollcall.DayRange{From: h.roll.Today(), To: h.roll.Today()}})
	h.NoError(err)
	h.Equal(1, series[0].DAU)
}

func eraseFriends(h *harness) {
	h.befriend("alice", "bob", "carol")
	h.befriend("bob", "alice", "dave")
	h.befriend("dave", "alice")
	h.erase("alice")
	h.Empty(h.friends("alice"))
	h.Equal([]string{"dave"}, h.friends("bob"))
	h.Empty(h.friends("dave"))
	h.login("alice")
	h.Empty(h.onlineFriends("dave", rollcall.FriendsBySince))
}

func eraseManyFriends(h *harness) {
	fans := numbered("fan", 1200)
	for _, f := range fans {
		h.befriend(f, "star", "other")
	}
	h.erase("star")
	for _, f := range fans {
		h.Equal([]string{"other"}, h.friends(f))
	}
}

func eraseEvents(h *harness) {
	h.tick()
	s := h.loginAs(rollcall.Login{User: "alice"})
	h.kick(rollcall.Kick{User: "alice", Reason: "told by alice", Actor: "alice"})
	h.ban("alice", time.Hour)
	h.login("bob")
	h.live(2 * time.Second)
	before := h.events(rollcall.ViewerAdmin, "")
	h.beat("alice")
	h.erase("alice")
	h.live(2 * time.Second)
	for range 2 {
		after := h.events(rollcall.ViewerAdmin, "")
		for _, e := range after {
			h.NotEqual("alice", e.User)
			h.NotEqual(s.Session.ID, e.Session)
			h.NotContains(e.Reason+e.Actor, "alice")
		}
		erased := slices.IndexFunc(after, func(e rollcall.Event) bool { return e.Type == rollcall.UserErased })
		h.GreaterOrEqual(erased, 0)
		h.Empty(after[erased].User)
		h.True(slices.ContainsFunc(after, func(e rollcall.Event) bool { return e.User == "bob" }))
		h.Equal(before[0].ID, after[0].ID, "the log keeps its places")
		h.restart()
	}
}

func eraseThenNew(h *harness) {
	old := h.lived("alice")
	h.erase("alice")
	h.advance(time.Second)
	in := h.login("alice")
	h.alive(in)
	h.Equal(rollcall.DefaultKind, in.Session.Kind)
	h.Empty(in.Session.Name)
	h.Equal([]int{0}, h.attended("alice", ""))
	h.Empty(h.friends("alice"))
	h.Equal([]string{"alice"}, usersOf(h.list(rollcall.SessionQuery{})))
	h.ended(rollcall.CauseErased, old)
	rows, err := h.roll.Lifecycle(h.ctx, rollcall.LifecycleQuery{
		Range: rollcall.DayRange{From: h.roll.Today(), To: h.roll.Today()}, Period: rollcall.PeriodDay,
	})
	h.NoError(err)
	h.Equal([]rollcall.LifecycleRow{{Start: h.roll.Today(), New: 1}}, rows)
}

func eraseNobody(h *harness) {
	h.erase("nobody")
	h.erase("nobody")
	h.forgotten("nobody")
}

func eraseSurvives(h *harness) {
	s := h.lived("alice")
	h.NoError(h.engine.Flush(h.ctx))
	h.erase("alice")
	h.restart()
	h.forgotten("alice")
	h.ended(rollcall.CauseErased, s)
	h.NoError(h.roll.Compact(h.ctx))
	h.forgotten("alice")
	h.alive(h.login("alice"))
	h.restart()
	h.Equal([]int{0}, h.attended("alice", ""))
}

// waning is a context that is cancelled when it has been looked at a number of times.
type waning struct {
	context.Context
	left   atomic.Int64
	cancel context.CancelFunc
}

func (h *harness) waning(looks int) *waning {
	ctx, cancel := context.WithCancel(h.ctx)
	h.outer.Cleanup(cancel)
	w := &waning{Context: ctx, cancel: cancel}
	w.left.Store(int64(looks))
	return w
}

func (w *waning) look() {
	if w.left.Add(-1) < 0 {
		w.cancel()
	}
}

func (w *waning) Done() <-chan struct{} {
	w.look()
	return w.Context.Done()
}

func (w *waning) Err() error {
	w.look()
	return w.Context.Err()
}

// cutShort has users erased by calls that are cut short sooner or later. It hands each
// on, with their sessions, and says whether the erasure was answered as done.
func (h *harness) cutShort(each func(user string, mine []rollcall.LoggedIn, done bool)) {
	for n := range 8 {
		user := fmt.Sprint("cut", n)
		mine := []rollcall.LoggedIn{h.lived(user)}
		for range 20 {
			mine = append(mine, h.login(user))
		}
		err := h.roll.Erase(h.waning(n*n), user)
		each(user, mine, err == nil)
	}
}

func eraseCutShort(h *harness) {
	h.tick()
	h.cutShort(func(user string, mine []rollcall.LoggedIn, done bool) {
		if !done {
			h.live(8 * time.Second)
		}
		if !done && h.user(user).Name != "" {
			h.alive(mine...)
			h.Equal([]string{"bob", "carol"}, h.friends(user))
			h.Contains(h.friends("bob"), user)
			h.Equal([]int{-200, -3, -1, 0}, h.attended(user, ""))
			return
		}
		h.forgotten(user)
		h.ended(rollcall.CauseErased, mine...)
	})
}

func eraseCutShortThenNew(h *harness) {
	h.tick()
	h.cutShort(func(user string, mine []rollcall.LoggedIn, _ bool) {
		in := h.login(user)
		isNew := in.Session.Name == ""
		h.live(8 * time.Second)
		h.alive(in)
		if isNew {
			h.ended(rollcall.CauseErased, mine...)
			h.Equal([]rollcall.SessionID{in.Session.ID}, h.idsOf(user))
			h.Empty(h.friends(user))
		} else {
			h.alive(mine...)
		}
	})
}

func eraseCutShortThenExport(h *harness) {
	h.tick()
	h.cutShort(func(user string, mine []rollcall.LoggedIn, done bool) {
		err := h.engine.Export(h.ctx, h.now(), 0, func(d rollcall.UserSnapshot) error {
			if d.User == user {
				h.False(done)
				h.Len(d.Sessions, len(mine))
				h.Len(d.Friends, 2)
			}
			return nil
		}, nil)
		h.NoError(err)
	})
}

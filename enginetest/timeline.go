package enginetest

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

func timelineTests() []test {
	return []test{
		{"a timeline is what the log has of a user, backwards, also after a restart", timelineIsTheLog},
		{"what acknowledged commands appended is in the timeline at once", timelineAtOnce},
		{"a walk through a timeline returns each event once, and none that comes meanwhile", timelineWalk},
		{"types, since and until choose what a timeline shows", timelineChosen},
		{"to the public a user of whom all is hidden has the timeline of one who is not known", timelineHidden},
		{"events of an erased user are in no timeline, and whoever has the id then has their own", timelineErased},
		{"a timeline has all that is kept, also of a user who is forgotten, and nothing else", timelineKept},
		{"the users of one flush have a timeline each", timelineOfACrowd},
		{"a timeline goes on at its own cursors only", timelineCursors},
		{"a timeline says of a session what is still known of it", timelineSessions},
		{"sessions are found by id, live and ended, in the order of the ids", sessionsByID},
	}
}

// timeline walks a user's timeline to its end, by pages of a size.
func (h *harness) timeline(v rollcall.Viewer, q rollcall.TimelineQuery, limit int) []rollcall.Event {
	items := walk(h, limit, func(p rollcall.PageRequest) (rollcall.Page[rollcall.TimelineEvent], error) {
		q.Limit, q.Cursor = p.Limit, p.Cursor
		got, err := h.roll.As(v).Timeline(h.ctx, q)
		return rollcall.Page[rollcall.TimelineEvent]{Items: got.Items, Next: got.Next}, err
	}, nil)
	var out []rollcall.Event
	for _, e := range items {
		out = append(out, e.Event)
	}
	return out
}

// backwards is what the log has of a user, newest first.
func (h *harness) backwards(v rollcall.Viewer, user string) []rollcall.Event {
	var out []rollcall.Event
	for _, e := range h.events(v, "") {
		if e.User == user {
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}

// eventful makes a log with events of every type, of some users.
func (h *harness) eventful() (users []string) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute}, rollcall.Policy{App: "one", MaxSessions: 1})
	users = numbered("u", 8)
	for i := range 40 {
		user := users[i%len(users)]
		switch i % 5 {
		case 0:
			h.loginAs(rollcall.Login{User: user, App: "one", Device: "ios"})
		case 1:
			h.login(user)
		case 2:
			h.kick(rollcall.Kick{User: user, Reason: "spam", Actor: "ops"})
		case 3:
			h.beat(user, "u0000")
		case 4:
			h.ban(user, time.Second)
		}
		h.live(time.Duration(i%4) * time.Second)
	}
	h.live(2 * time.Second)
	h.advance(10 * time.Minute) // sessions expire, users fall silent
	h.tick()
	h.login("u0003")
	return users
}

func timelineIsTheLog(h *harness) {
	users := append(h.eventful(), "nobody")
	check := func() {
		seen := make(map[rollcall.EventType]bool)
		for _, user := range users {
			want := h.backwards(rollcall.ViewerAdmin, user)
			for _, limit := range []int{1, 3, 1000} {
				h.Equal(want, h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: user}, limit), "%s by %d", user, limit)
			}
			for _, e := range want {
				seen[e.Type] = true
			}
		}
		h.Len(seen, 5, "%v", seen) // of all types of users but erasure and the lifting of a ban
	}
	check()
	h.restart()
	check()
	h.Empty(h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: "nobody"}, 10))
	archived := rollcall.TimelineQuery{User: users[0], Types: []rollcall.EventType{rollcall.ArchiveFailed}}
	h.Empty(h.timeline(rollcall.ViewerAdmin, archived, 10))
}

func timelineAtOnce(h *harness) {
	q := rollcall.TimelineQuery{User: "alice", Limit: 2, Types: []rollcall.EventType{
		rollcall.SessionStarted, rollcall.SessionEnded, rollcall.UserBanned, rollcall.UserUnbanned,
	}}
	newest := func() rollcall.EventType {
		got, err := h.roll.Timeline(h.ctx, q)
		h.NoError(err)
		h.NotEmpty(got.Items)
		return got.Items[0].Type
	}
	s := h.login("alice")
	h.Equal(rollcall.SessionStarted, newest())
	h.logout(s)
	h.Equal(rollcall.SessionEnded, newest())
	h.ban("alice", time.Hour)
	h.Equal(rollcall.UserBanned, newest())
	h.NoError(h.roll.Unban(h.ctx, "alice"))
	h.Equal(rollcall.UserUnbanned, newest())
}

func timelineWalk(h *harness) {
	for range 10 {
		h.logout(h.login("alice"))
		h.advance(time.Second)
	}
	want := h.backwards(rollcall.ViewerAdmin, "alice")
	h.GreaterOrEqual(len(want), 20)
	q := rollcall.TimelineQuery{User: "alice"}
	got := walk(h, 3, func(p rollcall.PageRequest) (rollcall.Page[rollcall.TimelineEvent], error) {
		q.Limit, q.Cursor = p.Limit, p.Cursor
		found, err := h.roll.Timeline(h.ctx, q)
		return rollcall.Page[rollcall.TimelineEvent]{Items: found.Items, Next: found.Next}, err
	}, func(int) { h.logout(h.login("alice")) })
	h.Len(got, len(want))
	for i := range want {
		h.Equal(want[i], got[i].Event)
	}
}

func timelineChosen(h *harness) {
	user := h.eventful()[3]
	whole := h.backwards(rollcall.ViewerAdmin, user)
	h.Greater(len(whole), 5)
	middle, late := whole[len(whole)/2].At, whole[0].At
	for _, q := range []rollcall.TimelineQuery{
		{Types: []rollcall.EventType{rollcall.SessionEnded}},
		{Types: []rollcall.EventType{rollcall.UserOffline, rollcall.UserBanned}},
		{Since: middle},
		{Until: middle},
		{Since: middle, Until: late},
		{Since: late},
		{Since: late.Add(time.Millisecond)},
		{Until: start()},
		{Since: middle, Types: []rollcall.EventType{rollcall.SessionStarted}},
	} {
		q.User = user
		var want []rollcall.Event
		for _, e := range whole {
			if q.Shows(&e) {
				want = append(want, e)
			}
		}
		h.Less(len(want), len(whole))
		for _, limit := range []int{1, 2, 1000} {
			h.Equal(want, h.timeline(rollcall.ViewerAdmin, q, limit), "%+v", q)
		}
	}
	for field, q := range map[string]rollcall.TimelineQuery{
		"user":  {Limit: 1},
		"limit": {User: user},
		"types": {User: user, Limit: 1, Types: []rollcall.EventType{"x"}},
		"until": {User: user, Limit: 1, Since: middle, Until: middle},
	} {
		_, err := h.roll.Timeline(h.ctx, q)
		h.Equal(field, h.code(rollcall.CodeInvalidArgument, err).Field)
	}
}

func timelineHidden(h *harness) {
	h.hide("ghost")
	h.beat("alice")
	h.hide("alice")
	for range 30 {
		h.loginAs(rollcall.Login{User: "ghost", App: "shop"})
		h.kick(rollcall.Kick{User: "ghost", Reason: "spam"})
		h.login("alice")
	}
	h.ban("ghost", time.Hour)
	public := h.roll.As(rollcall.ViewerPublic)
	for _, limit := range []int{1, 20, 1000} {
		ghost, err := public.Timeline(h.ctx, rollcall.TimelineQuery{User: "ghost", Limit: limit})
		h.NoError(err)
		nobody, err := public.Timeline(h.ctx, rollcall.TimelineQuery{User: "nobody", Limit: limit})
		h.NoError(err)
		h.Equal(nobody, ghost)
	}
	truth := h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: "ghost"}, 7)
	h.Equal(h.backwards(rollcall.ViewerAdmin, "ghost"), truth)
	h.Greater(len(truth), 60)
	for _, v := range []rollcall.Viewer{rollcall.ViewerPublic, rollcall.ViewerAdmin} {
		h.Equal(h.backwards(v, "alice"), h.timeline(v, rollcall.TimelineQuery{User: "alice"}, 3))
	}
	h.Equal([]transition{offline("alice"), online("alice")}, transitionsOf(h.timeline(rollcall.ViewerPublic, rollcall.TimelineQuery{User: "alice"}, 3)))
}

// transitionsOf returns the events, which must be of presence, as they are written in tests.
func transitionsOf(events []rollcall.Event) []transition {
	var out []transition
	for _, e := range events {
		if e.Type == rollcall.UserOnline {
			out = append(out, online(e.User))
		} else {
			out = append(out, offline(e.User))
		}
	}
	return out
}

func timelineErased(h *harness) {
	h.login("alice")
	h.login("bob")
	bob := h.backwards(rollcall.ViewerAdmin, "bob")
	h.erase("alice")
	q := rollcall.TimelineQuery{User: "alice"}
	h.Empty(h.timeline(rollcall.ViewerAdmin, q, 10))
	h.login("alice")
	mine := h.backwards(rollcall.ViewerAdmin, "alice")
	h.Len(mine, 2)
	check := func() {
		h.Equal(mine, h.timeline(rollcall.ViewerAdmin, q, 1))
		h.Equal(bob, h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: "bob"}, 1))
	}
	check()
	h.restart()
	check()
}

func timelineKept(h *harness) {
	h.fresh(rollcall.Options{EventsAge: time.Hour})
	h.logout(h.login("alice"))
	h.login("bob")
	h.advance(50 * time.Minute)
	h.tick()
	_, err := h.roll.ClearPresence(h.ctx, time.Minute)
	h.NoError(err)
	h.live(2 * time.Second)
	h.crowd("u", 20, nil) // they may get what the forgotten had
	alice := h.backwards(rollcall.ViewerAdmin, "alice")
	h.GreaterOrEqual(len(alice), 4, "online, login, logout, offline")
	h.Equal(alice, h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: "alice"}, 10))
	old := make(map[string][]rollcall.Event)
	users := []string{"alice", "bob", "u0001"}
	for _, user := range users {
		old[user] = h.backwards(rollcall.ViewerAdmin, user)
	}
	h.advance(30 * time.Minute)
	h.login("bob")
	h.live(3 * time.Second)
	for _, user := range users {
		// Who reads the log begins where nothing of anybody is missing; a user's may go further back.
		want := h.backwards(rollcall.ViewerAdmin, user)
		for _, e := range old[user] {
			if e.At.After(h.now().Add(-time.Hour)) && !slices.Contains(want, e) {
				want = append(want, e)
			}
		}
		h.Equal(want, h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: user}, 10), user)
	}
	h.Empty(h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: "alice"}, 10))
}

func timelineOfACrowd(h *harness) {
	h.tenSeconds(0)
	users := numbered("u", 1500)
	h.beat(users...)
	h.live(12 * time.Second)
	h.beat(users[:700]...)
	of := make(map[string][]rollcall.Event)
	for _, e := range h.events(rollcall.ViewerAdmin, "") {
		of[e.User] = append([]rollcall.Event{e}, of[e.User]...)
	}
	h.Len(of, len(users))
	for i := 0; i < len(users); i += 97 {
		h.Equal(of[users[i]], h.timeline(rollcall.ViewerAdmin, rollcall.TimelineQuery{User: users[i]}, 2), users[i])
	}
}

func timelineCursors(h *harness) {
	for range 5 {
		h.logout(h.login("alice"))
		h.logout(h.login("bob"))
	}
	q := rollcall.TimelineQuery{User: "alice", Limit: 2}
	page, err := h.roll.Timeline(h.ctx, q)
	h.NoError(err)
	h.NotEmpty(page.Next)
	refused := func(roll *rollcall.Roll, q rollcall.TimelineQuery) {
		_, err := roll.Timeline(h.ctx, q)
		h.Equal("cursor", h.code(rollcall.CodeInvalidArgument, err).Field)
	}
	q.Cursor = page.Next
	for _, change := range []func(q *rollcall.TimelineQuery){
		func(q *rollcall.TimelineQuery) { q.User = "bob" },
		func(q *rollcall.TimelineQuery) { q.Types = []rollcall.EventType{rollcall.SessionEnded} },
		func(q *rollcall.TimelineQuery) { q.Since = start() },
		func(q *rollcall.TimelineQuery) { q.Until = start().Add(time.Hour) },
		func(q *rollcall.TimelineQuery) { q.Cursor += "A" },
		func(q *rollcall.TimelineQuery) { q.Cursor = "x" },
	} {
		other := q
		change(&other)
		refused(h.roll, other)
	}
	refused(h.roll.As(rollcall.ViewerPublic), q)

	// An engine does not take the places of another store, whoever seals them.
	h.fresh(rollcall.Options{})
	h.login("alice")
	refused(h.roll, q)
	for _, place := range []string{"x", "00", fmt.Sprintf("%024x", 5), fmt.Sprintf("%028x", 5)} {
		_, err := h.engine.Timeline(h.ctx, rollcall.TimelineQuery{User: "alice", Limit: 1, Cursor: place})
		h.Equal("cursor", h.code(rollcall.CodeInvalidArgument, err).Field, place)
	}
}

func timelineSessions(h *harness) {
	in := rollcall.Login{User: "alice", App: "shop", Device: "ios", IP: netip.MustParseAddr("2001:db8::1"), UserAgent: "Shop/1"}
	h.logout(h.loginAs(in))
	h.advance(time.Second)
	h.loginAs(in)
	types := []rollcall.EventType{rollcall.SessionStarted, rollcall.SessionEnded}
	look := func(v rollcall.Viewer) []rollcall.TimelineEvent {
		got, err := h.roll.As(v).Timeline(h.ctx, rollcall.TimelineQuery{User: "alice", Limit: 10, Types: types})
		h.NoError(err)
		h.Len(got.Items, 3)
		return got.Items
	}
	known := func(e rollcall.TimelineEvent) bool {
		if e.App == "" {
			h.Equal(rollcall.TimelineEvent{Event: e.Event}, e)
			return false
		}
		h.Equal(rollcall.TimelineEvent{Event: e.Event, App: "shop", Device: "ios", IP: in.IP, UserAgent: "Shop/1"}, e)
		return true
	}
	for _, e := range look(rollcall.ViewerAdmin) {
		h.True(known(e))
	}
	h.hide("alice")
	for _, e := range look(rollcall.ViewerPublic) { // of what happened before
		h.False(known(e))
	}
	h.unhide("alice")

	// A day after its end the session is not known any more.
	h.beat("alice")
	h.advance(23 * time.Hour)
	h.tick()
	h.loginAs(in)
	h.advance(2 * time.Hour)
	h.live(3 * time.Second)
	got, err := h.roll.Timeline(h.ctx, rollcall.TimelineQuery{User: "alice", Limit: 10, Types: types[:1]})
	h.NoError(err)
	h.Len(got.Items, 3)
	h.True(known(got.Items[0]))
	h.False(known(got.Items[2]))
}

func sessionsByID(h *harness) {
	a, b, ghost := h.login("alice"), h.login("bob"), h.login("ghost")
	h.logout(b)
	h.hide("ghost")
	ids := []rollcall.SessionID{ghost.Session.ID, b.Session.ID, {1}, a.Session.ID}
	found := func(v rollcall.Viewer) (users []string) {
		got, err := h.engine.SessionsByID(h.ctx, h.now(), ids, v)
		h.NoError(err)
		for _, s := range got {
			h.Equal(s.User == "bob", s.End != nil)
			users = append(users, s.User)
		}
		return users
	}
	h.Equal([]string{"ghost", "bob", "alice"}, found(rollcall.ViewerAdmin))
	h.Equal([]string{"bob", "alice"}, found(rollcall.ViewerPublic))
	none, err := h.engine.SessionsByID(h.ctx, h.now(), nil, rollcall.ViewerAdmin)
	h.NoError(err)
	h.Empty(none)
}

package enginetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

func eventTests() []test {
	return []test{
		{"a login appends session.started", startedEvent},
		{"session.ended for each that made room, then session.started", roomEvents},
		{"a kick appends session.ended with cause, reason and actor", kickEvents},
		{"bans append user.banned, unban user.unbanned", banEvents},
		{"an expired session appends session.ended when it is swept, once", expiryEvents},
		{"what changes nothing appends nothing", noEvents},
		{"a reader goes on behind any event, and gets each that follows once", resume},
		{"no event comes into the log before the last event", afterTheLast},
		{"tail returns no more than its limit", tailLimit},
		{"tail waits for the next event", tailWaits},
		{"tail ends with its context", tailEnds},
		{"events are read without waiting, and the ids of an answer ascend", eventsWithoutWaiting},
		{"an unknown position, or one of another store, is gone", foreignPosition},
		{"events past what is kept are gone, never silently", eventsTrimmed},
		{"the last event is the newest", lastEvent},
		{"the last event that the public is told of says nothing of invisible users", lastPublicEvent},
		{"the end of a run of the archive is an event of nobody, for all", archiveEvents},
	}
}

// marker is a user whose ban is the sentinel up to which events are read.
const marker = "~marker"

// events returns all events a viewer sees after a position. It draws a sentinel
// so that the end is known without waiting; nothing of it is returned.
func (h *harness) events(v rollcall.Viewer, after rollcall.EventID) []rollcall.Event {
	h.NoError(h.engine.Flush(h.ctx))
	h.marks++
	sentinel := fmt.Sprint(marker, h.marks)
	h.ban(sentinel, time.Second)
	var out []rollcall.Event
	for {
		events, err := h.roll.As(v).Tail(h.ctx, after, 1000)
		h.NoError(err)
		h.NotEmpty(events, "tail returns only with an event or an error")
		for _, e := range events {
			h.Greater(e.ID, after, "the ids ascend")
			after = e.ID
			if e.User == sentinel {
				return out
			}
			if !strings.HasPrefix(e.User, marker) {
				out = append(out, e)
			}
		}
	}
}

// sessionEvents returns the truth's events about sessions and bans, without
// their ids.
func (h *harness) sessionEvents(after rollcall.EventID) []rollcall.Event {
	var out []rollcall.Event
	for _, e := range h.events(rollcall.ViewerAdmin, after) {
		if e.Type != rollcall.UserOnline && e.Type != rollcall.UserOffline {
			e.ID = ""
			out = append(out, e)
		}
	}
	return out
}

// last returns the newest event.
func (h *harness) last() rollcall.EventID {
	h.NoError(h.engine.Flush(h.ctx))
	id, err := h.roll.LastEvent(h.ctx)
	h.NoError(err)
	return id
}

func started(s rollcall.LoggedIn) rollcall.Event {
	return rollcall.Event{Type: rollcall.SessionStarted, At: s.Session.LoginAt, User: s.Session.User, Session: s.Session.ID}
}

func endedEvent(s rollcall.LoggedIn, at time.Time, cause rollcall.Cause) rollcall.Event {
	return rollcall.Event{Type: rollcall.SessionEnded, At: at, User: s.Session.User, Session: s.Session.ID, Cause: cause}
}

func startedEvent(h *harness) {
	s := h.login("alice")
	h.Equal([]rollcall.Event{started(s)}, h.sessionEvents(""))
}

func roomEvents(h *harness) {
	s := h.logins("alice", 3)
	after := h.last()
	h.roll.SetPolicies(h.newPolicies(rollcall.Policy{MaxSessions: 1}))
	in := h.login("alice")
	h.Equal([]rollcall.Event{
		endedEvent(s[0], h.now(), rollcall.CauseReplaced), endedEvent(s[1], h.now(), rollcall.CauseReplaced),
		endedEvent(s[2], h.now(), rollcall.CauseReplaced), started(in),
	}, h.sessionEvents(after))
}

func kickEvents(h *harness) {
	a, b := h.login("alice"), h.login("bob")
	after := h.last()
	h.advance(time.Minute)
	h.kick(rollcall.Kick{User: "alice", Reason: "spam", Actor: "admin"})
	h.logout(b)
	kicked := endedEvent(a, h.now(), rollcall.CauseKicked)
	kicked.Reason, kicked.Actor = "spam", "admin"
	h.ElementsMatch([]rollcall.Event{kicked, endedEvent(b, h.now(), rollcall.CauseLogout)}, h.sessionEvents(after))
}

func banEvents(h *harness) {
	a := h.login("alice")
	after := h.last()
	h.ban("alice", time.Hour)
	h.NoError(h.roll.Unban(h.ctx, "alice"))
	got := h.sessionEvents(after)
	h.Len(got, 3)
	ended := endedEvent(a, h.now(), rollcall.CauseBanned)
	ended.Reason, ended.Actor = "spam", "admin"
	h.Contains(got[:2], ended)
	h.Contains(got[:2], rollcall.Event{Type: rollcall.UserBanned, At: h.now(), User: "alice", Reason: "spam", Actor: "admin"})
	h.Equal(rollcall.UserUnbanned, got[2].Type)
	h.Equal("alice", got[2].User)

	b := h.login("bob")
	after = h.last()
	h.kick(rollcall.Kick{User: "bob", Ban: time.Hour})
	h.ElementsMatch([]rollcall.Event{
		endedEvent(b, h.now(), rollcall.CauseKicked), {Type: rollcall.UserBanned, At: h.now(), User: "bob"},
	}, h.sessionEvents(after))
}

func expiryEvents(h *harness) {
	h.policies(rollcall.Policy{IdleTimeout: time.Minute}, rollcall.Policy{Device: "tv", Lifetime: time.Minute})
	idle, old := h.login("alice"), h.loginAs(rollcall.Login{User: "bob", Device: "tv"})
	after := h.last()
	h.advance(time.Minute)
	h.ended(rollcall.CauseExpired, idle)
	for range 5 {
		h.tick()
		h.advance(time.Second)
	}
	want := []rollcall.Event{
		endedEvent(idle, start().Add(time.Minute), rollcall.CauseExpired), endedEvent(old, start().Add(time.Minute), rollcall.CauseLifetime),
	}
	h.ElementsMatch(want, h.sessionEvents(after))
	h.restart()
	h.tick()
	h.ElementsMatch(want, h.sessionEvents(after))
}

func noEvents(h *harness) {
	s := h.loginAs(rollcall.Login{User: "alice", RetryKey: "k"})
	h.logout(s)
	live := h.loginAs(rollcall.Login{User: "bob", RetryKey: "l"})
	after := h.last()
	h.Equal(live.Session.ID, h.loginAs(rollcall.Login{User: "bob", RetryKey: "l"}).Session.ID)
	h.loginFails(rollcall.Login{User: "alice", RetryKey: "k"}, rollcall.CodeSessionEnded)
	h.kick(rollcall.Kick{User: "alice"})
	h.kick(rollcall.Kick{Session: s.Session.ID})
	h.ended(rollcall.CauseLogout, s)
	h.code(rollcall.CodeNotFound, h.roll.Unban(h.ctx, "alice"))
	h.befriend("alice", "bob")
	h.mark(h.on("alice", 0))
	h.list(rollcall.SessionQuery{})
	h.Empty(h.sessionEvents(after))
}

func resume(h *harness) {
	for i := range 30 {
		s := h.login(fmt.Sprintf("u%d", i%7))
		if i%3 == 0 {
			h.logout(s)
		}
		h.advance(time.Millisecond)
	}
	all := h.events(rollcall.ViewerAdmin, "")
	h.GreaterOrEqual(len(all), 40)
	check := func() {
		for i := 0; i < len(all); i += 4 {
			rest := append([]rollcall.Event{all[i]}, h.events(rollcall.ViewerAdmin, all[i].ID)...)
			h.Equal(all[i:], rest, "none twice, none missing")
		}
	}
	check()
	h.restart()
	check()
}

func afterTheLast(h *harness) {
	for i := range 20 { // of users in many partitions
		before := h.last()
		user := fmt.Sprint("u", i)
		h.ban(user, time.Hour)
		got := h.sessionEvents(before)
		h.Len(got, 1)
		h.Equal(user, got[0].User)
	}
}

func tailLimit(h *harness) {
	h.crowd("u", 20, nil)
	var got []rollcall.EventID
	after := rollcall.EventID("")
	for len(got) < 20 {
		events, err := h.roll.Tail(h.ctx, after, 3)
		h.NoError(err)
		h.NotEmpty(events)
		h.LessOrEqual(len(events), 3)
		for _, e := range events {
			h.NotContains(got, e.ID)
			got = append(got, e.ID)
		}
		after = events[len(events)-1].ID
	}
	for _, limit := range []int{0, -1} {
		_, err := h.roll.Tail(h.ctx, "", limit)
		h.Equal("limit", h.code(rollcall.CodeInvalidArgument, err).Field)
	}
	h.crowd("v", rollcall.MaxLimit, nil)
	events, err := h.roll.Tail(h.ctx, "", 1<<30)
	h.NoError(err)
	h.Len(events, rollcall.MaxLimit)
}

// tailed is what a call of Tail came back with.
type tailed struct {
	events []rollcall.Event
	err    error
}

// tail calls Tail beside the case.
func (h *harness) tail(ctx context.Context, v rollcall.Viewer, after rollcall.EventID) <-chan tailed {
	out := make(chan tailed, 1)
	go func() {
		events, err := h.roll.As(v).Tail(ctx, after, 10)
		out <- tailed{events, err}
	}()
	return out
}

func tailWaits(h *harness) {
	h.login("alice")
	h.NoError(h.engine.Flush(h.ctx))
	waiting := h.tail(h.ctx, rollcall.ViewerAdmin, h.last())
	s := h.login("bob")
	got := <-waiting
	h.NoError(got.err)
	h.NotEmpty(got.events)
	for len(got.events) > 0 && got.events[0].Type != rollcall.SessionStarted { // someone came online before
		got = <-h.tail(h.ctx, rollcall.ViewerAdmin, got.events[len(got.events)-1].ID)
		h.NoError(got.err)
	}
	h.Equal(s.Session.ID, got.events[0].Session)

	h.fresh(rollcall.Options{})
	waiting = h.tail(h.ctx, rollcall.ViewerAdmin, "")
	s = h.login("carol")
	got = <-waiting
	h.NoError(got.err)
	h.Equal("carol", got.events[0].User, "a tail of an empty log waits too")
	h.alive(s)
}

func tailEnds(h *harness) {
	h.login("alice")
	ctx, cancel := context.WithCancel(h.ctx)
	waiting := h.tail(ctx, rollcall.ViewerAdmin, h.last())
	cancel()
	got := <-waiting
	h.Error(got.err)
	h.Empty(got.events)
	h.False(errors.Is(got.err, rollcall.ErrEventsGone))
	h.ErrorIs(got.err, context.Canceled)
}

func eventsWithoutWaiting(h *harness) {
	events, err := h.roll.EventsAfter(h.ctx, "", 10)
	h.NoError(err)
	h.Empty(events)
	h.crowd("u", 30, nil)
	var got []string
	after := rollcall.EventID("")
	for range 60 { // far more answers than needed
		events, err = h.roll.EventsAfter(h.ctx, after, 7)
		h.NoError(err)
		h.LessOrEqual(len(events), 7)
		if len(events) == 0 {
			break
		}
		for i, e := range events {
			h.True(i == 0 || events[i-1].ID < e.ID, "ids ascend")
			if e.Type == rollcall.SessionStarted {
				got = append(got, e.User)
			}
		}
		after = events[len(events)-1].ID
	}
	h.Empty(events, "nothing follows the last event")
	h.Len(got, 30)
	_, err = h.roll.EventsAfter(h.ctx, "x", 10)
	h.ErrorIs(err, rollcall.ErrEventsGone)
	_, err = h.roll.EventsAfter(h.ctx, "", 0)
	h.Equal("limit", h.code(rollcall.CodeInvalidArgument, err).Field)
}

func foreignPosition(h *harness) {
	h.crowd("u", 10, nil)
	foreign := h.last()
	h.fresh(rollcall.Options{})
	h.crowd("u", 20, nil)
	for _, id := range []rollcall.EventID{foreign, "x", "0", rollcall.EventID(fmt.Sprintf("%024x", 5)), h.last() + "00"} {
		_, err := h.roll.Tail(h.ctx, id, 10)
		h.ErrorIs(err, rollcall.ErrEventsGone, "%q", id)
	}
}

func eventsTrimmed(h *harness) {
	h.fresh(rollcall.Options{EventsAge: time.Hour})
	h.login("alice")
	old := h.last()
	h.login("bob")
	h.erase("bob")
	h.advance(2 * time.Hour)
	h.tick()
	h.login("carol")
	h.live(2 * time.Minute)
	_, err := h.roll.Tail(h.ctx, old, 10)
	h.ErrorIs(err, rollcall.ErrEventsGone)
	kept := h.sessionEvents("")
	h.NotEmpty(kept)
	h.Equal("carol", kept[len(kept)-1].User, "the beginning of what is kept")
	h.Equal(h.now().Add(-2*time.Minute), kept[0].At)
}

func lastPublicEvent(h *harness) {
	public := func() *rollcall.Roll { return h.roll.As(rollcall.ViewerPublic) } // of the engine that is open
	last := func() rollcall.EventID {
		h.NoError(h.engine.Flush(h.ctx))
		id, err := public().LastEvent(h.ctx)
		h.NoError(err)
		return id
	}
	h.hide("ghost")
	h.login("ghost")
	h.Empty(last())
	h.login("alice")
	seen := last()
	h.NotEmpty(seen)

	// What the invisible do moves the end of the log, and not the public's.
	whole := h.last()
	h.kick(rollcall.Kick{User: "ghost"})
	h.login("ghost")
	h.Greater(h.last(), whole)
	h.Equal(seen, last())
	h.restart()
	h.Equal(seen, last())
	after, err := public().EventsAfter(h.ctx, seen, 10)
	h.NoError(err)
	h.Empty(after)

	h.ban("bob", time.Hour)
	after, err = public().EventsAfter(h.ctx, seen, 10)
	h.NoError(err)
	h.Len(after, 1, "behind it nothing is missing")
	h.Equal(after[0].ID, last())
}

func lastEvent(h *harness) {
	h.Empty(h.last())
	h.login("alice")
	first := h.last()
	h.NotEmpty(first)
	h.login("bob")
	second := h.last()
	h.NotEqual(first, second)
	h.Equal(second, h.last())
	h.restart()
	h.Equal(second, h.last())
}

func archiveEvents(h *harness) {
	before := h.last()
	failed := rollcall.ArchiveRun{ID: 7, State: rollcall.RunFailed, Error: "unavailable: the database", Runner: "here, process 1"}
	done := rollcall.ArchiveRun{ID: 8, State: rollcall.RunCompleted, RowsWritten: 40, DaysOffloaded: 2, Runner: "there"}
	h.NoError(h.engine.RecordRun(h.ctx, h.now(), failed))
	h.NoError(h.engine.RecordRun(h.ctx, h.now(), done))
	h.restart()
	for _, v := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
		got := h.events(v, before)
		h.Len(got, 2)
		for i, want := range []rollcall.Event{
			{Type: rollcall.ArchiveFailed, Reason: "unavailable: the database", Actor: "here, process 1"},
			{Type: rollcall.ArchiveCompleted, Reason: "run 8: 40 user-months copied, 2 days left", Actor: "there"},
		} {
			h.Equal(h.now(), got[i].At.UTC())
			want.ID, want.At = got[i].ID, got[i].At
			h.Equal(want, got[i])
		}
	}
}

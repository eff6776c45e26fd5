package local

import (
	"context"
	"testing"
	"time"

	"github.com/rollcall/rollcall"
)

// answers are what is told of some users.
func (r *rig) answers(users ...string) []any {
	var out []any
	add := func(v any, err error) {
		r.NoError(err)
		out = append(out, v)
	}
	add(r.roll.KnownCount(r.ctx))
	add(r.roll.KnownUsers(r.ctx, rollcall.PageRequest{Limit: 100}))
	add(r.roll.OnlineCount(r.ctx, time.Hour))
	add(r.roll.Status(r.ctx, users...))
	add(r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 100}}))
	for _, user := range users {
		add(r.roll.User(r.ctx, user))
	}
	add(r.roll.Active(r.ctx, rollcall.ActiveQuery{
		Range: rollcall.DayRange{From: r.roll.Today() - 3, To: r.roll.Today()}, Match: rollcall.MatchAny, Page: rollcall.PageRequest{Limit: 100},
	}))
	add(r.roll.Tail(r.ctx, "", 1000))
	return out
}

// refusing runs a command whose batch the store does not take.
func (r *rig) refusing(command func() error) {
	r.eng.store.closed.Store(true)
	defer r.eng.store.closed.Store(false)
	r.Error(command())
}

func TestACommandWhoseBatchIsNotTakenChangesNothing(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(5)
	for _, user := range users[:3] {
		r.login(user)
	}
	r.logout(r.login(users[3]))
	r.NoError(r.roll.Beat(r.ctx, users[4]))
	_, _, err := r.roll.Mark(r.ctx, rollcall.Mark{User: users[0], Day: r.roll.Today() - 2})
	r.NoError(err)
	r.NoError(r.roll.Tick(r.ctx))
	r.clock.Advance(2 * time.Second)

	for what, command := range map[string]func() error{
		"erase":    func() error { return r.roll.Erase(r.ctx, users[0]) },
		"forget":   func() error { _, err := r.roll.ClearPresence(r.ctx, time.Second); return err },
		"ban":      func() error { _, err := r.roll.Ban(r.ctx, users[1], time.Hour, "", ""); return err },
		"kick":     func() error { _, err := r.roll.Kick(r.ctx, rollcall.Kick{User: users[1]}); return err },
		"login":    func() error { _, err := r.roll.Login(r.ctx, rollcall.Login{User: users[2]}); return err },
		"befriend": func() error { return r.roll.AddFriends(r.ctx, users[2], true, rollcall.Friend{User: users[1]}) },
		"mark": func() error {
			_, _, err := r.roll.Mark(r.ctx, rollcall.Mark{User: users[1], Day: r.roll.Today() - 1})
			return err
		},
		"unmark": func() error {
			_, err := r.roll.Unmark(r.ctx, true, rollcall.Mark{User: users[0], Day: r.roll.Today() - 2})
			return err
		},
	} {
		before := r.answers(users...)
		r.refusing(command)
		r.Equal(before, r.answers(users...), what)
	}
	before := r.answers(users...)
	r.restart()
	r.Equal(before, r.answers(users...), "in the store")
}

func TestAnErasureStopsAtADamagedEventWithMemoryAndStoreAlike(t *testing.T) {
	r := newRig(t, 0)
	r.login("alice")
	r.login("bob")
	r.NoError(r.roll.Tick(r.ctx))
	b := r.eng.store.newBatch()
	first := eventKey(1)
	whole, ok, err := r.eng.store.get(first)
	r.NoError(err)
	r.True(ok)
	r.Contains(string(whole), "alice")
	r.NoError(b.Set(first, append([]byte("alice"), whole...), nil))
	r.NoError(r.eng.store.write(b))

	r.Error(r.roll.Erase(r.ctx, "alice"), "its event cannot be read")
	told := func() []any {
		user, err := r.roll.User(r.ctx, "alice")
		r.NoError(err)
		active, err := r.roll.Active(r.ctx, rollcall.ActiveQuery{
			Range: rollcall.DayRange{From: r.roll.Today(), To: r.roll.Today()}, Match: rollcall.MatchAny, Page: rollcall.PageRequest{Limit: 10},
		})
		r.NoError(err)
		list, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10}})
		r.NoError(err)
		return []any{user, active, list}
	}
	before := told()

	// Opening would stop at the record too; in its place, the event is as it was.
	b = r.eng.store.newBatch()
	r.NoError(b.Set(first, whole, nil))
	r.NoError(r.eng.store.write(b))
	r.crash()
	r.Equal(before, told())
	events, err := r.roll.Tail(r.ctx, "", 100)
	r.NoError(err)
	for _, e := range events {
		r.NotEqual("alice", e.User, "opening finishes the erasure")
	}
}

// within asks for events, and waits a moment if there are none.
func (r *rig) within(after rollcall.EventID) ([]rollcall.Event, error) {
	ctx, cancel := context.WithTimeout(r.ctx, neverWithin)
	defer cancel()
	return r.roll.Tail(ctx, after, 1000)
}

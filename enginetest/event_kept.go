package enginetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

func eventKeptTests() []test {
	return []test{
		{"what is gone of one family does not matter to who reads the other", goneOfOneFamily},
		{"what is no longer kept is passed over, and told", passedOver},
		{"who begins at the beginning misses nothing behind it, page by page", fromTheBeginning},
		{"who goes on at next gets each event of their families once, and none of the others", goesOnAtNext},
		{"next moves on behind events that are none for the reader", nextMovesOn},
	}
}

// presenceTrimmed returns a place behind which events of presence are no longer kept, and
// the users whose bans follow it, of which all is kept.
func (h *harness) presenceTrimmed() (place rollcall.EventID, banned []string) {
	h.fresh(rollcall.Options{EventsCount: 1000})
	h.login("alice")
	place = h.last()
	users := make([]string, 3000)
	for i := range users {
		users[i] = fmt.Sprint("u", i)
	}
	for i, some := range slices.Collect(slices.Chunk(users, 1000)) {
		banned = append(banned, fmt.Sprint("banned", i))
		h.ban(banned[i], time.Hour)
		h.beat(some...)
	}
	h.live(3 * time.Second)
	return place, banned
}

// readOn reads the log from a place on, in parts. It returns all events up to the end, and
// whether the first part was whole.
func (h *harness) readOn(q rollcall.EventQuery) (events []rollcall.Event, whole bool) {
	for first := true; ; first = false {
		part, err := h.engine.EventsAfter(h.ctx, q)
		h.NoError(err)
		h.LessOrEqual(len(part.Events), q.Limit)
		for _, e := range part.Events {
			h.Greater(e.ID, q.After)
			h.LessOrEqual(e.ID, part.Next)
		}
		if events = append(events, part.Events...); first {
			whole = part.Gone == ""
		}
		h.True(part.Gone == "" || part.Gone > q.After)
		if part.Next == q.After {
			h.Empty(part.Events)
			return events, whole
		}
		q.After = part.Next
	}
}

// eventUsers returns the users of the events of a type.
func eventUsers(events []rollcall.Event, typ rollcall.EventType) (users []string) {
	for _, e := range events {
		if e.Type == typ {
			users = append(users, e.User)
		}
	}
	return users
}

func goneOfOneFamily(h *harness) {
	place, banned := h.presenceTrimmed()
	for _, read := range []func(...rollcall.EventFamily) ([]rollcall.Event, error){
		func(f ...rollcall.EventFamily) ([]rollcall.Event, error) {
			return h.roll.EventsAfter(h.ctx, place, 100, f...)
		},
		func(f ...rollcall.EventFamily) ([]rollcall.Event, error) { return h.roll.Tail(h.ctx, place, 100, f...) },
	} {
		events, err := read(rollcall.SessionEvents)
		h.NoError(err)
		h.Equal(banned, eventUsers(events, rollcall.UserBanned)[:len(events)])
		for _, families := range [][]rollcall.EventFamily{nil, {rollcall.PresenceEvents}, rollcall.EventFamilies()} {
			_, err = read(families...)
			h.ErrorIs(err, rollcall.ErrEventsGone, "%v", families)
		}
	}
	h.restart()
	events, err := h.roll.EventsAfter(h.ctx, place, 100, rollcall.SessionEvents)
	h.NoError(err)
	h.Len(events, len(banned))
	_, err = h.roll.EventsAfter(h.ctx, place, 100)
	h.ErrorIs(err, rollcall.ErrEventsGone)
}

func passedOver(h *harness) {
	place, banned := h.presenceTrimmed()
	all, whole := h.readOn(rollcall.EventQuery{Limit: 100})
	h.False(whole, "some are gone")
	online := len(eventUsers(all, rollcall.UserOnline))
	h.Positive(online)
	h.Less(online, 3000)

	rest, whole := h.readOn(rollcall.EventQuery{After: place, Limit: 100})
	h.False(whole)
	h.Equal(banned, eventUsers(rest, rollcall.UserBanned), "of which all is kept")
	h.Len(eventUsers(rest, rollcall.UserOnline), online, "those that are kept")

	some, whole := h.readOn(rollcall.EventQuery{After: place, Limit: 100, Families: []rollcall.EventFamily{rollcall.SessionEvents}})
	h.True(whole)
	h.Equal(banned, eventUsers(some, rollcall.UserBanned))
	part, err := h.engine.EventsAfter(h.ctx, rollcall.EventQuery{After: place, Limit: 1})
	h.NoError(err)
	behind, whole := h.readOn(rollcall.EventQuery{After: part.Gone, Limit: 100})
	h.True(whole, "nothing is missing behind the newest that is gone")
	h.Equal(slices.DeleteFunc(rest, func(e rollcall.Event) bool { return e.ID <= part.Gone }), behind)
	last := all[len(all)-1].ID
	none, whole := h.readOn(rollcall.EventQuery{After: last, Limit: 100})
	h.True(whole, "nothing is missing at the end")
	h.Empty(none)
}

func fromTheBeginning(h *harness) {
	_, banned := h.presenceTrimmed()
	for _, c := range []struct {
		families []rollcall.EventFamily
		bans     int
	}{{nil, 0}, {[]rollcall.EventFamily{rollcall.SessionEvents}, len(banned)}} {
		for _, read := range []func(context.Context, rollcall.EventID, int, ...rollcall.EventFamily) ([]rollcall.Event, error){h.roll.EventsAfter, h.roll.Tail} {
			h.ban("last", time.Hour)
			var got []rollcall.Event
			for after := rollcall.EventID(""); after == "" || got[len(got)-1].User != "last"; after = got[len(got)-1].ID {
				events, err := read(h.ctx, after, 50, c.families...)
				h.NoError(err, "behind %d events", len(got))
				h.NotEmpty(events)
				got = append(got, events...)
			}
			h.GreaterOrEqual(len(eventUsers(got, rollcall.UserBanned)), c.bans)
			h.NoError(h.roll.Unban(h.ctx, "last"))
		}
	}
}

func goesOnAtNext(h *harness) {
	for i := range 20 {
		s := h.login(fmt.Sprint("u", i))
		h.beat(fmt.Sprint("v", i))
		if i%3 == 0 {
			h.logout(s)
		}
		h.advance(time.Millisecond)
	}
	h.erase("u7")
	h.NoError(h.engine.Flush(h.ctx))
	all, whole := h.readOn(rollcall.EventQuery{Limit: rollcall.MaxLimit})
	h.True(whole)
	for _, families := range [][]rollcall.EventFamily{{rollcall.SessionEvents}, {rollcall.PresenceEvents}, {rollcall.PresenceEvents, rollcall.SessionEvents}} {
		want := slices.DeleteFunc(slices.Clone(all), func(e rollcall.Event) bool { return !slices.Contains(families, e.Type.Family()) })
		h.NotEmpty(want)
		for _, limit := range []int{1, 7, rollcall.MaxLimit} {
			got, whole := h.readOn(rollcall.EventQuery{Limit: limit, Families: families})
			h.True(whole)
			h.Equal(want, got, "%v, %d at a time", families, limit)
		}
	}
}

func nextMovesOn(h *harness) {
	q := rollcall.EventQuery{Limit: 5, Families: []rollcall.EventFamily{rollcall.SessionEvents}}
	part, err := h.engine.EventsAfter(h.ctx, q)
	h.NoError(err)
	h.Equal(rollcall.EventPart{}, part, "an empty log")
	h.login("alice")
	q.After = h.last()
	h.beat("bob", "carol", "dave")
	h.NoError(h.engine.Flush(h.ctx))
	none, whole := h.readOn(q)
	h.True(whole)
	h.Empty(none)
	part, err = h.engine.EventsAfter(h.ctx, q)
	h.NoError(err)
	h.NotEqual(q.After, part.Next)
	last := h.last()
	h.Equal(last, part.Next, "there is nothing else")
	q.After, q.Families = part.Next, nil
	none, _ = h.readOn(q)
	h.Empty(none)
	h.ban("erin", time.Hour)
	some, _ := h.readOn(q)
	h.Equal([]string{"erin"}, eventUsers(some, rollcall.UserBanned))
	q.After = "x"
	_, err = h.engine.EventsAfter(h.ctx, q)
	h.ErrorIs(err, rollcall.ErrEventsGone)
}

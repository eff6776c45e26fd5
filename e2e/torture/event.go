package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// eventHistory is what events have told, in the order in which they came.
type eventHistory struct {
	after    rollcall.EventID
	met      map[rollcall.EventID]bool
	began    time.Time // sessions begun later have their events in this log
	sessions map[string]*toldTimes
	online   map[string][]rollcall.Event // the last changes of each user
	events   int
}

// toldTimes is how often a session was told of.
type toldTimes struct {
	started []time.Time
	ended   []rollcall.Event
}

// newLog begins a new log, of a new store.
func (h *eventHistory) newLog(now span) {
	*h = eventHistory{
		met: map[rollcall.EventID]bool{}, began: now.hi, sessions: map[string]*toldTimes{},
		online: map[string][]rollcall.Event{}, events: h.events,
	}
}

// read reads on in the log of an engine, up to the newest event.
func (h *eventHistory) read(ctx context.Context, engine rollcall.Engine, now time.Time) (err error) {
	key, err := hex.DecodeString(secret)
	if err != nil {
		return err
	}
	roll, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(now), Secret: key})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, roll.Close()) }()
	last, err := roll.LastEvent(ctx)
	if err != nil || last == "" || h.met[last] {
		return err
	}
	for {
		events, err := tailSoon(ctx, roll, h.after)
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			h.enter(e)
		}
		h.after = events[len(events)-1].ID
		if h.met[last] {
			return nil
		}
	}
}

// tailWait is how long it takes at most, on a busy machine, until an event that is
// there is delivered. The newest one may be for others' eyes, and never come.
const tailWait = 3 * time.Second

// tailSoon reads on in a log, and returns none if none comes.
func tailSoon(ctx context.Context, roll *rollcall.Roll, after rollcall.EventID) ([]rollcall.Event, error) {
	limited, cancel := context.WithTimeout(ctx, tailWait)
	defer cancel()
	events, err := roll.Tail(limited, after, 1000)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the events after %q: %w", after, err)
	}
	return events, nil
}

// enter takes in an event. A resume may repeat some: ids tell.
func (h *eventHistory) enter(e rollcall.Event) {
	if h.met[e.ID] {
		return
	}
	h.met[e.ID] = true
	h.events++
	id := e.Session.String()
	s := h.sessions[id]
	if s == nil {
		s = &toldTimes{}
		h.sessions[id] = s
	}
	switch e.Type {
	case rollcall.SessionStarted:
		s.started = append(s.started, e.At)
	case rollcall.SessionEnded:
		s.ended = append(s.ended, e)
	case rollcall.UserOnline, rollcall.UserOffline:
		if e.User != "" {
			h.online[e.User] = append(h.online[e.User], e)
		}
	}
}

// compareEvents compares what was told with the model. Users whose last command
// was not answered are left out.
func (w *model) compareEvents(h *eventHistory) error {
	for _, u := range w.users {
		if u.unanswered != nil {
			continue
		}
		u.now.age(w.clocks.now(), &w.outages)
		for id, s := range u.now.sessions {
			if !s.login.lo.After(h.began) {
				continue
			}
			if err := s.compareEvents(h.sessions[id]); err != nil {
				return &difference{u, fmt.Errorf("session %s: %w", id, err)}
			}
		}
		if err := w.compareChanges(u, h); err != nil {
			return &difference{u, err}
		}
	}
	return nil
}

// compareEvents compares what was told of a session: that it began, once, and how
// it ended, once. That it ended by itself may be told later.
func (s *session) compareEvents(told *toldTimes) error {
	switch {
	case told == nil || len(told.started) != 1:
		return fmt.Errorf("its beginning was told otherwise than once: %+v", told)
	case !s.login.has(told.started[0]):
		return fmt.Errorf("it began at %s, and its event says %s", s.login, instant(told.started[0]))
	case len(told.ended) > 1:
		return fmt.Errorf("its end was told %d times: %+v", len(told.ended), told.ended)
	case s.end == nil && len(told.ended) > 0 && !s.mayHaveExpired && !s.mayHaveEnded:
		return fmt.Errorf("it lives, and its end was told: %+v", told.ended)
	case s.end == nil || s.end.cause == "":
		return nil
	}
	byItself := s.end.cause == rollcall.CauseExpired || s.end.cause == rollcall.CauseLifetime
	switch {
	case len(told.ended) == 0 && byItself:
		return nil
	case len(told.ended) == 0:
		return fmt.Errorf("it ended as %s at %s, and that was not told", s.end.cause, s.end.at)
	case s.end.told && told.ended[0].Cause != s.end.cause:
		return fmt.Errorf("it ended as %s, and its event says %s", s.end.cause, told.ended[0].Cause)
	}
	return nil
}

// compareChanges compares who was told to come and go: by turns, in the order of
// time. An erasure, and the clearing of last-seen times, begin anew.
func (w *model) compareChanges(u *user, h *eventHistory) error {
	list := h.online[u.id]
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if b.At.Before(a.At) {
			return fmt.Errorf("%s at %s was told behind %s at %s", b.Type, instant(b.At), a.Type, instant(a.At))
		}
		if a.Type == b.Type && !w.anew(u.id, a.At, b.At) {
			return fmt.Errorf("%s was told twice in a row: at %s and at %s", b.Type, instant(a.At), instant(b.At))
		}
	}
	if len(list) > 1 {
		h.online[u.id] = list[len(list)-1:]
	}
	return nil
}

// anew says whether a user may have been erased or cleared between two instants.
func (w *model) anew(user string, from, to time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.erasures[user] {
		if !x.at.hi.Before(from) && !x.at.lo.After(to) {
			return true
		}
	}
	return slices.ContainsFunc(w.clears, func(at span) bool { return !at.hi.Before(from) && !at.lo.After(to) })
}

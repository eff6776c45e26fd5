package demo

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// How finely the past is played. The service takes a silence of more than 5 s for an
// outage, so it is called at least that often. The console shows the last day by minutes,
// beside one hour of the day before; what is older it shows by hours, each of which is the
// mean of a few looks.
const (
	breath = 5 * time.Second
	fine   = time.Minute
	coarse = 20 * time.Minute
)

// Fill enters the past of a world into an engine that holds nothing: people, friends and
// months of days as an import enters them, two weeks of who was there, and the last day as
// it was lived. It ends at the time that now gives, and leaves the engine to be used with
// the same options and the system's clock. The options' own clock and observer do not count.
func (w *World) Fill(ctx context.Context, engine rollcall.Engine, o rollcall.Options, now func() time.Time) error {
	clock := rollcall.NewManualClock(w.heardFrom())
	o.Clock, o.Observer = clock, nil
	heard := o
	heard.NoPresenceEvents = true // nobody listened
	if err := w.with(engine, heard, func(roll *rollcall.Roll) error {
		if err := w.enterPast(ctx, roll); err != nil {
			return err
		}
		if err := w.hear(ctx, roll, clock); err != nil {
			return err
		}
		return w.markHeard(ctx, roll)
	}); err != nil {
		return err
	}
	return w.with(engine, o, func(roll *rollcall.Roll) error { return w.play(ctx, roll, clock, now) })
}

// with opens a service for one part of the past.
func (w *World) with(engine rollcall.Engine, o rollcall.Options, run func(*rollcall.Roll) error) error {
	roll, err := rollcall.New(engine, o)
	if err != nil {
		return err
	}
	return errors.Join(run(roll), roll.Close())
}

// enterPast enters everybody who came before the last day, and their days up to now.
func (w *World) enterPast(ctx context.Context, roll *rollcall.Roll) error {
	w.planned = roll.Today()
	var known []rollcall.UserSnapshot
	for i := range w.known() {
		known = append(known, w.snapshot(i, roll.Today()))
	}
	w.befriend(known, w.playedFrom())
	for some := range slices.Chunk(known, rollcall.MaxSnapshots) {
		if err := cmp.Or(ctx.Err(), roll.Import(ctx, some...)); err != nil {
			return err
		}
	}
	return nil
}

// known returns how many people came before the last day.
func (w *World) known() int {
	last := rollcall.DayOf(w.playedFrom(), w.opts.Timezone)
	n, _ := slices.BinarySearchFunc(w.people, last, func(p person, day rollcall.Day) int {
		if p.joined <= day {
			return -1
		}
		return 1
	})
	return n
}

// hear lets two weeks run through in which people are heard a few times an hour. Whoever
// is still there at the end logs in as the last day begins.
func (w *World) hear(ctx context.Context, roll *rollcall.Roll, clock *rollcall.ManualClock) error {
	var there []*visit
	for next := clock.Now(); next.Before(w.playedFrom()); next = next.Add(coarse) {
		there = w.thereAt(next, there)
		if err := w.breathe(ctx, roll, clock, next); err != nil {
			return err
		}
		users := make([]string, len(there))
		for i, v := range there {
			users[i] = w.people[v.who].id
		}
		for some := range slices.Chunk(users, rollcall.MaxBeatUsers) {
			if err := roll.Beat(ctx, some...); err != nil {
				return err
			}
		}
		if err := cmp.Or(ctx.Err(), roll.Tick(ctx)); err != nil {
			return err
		}
		w.told(next)
	}
	for _, v := range w.thereAt(w.playedFrom(), there) {
		w.steps.add(w.playedFrom(), v)
	}
	// Nobody is heard after the last look: the samples of the minutes since would say so.
	return w.breathe(ctx, roll, clock, w.playedFrom())
}

// signOfLife asks the service for next to nothing: each command says that it lives.
func (w *World) signOfLife(ctx context.Context, roll *rollcall.Roll) error {
	_, err := roll.Friends(ctx, w.people[0].id, rollcall.PageRequest{})
	return err
}

// thereAt returns the visits that go on at an instant: of those that went on before, and
// of those that have begun since.
func (w *World) thereAt(at time.Time, before []*visit) []*visit {
	w.planUntil(at, w.heardFrom())
	for len(w.steps) > 0 && !w.steps[0].at.After(at) {
		before = append(before, w.steps.next().of)
	}
	return slices.DeleteFunc(before, func(v *visit) bool { return !v.until.After(at) })
}

// breathe moves the clock, in steps that are no outage.
func (w *World) breathe(ctx context.Context, roll *rollcall.Roll, clock *rollcall.ManualClock, to time.Time) error {
	for at := clock.Now(); at.Before(to); {
		at = at.Add(breath)
		if at.After(to) {
			at = to
		}
		clock.Set(at)
		if err := w.signOfLife(ctx, roll); err != nil {
			return err
		}
	}
	return nil
}

// markHeard marks the days of the weeks in which people were only heard.
func (w *World) markHeard(ctx context.Context, roll *rollcall.Roll) error {
	var marks []rollcall.Mark
	from := rollcall.DayOf(w.heardFrom(), w.opts.Timezone)
	for day := from; day <= roll.Today(); day++ {
		for i := range w.known() {
			if w.comes(i, day) && day.ExistsIn(w.opts.Timezone) {
				marks = append(marks, rollcall.Mark{User: w.people[i].id, Kind: w.people[i].kind, Day: day})
			}
		}
	}
	for some := range slices.Chunk(marks, rollcall.MaxMarks) {
		if _, _, err := roll.ImportMarks(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// told tells how far the past has come.
func (w *World) told(at time.Time) {
	if w.opts.Progress != nil {
		whole := w.begun.Sub(w.heardFrom())
		w.opts.Progress(int(min(at.Sub(w.heardFrom()), whole)/time.Minute), int(whole/time.Minute))
	}
}

// snapshot is what is known of a person before a day.
func (w *World) snapshot(i int, before rollcall.Day) rollcall.UserSnapshot {
	p := &w.people[i]
	s := rollcall.UserSnapshot{User: p.id, Kind: p.kind, Name: p.name, Invisible: p.invisible}
	var days []rollcall.Day
	for day := p.joined; day < min(before, p.leaves); day++ {
		if w.comes(i, day) && day.ExistsIn(w.opts.Timezone) {
			days = append(days, day)
		}
	}
	if len(days) == 0 {
		return s
	}
	s.Days = map[string][]rollcall.Day{p.kind: days}
	at := days[len(days)-1].Start(w.opts.Timezone).Add(w.rhythm.time(w.dice(5, uint64(i)).roll()))
	s.LastSeen = at.Truncate(time.Second)
	return s
}

// befriend makes friends of people on both sides, some time after the later one came.
func (w *World) befriend(known []rollcall.UserSnapshot, now time.Time) {
	lists := make([]map[string]time.Time, len(known))
	for i := range lists {
		lists[i] = make(map[string]time.Time)
	}
	for i := range known {
		d, came := w.dice(6, uint64(i)), w.people[i].joined.Start(w.opts.Timezone)
		for _, other := range w.people[i].friends {
			since := came.Add(time.Duration(d.roll() * float64(now.Sub(came)))).Truncate(time.Second)
			lists[i][known[other].User] = since
			lists[other][known[i].User] = since
		}
	}
	for i, list := range lists {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			known[i].Friends = append(known[i].Friends, rollcall.Friend{User: name, Since: list[name]})
		}
	}
}

// play lets the last day run through on a clock of its own. What is played takes time: it
// goes on until it has caught up with the present.
func (w *World) play(ctx context.Context, roll *rollcall.Roll, clock *rollcall.ManualClock, now func() time.Time) error {
	at := clock.Now()
	for next := at; ; {
		present := now()
		if present.Sub(at) < time.Second {
			return nil
		}
		for at.Before(present) {
			to := at.Add(breath)
			if to.After(present) {
				to = present
			}
			if err := cmp.Or(w.advance(ctx, roll, to, clock), w.signOfLife(ctx, roll)); err != nil {
				return err
			}
			if at = to; at.Before(next) {
				continue
			}
			if err := cmp.Or(ctx.Err(), roll.Tick(ctx)); err != nil {
				return err
			}
			next = at.Truncate(fine).Add(fine)
			w.told(at)
		}
	}
}

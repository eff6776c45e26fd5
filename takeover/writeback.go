package takeover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// Origin is what is written back: a [rollcall.Roll], or a client of a server.
type Origin interface {
	Online(ctx context.Context, window time.Duration, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
	KnownUsers(ctx context.Context, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error)
	Sessions(ctx context.Context, q rollcall.SessionQuery) (rollcall.Page[rollcall.Session], error)
	EventsAfter(ctx context.Context, after rollcall.EventID, limit int, families ...rollcall.EventFamily) ([]rollcall.Event, error)
	LastEvent(ctx context.Context) (rollcall.EventID, error)
	Kinds(ctx context.Context) ([]rollcall.KindUse, error)
	Active(ctx context.Context, q rollcall.ActiveQuery) (rollcall.Page[string], error)
}

// WriteBackOptions say what is kept up to date. Layout, Unit (but for days and minutes),
// Zone and Now are required.
type WriteBackOptions struct {
	Names // with Sets, an online list is one of sessions
	Layout
	Unit     Unit              // of the scores that are written
	Lifetime time.Duration     // of a login record; default 24h
	Kinds    map[string]string // as in Options
	FirstBit int               // as in Options
	Zone     *time.Location    // of days
	Since    time.Time         // days from this one on are written; default today
	Every    time.Duration     // between two looks; default 5s
	Now      func() time.Time
}

// WriteBack keeps the keys of a hand-built system as it would have kept them itself, after
// the switch: so going back is to let the application use them again. Lists of friends
// are left as they are.
//
// What is written depends on what is true here, not on what happened: a write-back that was
// away for a while brings everything up to date when it begins again. It writes with
// ZADD GT, so it needs Redis 6.2.
type WriteBack struct {
	src    *Source
	from   Origin
	opts   WriteBackOptions
	names  names
	after  rollcall.EventID
	whole  bool      // the sets of users hold whole entries: see entryOf
	looked time.Time // when presence was last looked at
	marked time.Time // when days were last written
	counts map[dayOfKind]int
}

// dayOfKind is a day, of a kind.
type dayOfKind struct {
	kind string
	day  rollcall.Day
}

// NewWriteBack prepares a write-back, and asks nobody yet.
func NewWriteBack(src *Source, from Origin, o WriteBackOptions) (*WriteBack, error) {
	n, err := o.fill()
	return &WriteBack{src: src, from: from, opts: o, names: n}, err
}

// Check returns what is wrong with the options.
func (o WriteBackOptions) Check() error {
	_, err := o.fill()
	return err
}

func (o *WriteBackOptions) fill() (names, error) {
	more := Options{
		Names: o.Names, Layout: o.Layout, Unit: o.Unit, Lifetime: o.Lifetime, Kinds: o.Kinds, FirstBit: o.FirstBit, Every: o.Every, Now: o.Now,
	}
	n, err := more.fill()
	o.Lifetime, o.Every = more.Lifetime, more.Every
	scores := o.Layout == OnlineZset || o.Layout == LastSeenZset || o.Layout == HeartbeatZset
	switch {
	case err != nil:
	case scores && o.Unit != UnitSeconds && o.Unit != UnitMilliseconds:
		err = errors.New("--unit: must be s or ms to write back")
	case o.Zone == nil:
		err = errors.New("zone: is required")
	}
	if err == nil && o.Since.IsZero() {
		o.Since = o.Now()
	}
	return n, err
}

// Run brings the old keys up to date, and keeps them so until ctx ends. each, if not nil,
// is told after each look.
func (w *WriteBack) Run(ctx context.Context, each func()) error {
	tick := time.NewTicker(w.opts.Every)
	defer tick.Stop()
	var bears patience
	for first := true; ; {
		err := w.Look(ctx)
		if over(ctx, err) && err != nil {
			return nil // it was told to end
		}
		if err != nil && first {
			return err // what is wrong from the beginning is a mistake
		}
		if err := bears.with(err); err != nil {
			return err
		}
		if first = false; each != nil && err == nil {
			each()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look writes what has changed since the last look; the first one writes everything.
func (w *WriteBack) Look(ctx context.Context) error {
	switch w.opts.Layout {
	case OnlineZset:
		return w.writeSessions(ctx)
	case LoginBitmaps:
		return w.writeDays(ctx)
	case MinuteSets:
		return w.writeMinutes(ctx)
	default:
		return w.writeSeen(ctx)
	}
}

// write sends commands to the old Redis.
func (w *WriteBack) write(ctx context.Context, cmds ...rueidis.Completed) error {
	for len(cmds) > 0 {
		n := min(len(cmds), portion)
		if _, err := w.src.all(ctx, cmds[:n]...); err != nil {
			return err
		}
		cmds = cmds[n:]
	}
	return nil
}

// writeSeen writes last-seen times. They only move forward.
func (w *WriteBack) writeSeen(ctx context.Context) error {
	return w.seenSince(ctx, func(list []rollcall.Seen) error {
		cmds := make([]rueidis.Completed, len(list))
		for i, s := range list {
			cmds[i] = w.src.client.B().Zadd().Key(w.names.key).Gt().ScoreMember().ScoreMember(w.opts.Unit.score(s.LastSeen), s.User).Build()
		}
		return w.write(ctx, cmds...)
	})
}

// seenSince visits who was seen since the last look, and the first time all who are known.
func (w *WriteBack) seenSince(ctx context.Context, visit func([]rollcall.Seen) error) error {
	now := w.opts.Now()
	err := pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
		if w.looked.IsZero() {
			return w.from.KnownUsers(ctx, p)
		}
		return w.from.Online(ctx, now.Sub(w.looked).Truncate(time.Second)+overlap, p)
	}, visit)
	if err == nil {
		w.looked = now
	}
	return err
}

// writeMinutes adds users to the set of the minute they were last seen in.
func (w *WriteBack) writeMinutes(ctx context.Context) error {
	return w.seenSince(ctx, func(list []rollcall.Seen) error {
		oldest := w.opts.Now().Add(-(union - 1) * time.Minute).Truncate(time.Minute)
		byKey := make(map[string][]string)
		for _, s := range list {
			if !s.LastSeen.Before(oldest) {
				key := w.names.family.key(map[string]string{"minute": fmt.Sprintf("%02d", s.LastSeen.UTC().Minute())})
				byKey[key] = append(byKey[key], s.User)
			}
		}
		var cmds []rueidis.Completed
		for key, users := range byKey {
			cmds = append(cmds, w.src.client.B().Sadd().Key(key).Member(users...).Build(),
				w.src.client.B().Expire().Key(key).Seconds(union*60).Build())
		}
		return w.write(ctx, cmds...)
	})
}

// daysEvery is how often days are written.
const daysEvery = time.Minute

// writeDays sets the bits of who was there since a day.
func (w *WriteBack) writeDays(ctx context.Context) error {
	now := w.opts.Now()
	if now.Sub(w.marked) < daysEvery {
		return nil
	}
	kinds, err := w.from.Kinds(ctx)
	if err != nil {
		return err
	}
	if w.counts == nil {
		w.counts = make(map[dayOfKind]int)
	}
	from, today := rollcall.DayOf(w.opts.Since, w.opts.Zone), rollcall.DayOf(now, w.opts.Zone)
	for _, kind := range kinds {
		for day := from; day <= today; day++ {
			if err := w.writeDayIfNew(ctx, dayOfKind{kind.Kind, day}, day >= today-1); err != nil {
				return err
			}
		}
	}
	w.marked = now
	return nil
}

// writeDayIfNew writes a day if it may have marks that were not written yet. Marks of any day may
// come late; then there are more or fewer of that day.
func (w *WriteBack) writeDayIfNew(ctx context.Context, d dayOfKind, recent bool) error {
	page, err := w.from.Active(ctx, rollcall.ActiveQuery{
		Range: rollcall.DayRange{From: d.day, To: d.day}, Kind: d.kind, Page: rollcall.PageRequest{Limit: 1},
	})
	if err != nil || (!recent && w.counts[d] == page.Total) {
		return err
	}
	if err := w.writeDay(ctx, d.kind, d.day); err != nil {
		return err
	}
	w.counts[d] = page.Total
	return nil
}

func (w *WriteBack) writeDay(ctx context.Context, kind string, day rollcall.Day) error {
	date := day.Date()
	return pages(func(p rollcall.PageRequest) (rollcall.Page[string], error) {
		return w.from.Active(ctx, rollcall.ActiveQuery{Range: rollcall.DayRange{From: day, To: day}, Kind: kind, Page: p})
	}, func(users []string) error {
		var cmds []rueidis.Completed
		for _, user := range users {
			id, ok := strings.CutPrefix(user, w.opts.Kinds[kind])
			if !ok {
				continue // made here, under a name that the old system cannot have
			}
			key := w.names.family.key(map[string]string{"month": date.Format("2006-01"), "kind": kind, "user": id})
			cmds = append(cmds, w.src.client.B().Setbit().Key(key).Offset(int64(date.Day()-1+w.opts.FirstBit)).Value(1).Build())
		}
		return w.write(ctx, cmds...)
	})
}

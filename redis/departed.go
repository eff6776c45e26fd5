package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/recall"
)

const (
	// knowDeparted is how long the list of departed days is taken to hold, as
	// another server may let one go.
	knowDeparted = 10 * time.Second
	// recallBudget is the memory that marks read back from the archive may take.
	recallBudget = 256 << 20
)

// departedDays is what is known of the days that left.
type departedDays struct {
	mu   sync.Mutex
	list []rollcall.Departure
	read time.Time
	sets *recall.Months
}

func (d *departedDays) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = time.Time{}
	d.sets.Forget(func(recall.Key) bool { return false })
}

// departedDays returns the days that have left, by kind, then day.
func (e *Engine) departedDays(ctx context.Context) ([]rollcall.Departure, error) {
	if e.settings.Archive == nil {
		return nil, nil
	}
	d := &e.departed
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.read) > knowDeparted {
		list, err := e.settings.Archive.Departed(ctx)
		if err != nil {
			return nil, noArchive(err)
		}
		if !slices.Equal(list, d.list) {
			d.sets.Forget(func(recall.Key) bool { return false })
		}
		d.list, d.read = list, now
	}
	return d.list, nil
}

func noArchive(err error) error {
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the archive does not answer, and the question is about days that are there", Err: err}
}

// away is the marks of departed days that a question is about.
type away struct {
	days   []rollcall.Departure
	months map[recall.Key]*recall.Month
}

// recall reads the marks of departed days of a kind or all in a range.
func (e *Engine) recall(ctx context.Context, kind string, from, to int64) (*away, error) {
	list, err := e.departedDays(ctx)
	if err != nil {
		return nil, err
	}
	a := &away{months: make(map[recall.Key]*recall.Month)}
	for _, d := range list {
		if (kind != "" && d.Kind != kind) || int64(d.Day) < from || int64(d.Day) > to {
			continue
		}
		a.days = append(a.days, d)
		month := rollcall.MonthOf(d.Day)
		k := recall.Key{Kind: d.Kind, Month: int32(month)}
		if a.months[k] != nil {
			continue
		}
		if a.months[k], err = e.departed.sets.Load(k, func(m *recall.Month) error { return e.fill(ctx, d.Kind, month, m) }); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// fill reads a month from the archive and turns its users into numbers.
func (e *Engine) fill(ctx context.Context, kind string, month rollcall.Month, into *recall.Month) error {
	var some []rollcall.MonthMap
	flush := func() error {
		numbers, err := e.numbersOf(ctx, some)
		if err != nil {
			return err
		}
		for i, m := range some {
			if numbers[i] < 0 { // erased, and its rows with it in a moment
				continue
			}
			for _, day := range month.Days(m.Days) {
				into.Add(e.partOf(m.User), int32(day), uint32(numbers[i]))
			}
		}
		some = some[:0]
		return nil
	}
	err := e.settings.Archive.Each(ctx, kind, month, func(m rollcall.MonthMap) error {
		if some = append(some, m); len(some) < 5000 {
			return nil
		}
		return flush()
	})
	if err != nil {
		return noArchive(err)
	}
	return flush()
}

// numbersOf looks up the numbers of users, -1 for one that has none.
func (e *Engine) numbersOf(ctx context.Context, of []rollcall.MonthMap) ([]int64, error) {
	out := make([]int64, len(of))
	parts, places := e.byPart(len(of), func(i int) int { return e.partOf(of[i].User) })
	calls := make([]call, len(parts))
	for j, p := range parts {
		users := make([]string, len(places[j]))
		for k, i := range places[j] {
			users[k] = of[i].User
		}
		calls[j] = plain(func() rueidis.Completed { return e.client.B().Hmget().Key(e.of(p, "num")).Field(users...).Build() })
	}
	if len(calls) == 0 {
		return out, nil
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	for j, msg := range messages {
		numbers, err := msg.ToArray()
		if err != nil || len(numbers) != len(places[j]) {
			return nil, damaged("the numbers of users")
		}
		for k, i := range places[j] {
			out[i] = -1
			if !numbers[k].IsNil() {
				if out[i], err = numbers[k].AsInt64(); err != nil {
					return nil, damaged("the numbers of users")
				}
			}
		}
	}
	return out, nil
}

// unite adds the marks that are away to those of a partition that are here.
func (a *away) unite(part int, here daySets) {
	for _, d := range a.days {
		k := recall.Key{Kind: d.Kind, Month: int32(rollcall.MonthOf(d.Day))}
		set := a.months[k].Set(part, int32(d.Day))
		if set == nil {
			continue
		}
		if have := here[int32(d.Day)]; have != nil {
			here[int32(d.Day)] = roaring.Or(have, set)
		} else {
			here[int32(d.Day)] = set.Clone()
		}
	}
}

package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// dayFigures are the figures of a past day in one partition: the number of users of the
// day, of the week and of each kind of month that end with it. Redis caches them, so that
// a question reads neither sets nor the archive. A change of a mark that they count makes
// them stale: they are counted again when somebody asks. If the archive does not answer
// then, the stale figures do.
type dayFigures struct{ day, week, m28, m30, month uint32 }

func (f dayFigures) pack() string {
	var p packer
	for _, n := range [...]uint32{f.day, f.week, f.m28, f.m30, f.month} {
		p.u32(n)
	}
	return p.text()
}

// figureBytes is the length of packed figures; behind those that are stale is an S.
const figureBytes = 5 * 4

func unpackFigures(s string) (f dayFigures, stale, ok bool) {
	if stale = len(s) == figureBytes+1 && s[figureBytes] == 'S'; stale {
		s = s[:figureBytes]
	}
	u := unpacker{s: s}
	for _, n := range [...]*uint32{&f.day, &f.week, &f.m28, &f.m30, &f.month} {
		*n = uint32(u.num(4))
	}
	return f, stale, !u.bad && u.s == ""
}

func (f dayFigures) point(mau rollcall.MAU) dayset.Point {
	month := map[rollcall.MAU]uint32{rollcall.MAU28: f.m28, rollcall.MAU30: f.m30, rollcall.MAUMonth: f.month}[mau]
	return dayset.Point{DAU: int64(f.day), WAU: int64(f.week), MAU: int64(month)}
}

// Series implements [rollcall.Attendance].
func (e *Engine) Series(ctx context.Context, q rollcall.SeriesQuery) ([]rollcall.DayFigures, error) {
	out := make([]rollcall.DayFigures, q.Range.To-q.Range.From+1)
	for i := range out {
		out[i].Day = q.Range.From + rollcall.Day(i)
	}
	kept, today, err := e.addCached(ctx, &q, out)
	if err != nil {
		return nil, err
	}
	for _, r := range enginekit.Gaps(q.Range, enginekit.LongestMAU, cachedFrom(q.Range.From, kept)) {
		if err := e.countUncached(ctx, &q, r, kept, today, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cachedDay says whether the partitions have the figures of a day.
type cachedDay uint8

const (
	cachedAll   cachedDay = iota // every partition has them
	cachedStale                  // every one does, and some are stale
	cachedNone                   // some do not
)

// addCached adds the figures that all partitions have, stale or not. It returns how each
// day is cached, and what day it is in the partition with the latest clock: the clock of
// one without users stands still.
func (e *Engine) addCached(ctx context.Context, q *rollcall.SeriesQuery, out []rollcall.DayFigures) (kept []cachedDay, today rollcall.Day, err error) {
	messages, err := e.inAllParts(ctx, 0, &e.scripts.figuresGet, q.Kind, fmt.Sprint(int32(q.Range.From)), fmt.Sprint(int32(q.Range.To)))
	if err != nil {
		return nil, 0, err
	}
	kept = make([]cachedDay, len(out))
	latest := int64(0)
	for _, msg := range messages {
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply) != 1+len(out) {
			return nil, 0, damaged("figures of days")
		}
		clock, err := strconv.ParseInt(reply[0], 10, 64)
		if err != nil {
			return nil, 0, damaged("figures of days")
		}
		latest = max(latest, clock)
		for i, packed := range reply[1:] {
			f, stale, ok := unpackFigures(packed)
			switch {
			case !ok:
				kept[i] = cachedNone
			case stale:
				kept[i] = max(kept[i], cachedStale)
			}
			add(&out[i], f.point(q.MAU))
		}
	}
	for i := range out {
		if out[i].Stale = kept[i] == cachedStale; kept[i] == cachedNone {
			out[i] = rollcall.DayFigures{Day: out[i].Day}
		}
	}
	return kept, rollcall.DayOf(enginekit.TimeOrZero(latest), e.settings.Zone()), nil
}

// cachedFrom returns a function that tells whether the figures of a day are cached and
// not stale; the days of kept begin with first.
func cachedFrom(first rollcall.Day, kept []cachedDay) func(rollcall.Day) bool {
	return func(day rollcall.Day) bool { return kept[day-first] == cachedAll }
}

func add(f *rollcall.DayFigures, p dayset.Point) {
	f.DAU, f.WAU, f.MAU = f.DAU+int(p.DAU), f.WAU+int(p.WAU), f.MAU+int(p.MAU)
}

// countUncached counts the figures of a range of days. If the archive does not answer in
// time, stale figures stay as they are, and the other days are counted without them.
func (e *Engine) countUncached(ctx context.Context, q *rollcall.SeriesQuery, r rollcall.DayRange, kept []cachedDay, today rollcall.Day, out []rollcall.DayFigures) error {
	of := slices.Clone(kept[r.From-q.Range.From : r.To-q.Range.From+1])
	if !slices.Contains(of, cachedStale) {
		return e.countAndCache(ctx, q, r, today, out)
	}

	// Count them again, as long as the archive answers soon.
	fallback := slices.Clone(out)
	count := func(ctx context.Context, some rollcall.DayRange) error {
		return e.countAndCache(ctx, q, some, today, out)
	}
	return enginekit.CountPatiently(ctx, e.settings.Archive, r, count, func() (known func(rollcall.Day) bool) {
		// It does not: the stale figures stand, and the gaps between them are counted.
		copy(out, fallback)
		for i := range of {
			if of[i] == cachedStale {
				of[i] = cachedAll
			}
		}
		return cachedFrom(r.From, of)
	})
}

// countAndCache counts the figures of a range of days from their sets, and caches those of
// days that are over.
func (e *Engine) countAndCache(ctx context.Context, q *rollcall.SeriesQuery, r rollcall.DayRange, today rollcall.Day, out []rollcall.DayFigures) error {
	some := out[r.From-q.Range.From : r.To-q.Range.From+1]
	for i := range some { // days between two that are open were kept
		some[i] = rollcall.DayFigures{Day: some[i].Day}
	}
	over := max(0, min(len(some), int(today-r.From))) // that many days
	var keep []call
	var left []offloadNote
	err := e.eachDays(ctx, q.Kind, int64(r.From)-enginekit.LongestMAU+1, int64(r.To), func(p int, d partDays) error {
		left = append(left, d.offloaded...)
		figures := figuresOf(d.sets, r)
		for i, f := range figures {
			add(&some[i], f.point(q.MAU))
		}
		if over > 0 {
			for first := 0; first < over; first += figurePutStep {
				keep = append(keep, e.putFigures(p, q.Kind, d, r.From+rollcall.Day(first), figures[first:min(over, first+figurePutStep)]))
			}
		}
		return nil
	})
	if err != nil || over == 0 {
		return err
	}
	// If days were restored since the list was read, the figures may lack marks.
	if back, err := e.anyRestored(ctx, left); err != nil || back {
		return err
	}
	_, err = e.do(ctx, 0, keep...)
	return err
}

// figuresOf counts all figures of the days of a range.
func figuresOf(s daySets, r rollcall.DayRange) []dayFigures {
	figures := dayset.AllFigures(s, int32(r.From), int32(r.To))
	out := make([]dayFigures, len(figures))
	for i, f := range figures {
		out[i] = dayFigures{
			day: uint32(f.DAU), week: uint32(f.WAU), m28: uint32(f.MAU28), m30: uint32(f.MAU30), month: uint32(f.Month),
		}
	}
	return out
}

// figurePutStep is how many days' figures one script caches.
const figurePutStep = 500

// putFigures is the call that caches the figures of consecutive days.
func (e *Engine) putFigures(part int, kind string, d partDays, from rollcall.Day, figures []dayFigures) call {
	args := []string{fmt.Sprint(d.markChange), kind}
	for i, f := range figures {
		args = append(args, fmt.Sprint(int32(from)+int32(i)), f.pack())
	}
	return partCall(part, &e.scripts.figuresPut, args...)
}

// finalizeTries is how often figures are counted again when marks change meanwhile. After
// that the day is offloaded without: they can be counted from the archive.
const finalizeTries = 3

// FinalizeFigures implements [rollcall.Archival].
func (e *Engine) FinalizeFigures(ctx context.Context, kind string, days rollcall.DayRange) error {
	for _, k := range []string{kind, ""} {
		q := rollcall.SeriesQuery{Kind: k, Range: rollcall.DayRange{From: days.From, To: days.To + enginekit.LongestMAU - 1}, MAU: rollcall.MAU28}
		for range finalizeTries {
			if _, err := e.Series(ctx, q); err != nil {
				return err
			}
			kept, today, err := e.addCached(ctx, &q, make([]rollcall.DayFigures, q.Range.To-q.Range.From+1))
			if err != nil {
				return err
			}
			over := kept[:max(0, min(len(kept), int(today-days.From)))]
			if !slices.ContainsFunc(over, func(k cachedDay) bool { return k != cachedAll }) {
				break
			}
		}
	}
	return nil
}

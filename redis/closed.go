package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// closedFigures are the figures of a closed day in one partition: the number of
// users of the day, of the week and of each kind of month that end with it. They
// are kept in Redis until a mark changes them, so that neither their sets nor
// the archive need be asked.
type closedFigures struct{ day, week, m28, m30, month uint32 }

func (f closedFigures) pack() string {
	var p packer
	for _, n := range [...]uint32{f.day, f.week, f.m28, f.m30, f.month} {
		p.u32(n)
	}
	return p.text()
}

func unpackClosed(s string) (f closedFigures, ok bool) {
	u := unpacker{s: s}
	for _, n := range [...]*uint32{&f.day, &f.week, &f.m28, &f.m30, &f.month} {
		*n = uint32(u.num(4))
	}
	return f, !u.bad && u.s == ""
}

func (f closedFigures) point(mau rollcall.MAU) dayset.Point {
	month := map[rollcall.MAU]uint32{rollcall.MAU28: f.m28, rollcall.MAU30: f.m30, rollcall.MAUMonth: f.month}[mau]
	return dayset.Point{DAU: int64(f.day), WAU: int64(f.week), MAU: int64(month)}
}

// Series implements [rollcall.Attendance].
func (e *Engine) Series(ctx context.Context, q rollcall.SeriesQuery) ([]rollcall.DayFigures, error) {
	out := make([]rollcall.DayFigures, q.Range.To-q.Range.From+1)
	for i := range out {
		out[i].Day = q.Range.From + rollcall.Day(i)
	}
	open, today, err := e.addClosed(ctx, &q, out)
	if err != nil {
		return nil, err
	}
	for _, r := range gaps(open, q.Range.From) {
		if err := e.addOpen(ctx, &q, r, today, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addClosed adds what every partition keeps, and returns of which days one does
// not, and what day it is in the partition that is ahead: one without users
// stands still.
func (e *Engine) addClosed(ctx context.Context, q *rollcall.SeriesQuery, out []rollcall.DayFigures) (open []bool, today rollcall.Day, err error) {
	messages, err := e.everywhere(ctx, 0, &e.scripts.closed, q.Kind, fmt.Sprint(int32(q.Range.From)), fmt.Sprint(int32(q.Range.To)))
	if err != nil {
		return nil, 0, err
	}
	open = make([]bool, len(out))
	latest := int64(0)
	for _, msg := range messages {
		kept, err := msg.AsStrSlice()
		if err != nil || len(kept) != 1+len(out) {
			return nil, 0, damaged("figures of days")
		}
		clock, err := strconv.ParseInt(kept[0], 10, 64)
		if err != nil {
			return nil, 0, damaged("figures of days")
		}
		latest = max(latest, clock)
		for i, packed := range kept[1:] {
			f, ok := unpackClosed(packed)
			open[i] = open[i] || !ok
			add(&out[i], f.point(q.MAU))
		}
	}
	for i := range out {
		if open[i] {
			out[i] = rollcall.DayFigures{Day: out[i].Day}
		}
	}
	return open, rollcall.DayOf(timeOf(latest), e.zone()), nil
}

// gaps returns the ranges of days that are open, those together that one reading
// of sets serves.
func gaps(open []bool, first rollcall.Day) (out []rollcall.DayRange) {
	for i, is := range open {
		day := first + rollcall.Day(i)
		if n := len(out); !is {
			continue
		} else if n > 0 && day-out[n-1].To < longestMAU {
			out[n-1].To = day
		} else {
			out = append(out, rollcall.DayRange{From: day, To: day})
		}
	}
	return out
}

func add(f *rollcall.DayFigures, p dayset.Point) {
	f.DAU, f.WAU, f.MAU = f.DAU+int(p.DAU), f.WAU+int(p.WAU), f.MAU+int(p.MAU)
}

// addOpen makes the figures of a range of days from their sets, and keeps those
// of days that are over.
func (e *Engine) addOpen(ctx context.Context, q *rollcall.SeriesQuery, r rollcall.DayRange, today rollcall.Day, out []rollcall.DayFigures) error {
	some := out[r.From-q.Range.From : r.To-q.Range.From+1]
	for i := range some { // days between two that are open were kept
		some[i] = rollcall.DayFigures{Day: some[i].Day}
	}
	over := max(0, min(len(some), int(today-r.From))) // that many days
	var keep []call
	var left []leave
	err := e.eachDays(ctx, q.Kind, int64(r.From)-longestMAU+1, int64(r.To), func(p int, d partDays) error {
		left = append(left, d.left...)
		figures := figuresOf(d.sets, r)
		for i, f := range figures {
			add(&some[i], f.point(q.MAU))
		}
		if over > 0 {
			for first := 0; first < over; first += keepStep {
				keep = append(keep, e.keep(p, q.Kind, d, r.From+rollcall.Day(first), figures[first:min(over, first+keepStep)]))
			}
		}
		return nil
	})
	if err != nil || over == 0 {
		return err
	}
	// Days may have come back since the list of them was read.
	if back, err := e.anyBack(ctx, left); err != nil || back {
		return err
	}
	_, err = e.do(ctx, 0, keep...)
	return err
}

// figuresOf makes all figures of the days of a range.
func figuresOf(s daySets, r rollcall.DayRange) []closedFigures {
	from, to := int32(r.From), int32(r.To)
	m28 := dayset.Series(nil, s, from, to, dayset.MAU28)
	m30 := dayset.Series(nil, s, from, to, dayset.MAU30)
	month := dayset.Series(nil, s, from, to, dayset.MAUMonth)
	out := make([]closedFigures, len(m28))
	for i := range out {
		out[i] = closedFigures{
			day: uint32(m28[i].DAU), week: uint32(m28[i].WAU),
			m28: uint32(m28[i].MAU), m30: uint32(m30[i].MAU), month: uint32(month[i].MAU),
		}
	}
	return out
}

// keepStep is how many days' figures one script keeps.
const keepStep = 500

// keep is the call that keeps the figures of days from one on, which are over.
func (e *Engine) keep(part int, kind string, d partDays, from rollcall.Day, figures []closedFigures) call {
	args := []string{fmt.Sprint(d.marks), kind}
	for i, f := range figures {
		args = append(args, fmt.Sprint(int32(from)+int32(i)), f.pack())
	}
	return in(part, &e.scripts.close, args...)
}

// closeTries is how often the figures of a day are made anew when marks come in
// meanwhile. After that the day departs without: they can be made of the archive.
const closeTries = 3

// Conclude implements [rollcall.Archival].
func (e *Engine) Conclude(ctx context.Context, kind string, day rollcall.Day) error {
	for _, k := range []string{kind, ""} {
		q := rollcall.SeriesQuery{Kind: k, Range: rollcall.DayRange{From: day, To: day + longestMAU - 1}, MAU: rollcall.MAU28}
		for range closeTries {
			if _, err := e.Series(ctx, q); err != nil {
				return err
			}
			open, today, err := e.addClosed(ctx, &q, make([]rollcall.DayFigures, longestMAU))
			if err != nil {
				return err
			}
			if !slices.Contains(open[:max(0, min(longestMAU, int(today-day)))], true) {
				break
			}
		}
	}
	return nil
}

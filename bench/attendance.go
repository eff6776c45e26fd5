package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// habits are how the users of a population come: shares of them daily, weekly and
// monthly, with the chance of a day in 2^16.
var habits = []struct {
	share, chance uint64
}{
	{25, 95 << 16 / 100}, // of 100 users, 25 nearly every day
	{30, 1 << 16 / 7},    // 30 about once in 7 days
	{45, 1 << 16 / 30},   // 45 about once in 30
}

// population is users who join over the days, half of them before the first.
type population struct{ users, days int }

// mix spreads the bits of a number, as splitmix64 does.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// active reports whether a user is there on a day, counted from 0.
func (p population) active(user, day int) bool {
	who := mix(uint64(user)) //nolint:gosec // not negative
	if half := p.users / 2; user >= half && p.days > 28 && (user-half)*p.days/half > day {
		return false // has not joined yet
	}
	what := mix(uint64(user)<<16|uint64(day)) >> 48 //nolint:gosec // not negative
	class := who % 100
	for _, h := range habits {
		if class < h.share {
			return what < h.chance
		}
		class -= h.share
	}
	return false
}

// attendance is the same days on both sides.
type attendance struct {
	population
	own   *bench
	peer  *peer
	first rollcall.Day
}

func dayKey(day int) string { return "day:" + strconv.Itoa(day) }

// markStep is how many marks are given to the engine at once.
const markStep = 200_000

// day has everyone come who does on a day. Redis is given the bitmap whole, so
// that the filling of it takes no time.
func (a *attendance) day(ctx context.Context, day int) error {
	bitmap := make([]byte, (a.users+7)/8)
	marks := make([]rollcall.Mark, 0, markStep)
	send := func() error {
		_, _, err := a.own.engine.Mark(ctx, time.Now(), marks)
		marks = marks[:0]
		return err
	}
	for user := range a.users {
		if !a.active(user, day) {
			continue
		}
		bitmap[user>>3] |= 128 >> (user & 7)
		marks = append(marks, rollcall.Mark{User: strconv.Itoa(user), Kind: "user", Day: a.first + rollcall.Day(day)})
		if len(marks) == markStep {
			if err := send(); err != nil {
				return err
			}
		}
	}
	if err := send(); err != nil {
		return err
	}
	_, err := a.peer.call("SET", dayKey(day), string(bitmap))
	return err
}

// attendanceYear is up to how many users a year of days is filled; of more, four weeks.
const attendanceYear = 10_000_000

// attendanceTarget notes what a question may take.
func (s *section) attendanceTarget(question, users string, took time.Duration) {
	goal := map[string]time.Duration{"DAU, WAU and MAU-28": 100 * time.Millisecond, "52 weeks of retention": 2 * time.Second, "one user's month": 10 * time.Microsecond}[question]
	if goal > 0 {
		s.within("P12", question+", of "+users+" users", took, goal)
	}
}

// measureAttendance measures questions about days, and what a day takes.
func measureAttendance(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Attendance",
		about: "Of all users 25 % come nearly every day, 30 % once in 7 days and 45 % once in 30, so that about 30 % come on a day; half of them joined in the course of the year. " +
			"52 weeks of days, of the largest number of users 28 days. Redis: each day a bitmap by number of the user, asked with `BITCOUNT`, `BITOP` and `GETBIT`; what number a user has is kept elsewhere. " +
			"Medians, and every answer of one side is compared with that of the other.",
	}
	memory := table{head: []string{"users", "marks of the last day", "Rollcall: the day", "all days, and who was first when", "Redis: the day", "all days"}}
	asked := table{head: []string{"users", "question", "Rollcall", "Redis", "ratio"}}
	for _, n := range sizes {
		if err := s.oneAttendance(ctx, n, n <= attendanceYear, &memory, &asked); err != nil {
			return s, err
		}
	}
	memory.note = "Rollcall: the engine's account of its days. It holds beside them what each day's answers are made of: on which day each user was first seen, and which months are to be archived."
	s.tables = []table{memory, asked}
	return s, nil
}

func (s *section) oneAttendance(ctx context.Context, users int, year bool, memory, asked *table) error {
	a, err := openAttendance(ctx, users, year)
	if err != nil {
		return err
	}
	one, all, err := a.fill(ctx)
	if err != nil {
		return errors.Join(err, a.close())
	}
	hand, err := a.peer.number("MEMORY", "USAGE", dayKey(a.days-1))
	hands, err2 := a.peer.memory()
	there, err3 := a.peer.number("BITCOUNT", dayKey(a.days-1))
	if err := errors.Join(err, err2, err3); err != nil {
		return errors.Join(err, a.close())
	}
	name := count(float64(users))
	if users >= 100_000_000 { // of fewer, the partly used end of each partition's bitmap shows
		s.atMost("P12", "memory of a day of one kind, of "+name+" users", float64(one), float64(users)/100e6*13e6, megabytes)
	}
	memory.add(name, count(float64(there)), mib(one), mib(all), mib(int64(hand)), mib(hands))
	for _, q := range a.questions(ctx) {
		own, quick, err := timed(q.calls, q.own)
		if err == nil {
			var theirs int
			var slow time.Duration
			if theirs, slow, err = timed(q.calls, q.hand); err == nil && theirs != own {
				err = fmt.Errorf("%s: Rollcall says %d, Redis %d", q.name, own, theirs)
			}
			s.attendanceTarget(q.name, name, quick)
			asked.add(name, q.name, took(quick), took(slow), times(slow.Seconds()/quick.Seconds()))
		}
		if err != nil {
			return errors.Join(err, a.close())
		}
	}
	return a.close()
}

// openAttendance opens both sides, for the 52 weeks up to today or for 28 days.
func openAttendance(ctx context.Context, users int, year bool) (*attendance, error) {
	own, err := open(local.Options{Durability: local.Interval}, rollcall.Options{})
	if err != nil {
		return nil, err
	}
	first := own.Today() - 27
	if year {
		first = rollcall.PeriodWeek.Start(own.Today()) - 51*7
	}
	a := &attendance{population: population{users, int(own.Today()-first) + 1}, own: own, first: first}
	if a.peer, err = startPeer(ctx); err != nil {
		return nil, errors.Join(err, own.close())
	}
	return a, nil
}

func (a *attendance) close() error { return errors.Join(a.own.close(), a.peer.stop()) }

// fill has all days but the last come, and then the last one by itself. It
// returns what that day takes in the engine's account, and what all take.
func (a *attendance) fill(ctx context.Context) (one, all int64, err error) {
	for day := range a.days - 1 {
		if err := a.day(ctx, day); err != nil {
			return 0, 0, err
		}
		if day%28 == 27 {
			fmt.Fprintf(os.Stderr, "bench: %d of %d days of %s users\n", day+1, a.days, count(float64(a.users)))
		}
	}
	before, err := a.own.footprint(ctx)
	if err == nil {
		err = a.day(ctx, a.days-1)
	}
	if err != nil {
		return 0, 0, err
	}
	after, err := a.own.footprint(ctx)
	return after.of("attendance") - before.of("attendance"), after.of("attendance"), err
}

// timed calls f so often and returns its answer, which must stay the same, and the median of the times.
func timed(calls int, f func() (int, error)) (answer int, middle time.Duration, err error) {
	var all []time.Duration
	for i := range calls {
		began := time.Now()
		got, err := f()
		all = append(all, time.Since(began))
		if err != nil {
			return answer, 0, err
		}
		if i > 0 && got != answer {
			return answer, 0, fmt.Errorf("answers differ: %v, then %v", answer, got)
		}
		answer = got
	}
	return answer, median(all), nil
}

// question is asked on both sides, which have to agree.
type question struct {
	name      string
	own, hand func() (int, error)
	calls     int
}

func (a *attendance) questions(ctx context.Context) []question {
	last := a.days - 1
	today := rollcall.DayRange{From: a.first + rollcall.Day(last), To: a.first + rollcall.Day(last)}
	series := func(pick func(rollcall.DayFigures) int) func() (int, error) {
		return func() (int, error) {
			got, err := a.own.Series(ctx, rollcall.SeriesQuery{Range: today})
			if err != nil {
				return 0, err
			}
			return pick(got[0]), nil
		}
	}
	whole := rollcall.DayRange{From: a.first, To: today.To}
	list := []question{
		{"DAU", func() (int, error) {
			got, err := a.own.Active(ctx, rollcall.ActiveQuery{Range: today, Page: rollcall.PageRequest{Limit: 1}})
			return got.Total, err
		}, func() (int, error) { return a.peer.number("BITCOUNT", dayKey(last)) }, 9},
		{"DAU, WAU and MAU-28", series(func(f rollcall.DayFigures) int { return f.MAU }), func() (int, error) { return a.peer.union(last-27, last) }, 9},
		{"one user's month", func() (int, error) {
			got, err := a.own.engine.Days(ctx, strconv.Itoa(a.users/3), "user", rollcall.DayRange{From: today.To - 27, To: today.To})
			return len(got), err
		}, func() (int, error) { return a.peer.month(a.users/3, last-27, last) }, 99},
	}
	if a.days <= 28 {
		return list
	}
	return append(list, question{"52 weeks of retention", func() (int, error) {
		got, err := a.own.Retention(ctx, rollcall.RetentionQuery{Range: whole, Period: rollcall.PeriodWeek})
		sum := 0
		for _, row := range got.Rows {
			for _, n := range row.Retained {
				sum += n
			}
		}
		return sum, err
	}, func() (int, error) { return a.peer.retention(a.days) }, 3})
}

// number runs a command whose answer is a number.
func (p *peer) number(args ...string) (int, error) {
	text, err := p.call(args...)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

func (p *peer) or(into string, from, to int) error {
	args := []string{"BITOP", "OR", into}
	for d := from; d <= to; d++ {
		args = append(args, dayKey(d))
	}
	_, err := p.call(args...)
	return err
}

// union counts who was there on any day of a range.
func (p *peer) union(from, to int) (int, error) {
	if err := p.or("union", from, to); err != nil {
		return 0, err
	}
	return p.number("BITCOUNT", "union")
}

// month counts on how many days of a range a user was there, in one round trip.
func (p *peer) month(user, from, to int) (int, error) {
	w := bufio.NewWriter(p.conn)
	for d := from; d <= to; d++ {
		writeCommand(w, "GETBIT", dayKey(d), strconv.Itoa(user))
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	total := 0
	for range to - from + 1 {
		text, err := p.answer()
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// retention sums, over the weeks that users were first there in and those after,
// how many of them came: the table a cohort analysis shows.
func (p *peer) retention(days int) (int, error) {
	weeks := (days + 6) / 7
	week, fresh := func(i int) string { return fmt.Sprint("week:", i) }, func(i int) string { return fmt.Sprint("fresh:", i) }
	if _, err := p.call("DEL", "known"); err != nil {
		return 0, err
	}
	for i := range weeks {
		if err := p.or(week(i), 7*i, min(7*i+6, days-1)); err != nil {
			return 0, err
		}
		for _, command := range [][]string{
			{"BITOP", "OR", "after", "known", week(i)},
			{"BITOP", "XOR", fresh(i), "after", "known"},
			{"RENAME", "after", "known"},
		} {
			if _, err := p.call(command...); err != nil {
				return 0, err
			}
		}
	}
	sum := 0
	for i := range weeks {
		for k := i; k < weeks; k++ {
			if _, err := p.call("BITOP", "AND", "both", fresh(i), week(k)); err != nil {
				return 0, err
			}
			n, err := p.number("BITCOUNT", "both")
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

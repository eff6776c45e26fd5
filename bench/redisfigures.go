package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
)

// figureDays is how many days the figures of the distributed engine look at.
const figureDays = 60

// measureRedisFigures asks the distributed engine for the figures of two months.
func measureRedisFigures(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Figures of attendance of the distributed engine",
		about: fmt.Sprintf("%d days of marks, as under Attendance. All figures are of these days, and of one server that holds nothing of them: what it needs comes from Redis each time. ", figureDays) +
			"Medians of 5, but of a first series, which keeps the figures of days that are over. Beside each time: how much of a processor Redis and the server took, and what Redis sent.",
	}
	t := table{head: []string{"users", "question", "time", "Redis's processor", "the server's", "sent"}}
	for _, n := range sizes {
		if err := redisFigures(ctx, n, &t); err != nil {
			return s, err
		}
	}
	t.note = "Before small sets were counted in words and kept figures were always recognised, the server took at 100k users, of a processor: 265 ms for the first series, 278 ms for each later one, 222 ms for retention of those who recur, 241 ms on or after; Redis took the same as now."
	s.tables = []table{t}
	return s, nil
}

func redisFigures(ctx context.Context, users int, t *table) (err error) {
	s, err := openShared(ctx, 0, rollcall.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	of := population{users, figureDays}
	span := rollcall.DayRange{From: s.Today() - figureDays + 1, To: s.Today()}
	for day := range figureDays {
		if err := s.markDay(ctx, of, day, span.From+rollcall.Day(day)); err != nil {
			return err
		}
		if day%10 == 9 {
			fmt.Fprintf(os.Stderr, "bench: %d of %d days of %s users\n", day+1, figureDays, count(float64(users)))
		}
	}
	for _, q := range s.figureQuestions(ctx, span) {
		cost, err := s.costOf(q.calls, q.ask)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		t.add(count(float64(users)), q.name, took(cost.time), took(cost.redis), took(cost.server), mib(cost.sent))
	}
	return nil
}

// markDay has everyone come who does on a day.
func (s *shared) markDay(ctx context.Context, of population, day int, on rollcall.Day) error {
	var marks []rollcall.Mark
	for user := range of.users {
		if of.active(user, day) {
			marks = append(marks, rollcall.Mark{User: paddedUser(user), Kind: "user", Day: on})
		}
	}
	return together(4, func(i int) error {
		mine := marks[len(marks)*i/4 : len(marks)*(i+1)/4]
		for len(mine) > 0 {
			n := min(len(mine), rollcall.MaxMarks)
			if _, _, err := s.ImportMarks(ctx, mine[:n]...); err != nil {
				return err
			}
			mine = mine[n:]
		}
		return nil
	})
}

// figureQuestion is one of the figures, asked so often.
type figureQuestion struct {
	name  string
	calls int
	ask   func() error
}

func (s *shared) figureQuestions(ctx context.Context, span rollcall.DayRange) []figureQuestion {
	retention := func(cohort rollcall.Cohort, measure rollcall.Measure) func() error {
		return func() error {
			_, err := s.Retention(ctx, rollcall.RetentionQuery{Range: span, Period: rollcall.PeriodDay, Cohort: cohort, Measure: measure})
			return err
		}
	}
	series := func() error {
		_, err := s.Series(ctx, rollcall.SeriesQuery{Range: span})
		return err
	}
	return []figureQuestion{
		{"series, the first time", 1, series},
		{"series, again", 5, series},
		{"retention by day, recurring", 5, retention(rollcall.CohortRecurring, rollcall.MeasureOn)},
		{"retention by day, recurring, on or after", 5, retention(rollcall.CohortRecurring, rollcall.MeasureOnOrAfter)},
		{"retention by day, first", 5, retention(rollcall.CohortFirst, rollcall.MeasureOn)},
		{"life cycle by day", 5, func() error {
			_, err := s.Lifecycle(ctx, rollcall.LifecycleQuery{Range: span, Period: rollcall.PeriodDay})
			return err
		}},
		{"users by count of days", 5, func() error {
			_, err := s.ActiveDays(ctx, "", span)
			return err
		}},
		{"longest 20 streaks", 5, func() error {
			_, err := s.Streaks(ctx, "", span, 20)
			return err
		}},
		{"longest 20 streaks in 10 days", 5, func() error {
			_, err := s.Streaks(ctx, "", rollcall.DayRange{From: span.To - 9, To: span.To}, 20)
			return err
		}},
		{"users of any day, first 20", 5, func() error {
			_, err := s.Active(ctx, rollcall.ActiveQuery{Range: span, Page: rollcall.PageRequest{Limit: 20}})
			return err
		}},
		{"10,000 marks of a day that is over", 5, s.marker(ctx, span.To-5)},
		{"10,000 marks of 30 days", 5, s.marker(ctx, span.To-30, span.To)},
	}
}

// marker marks users that were never there, each time others, on a day or on the days
// of a range in turn.
func (s *shared) marker(ctx context.Context, days ...rollcall.Day) func() error {
	first, width := days[0], int(days[len(days)-1]-days[0])+1
	n := 0
	return func() error {
		marks := make([]rollcall.Mark, rollcall.MaxMarks)
		for i := range marks {
			marks[i] = rollcall.Mark{User: fmt.Sprintf("new-%d-%d", width, n), Kind: "user", Day: first + rollcall.Day(n%width)}
			n++
		}
		_, _, err := s.ImportMarks(ctx, marks...)
		return err
	}
}

// cost is what one call took.
type cost struct {
	time, redis, server time.Duration
	sent                int64
}

// costOf asks so often. The time is the median, the rest a mean.
func (s *shared) costOf(calls int, ask func() error) (c cost, err error) {
	redis, err := s.peer.cpu()
	sent, err2 := s.peer.sent()
	server, err3 := ownCPU()
	if err := errors.Join(err, err2, err3); err != nil {
		return c, err
	}
	var all []time.Duration
	for range calls {
		began := time.Now()
		if err := ask(); err != nil {
			return c, err
		}
		all = append(all, time.Since(began))
	}
	c.time = median(all)
	redisAfter, err := s.peer.cpu()
	sentAfter, err2 := s.peer.sent()
	serverAfter, err3 := ownCPU()
	n := time.Duration(calls)
	c.redis, c.server, c.sent = (redisAfter-redis)/n, (serverAfter-server)/n, (sentAfter-sent)/int64(calls)
	return c, errors.Join(err, err2, err3)
}

// sent is how many bytes Redis has sent.
func (p *peer) sent() (int64, error) {
	info, err := p.call("INFO", "stats")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "total_net_output_bytes:"); ok {
			return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return 0, errors.New("redis: INFO does not tell total_net_output_bytes")
}

// ownCPU is the processor time of this process.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

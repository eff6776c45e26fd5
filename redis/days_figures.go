package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
)

// partitionsPerRound is how many partitions' days are asked for at once. As many again are held
// in memory meanwhile.
const partitionsPerRound = 4

// partDays are the sets of one partition, which days have left it, what it had
// counted of marks and of what happened to those in the archive when they were
// read.
type partDays struct {
	sets        daySets
	left        []offloadedKindDay
	marks, cold int64
}

// rereads bounds how often a partition is read anew because days came back.
const rereads = 10

// eachDays hands the sets of the days in a range to fn, partition by partition:
// what is here, and what the archive has of days that departed. Of many days the
// sets are read one after the other.
func (e *Engine) eachDays(ctx context.Context, kind string, from, to int64, fn func(part int, d partDays) error) error {
	from, to = max(from, math.MinInt32), min(to, math.MaxInt32)
	days := func(p int, from string) call { return in(p, &e.scripts.daysRead, kind, from, fmt.Sprint(to)) }
	ctx, cancel := context.WithCancel(ctx)
	next := e.readAhead(ctx, 0, func(p int) call { return days(p, fmt.Sprint(from)) })
	defer func() {
		cancel()
		<-next
	}()
	for first := 0; first < len(e.keyPrefixes); first += partitionsPerRound {
		got := <-next
		next = e.readAhead(ctx, first+partitionsPerRound, func(p int) call { return days(p, fmt.Sprint(from)) })
		if got.err != nil {
			return got.err
		}
		for i, msg := range got.messages {
			d, err := e.readPartition(ctx, first+i, fmt.Sprint(from), msg, days)
			if err != nil {
				return err
			}
			if err := fn(first+i, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// answers is what some partitions answered.
type answers struct {
	messages []rueidis.RedisMessage
	err      error
}

// readAhead begins to ask the partitions from one on, as many as are held at once,
// while the caller works on those before.
func (e *Engine) readAhead(ctx context.Context, first int, ask func(p int) call) <-chan answers {
	out := make(chan answers, 1)
	var calls []call
	for p := first; p < min(first+partitionsPerRound, len(e.keyPrefixes)); p++ {
		calls = append(calls, ask(p))
	}
	if len(calls) == 0 {
		out <- answers{}
		return out
	}
	go func() {
		messages, err := e.do(ctx, 0, calls...)
		out <- answers{messages, err}
	}()
	return out
}

// readPartition reads what a partition answered, and the days behind it, and adds what is
// in the archive.
func (e *Engine) readPartition(ctx context.Context, part int, from string, msg rueidis.RedisMessage, days func(part int, from string) call) (partDays, error) {
	for try := 0; ; try++ {
		var d partDays
		next, err := d.read(msg)
		for err == nil && next != "" {
			if msg, err = e.one(ctx, 0, days(part, next)); err == nil {
				next, err = d.read(msg)
			}
		}
		if err != nil {
			return d, err
		}
		again, err := e.mergeCold(ctx, part, d)
		if err != nil || !again {
			return d, err
		}
		if try == rereads {
			return d, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "days leave for the archive and come back all the time"}
		}
		if msg, err = e.one(ctx, 0, days(part, from)); err != nil {
			return d, err
		}
	}
}

// read adds what days_read.lua answers, and returns the day to go on at, "" at the end.
func (d *partDays) read(msg rueidis.RedisMessage) (next string, err error) {
	reply, err := msg.ToArray()
	if err != nil || len(reply) < 4 {
		return "", damaged("the days")
	}
	marks, err1 := reply[0].AsInt64()
	recalls, err2 := reply[1].AsInt64()
	if err1 != nil || err2 != nil {
		return "", damaged("the days")
	}
	if d.sets == nil { // figures made of all are right if no mark came in since
		d.sets, d.marks = make(daySets), marks
	}
	d.cold = recalls
	left, err := readOffloaded(reply[2])
	if err != nil {
		return "", err
	}
	d.left = append(d.left, left...)
	if next, err = reply[3].ToString(); err != nil {
		return "", damaged("the days")
	}
	return next, d.sets.read(reply[4:])
}

var periodOf = map[rollcall.Period]dayset.Period{
	rollcall.PeriodDay: dayset.Day, rollcall.PeriodWeek: dayset.Week, rollcall.PeriodMonth: dayset.Month,
}

// longestMAU is how many days the longest month of a figure has.
const longestMAU = 31

// newcomers tells whose first day ever, of a kind or of all, lies in a range:
// by the first days that every partition keeps.
func (e *Engine) newcomers(ctx context.Context, kind string, from, to int64) ([]dayset.Newcomers, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plain(func() rueidis.Completed { return e.client.B().Get().Key(e.of(p, "first:"+kind)).Build() })
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]dayset.Newcomers, len(messages))
	for p, msg := range messages {
		packed, _ := msg.ToString() // nil if there is none
		byDay := make(daySets)
		for n := range uint32(len(packed) / 4) {
			first, ok := firstOf(packed, n)
			day := int32(first)
			if !ok || int64(day) < from || int64(day) > to {
				continue
			}
			if byDay[day] == nil {
				byDay[day] = roaring.New()
			}
			byDay[day].Add(n)
		}
		out[p] = func(from, to int32) *roaring.Bitmap { return dayset.Any(byDay, from, to) }
	}
	return out, nil
}

// Retention implements [rollcall.Attendance].
func (e *Engine) Retention(ctx context.Context, q rollcall.RetentionQuery) ([]rollcall.CohortRow, error) {
	last, ok, err := e.lastDay(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	if !ok { // then there is no day with marks to read
		last = q.Range.From - longestMAU
	}
	dq := dayset.RetentionQuery{
		Period: periodOf[q.Period], From: int32(q.Range.From), To: int32(q.Range.To), Last: int32(last),
	}
	if q.Cohort == rollcall.CohortRecurring {
		dq.Cohort = dayset.Recurring
	}
	if q.Measure == rollcall.MeasureOnOrAfter {
		dq.Measure = dayset.OnOrAfter
	}
	from := int64(dq.Period.Start(dq.From))
	fresh, err := e.newcomers(ctx, q.Kind, from, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	var table dayset.RetentionTable
	err = e.eachDays(ctx, q.Kind, from, math.MaxInt32, func(p int, d partDays) error {
		dq.New = fresh[p]
		table = dayset.Retention(table, d.sets, dq)
		return nil
	})
	rows := make([]rollcall.CohortRow, len(table.Sizes))
	for i, start := range dq.Period.Starts(dq.From, dq.To)[:len(rows)] {
		rows[i] = rollcall.CohortRow{Start: rollcall.Day(start), Size: int(table.Sizes[i]), Retained: make([]int, len(table.Retained[i]))}
		for k, n := range table.Retained[i] {
			rows[i].Retained[k] = int(n)
		}
	}
	return rows, err
}

// lastDay is the last day with marks, here or in the archive. Later ones have
// none.
func (e *Engine) lastDay(ctx context.Context, kind string) (rollcall.Day, bool, error) {
	span, ok, err := e.spanOfFields(ctx, kind, "days", "gone")
	return span.To, ok, err
}

// Lifecycle implements [rollcall.Attendance].
func (e *Engine) Lifecycle(ctx context.Context, q rollcall.LifecycleQuery) ([]rollcall.LifecycleRow, error) {
	period := periodOf[q.Period]
	from := int64(period.Prev(period.Start(int32(q.Range.From))))
	to := int64(period.Next(period.Start(int32(q.Range.To))))
	fresh, err := e.newcomers(ctx, q.Kind, from, to)
	if err != nil {
		return nil, err
	}
	var flows []dayset.Flow
	err = e.eachDays(ctx, q.Kind, from, to, func(p int, d partDays) error {
		flows = dayset.Lifecycle(flows, d.sets, fresh[p], period, int32(q.Range.From), int32(q.Range.To))
		return nil
	})
	rows := make([]rollcall.LifecycleRow, len(flows))
	for i, start := range period.Starts(int32(q.Range.From), int32(q.Range.To))[:len(rows)] {
		f := flows[i]
		rows[i] = rollcall.LifecycleRow{
			Start: rollcall.Day(start),
			New:   int(f.New), Returning: int(f.Returning), Resurrecting: int(f.Resurrecting), Dormant: int(f.Dormant),
		}
	}
	return rows, err
}

// ActiveDays implements [rollcall.Attendance].
func (e *Engine) ActiveDays(ctx context.Context, r rollcall.DayRange, kind string) ([]int, error) {
	var counts []int64
	err := e.eachDays(ctx, kind, int64(r.From), int64(r.To), func(_ int, d partDays) error {
		counts = dayset.ActiveDays(counts, d.sets, int32(r.From), int32(r.To))
		return nil
	})
	out := make([]int, max(1, len(counts)))
	for i, n := range counts {
		out[i] = int(n)
	}
	return out, err
}

// never reports that a day never was in the time zone.
func (e *Engine) never(day int32) bool { return !rollcall.Day(day).ExistsIn(e.zone()) }

// Streaks implements [rollcall.Attendance].
func (e *Engine) Streaks(ctx context.Context, q rollcall.StreakQuery) ([]rollcall.UserStreak, error) {
	var out []rollcall.UserStreak
	read := q.Range.To
	if read < q.Today && read.NextIn(e.zone()) == q.Today {
		read = q.Today // who came today is at no risk
	}
	longest := longestRuns{limit: q.Limit}
	err := e.eachDays(ctx, q.Kind, int64(q.Range.From), int64(read), func(p int, d partDays) error {
		top := longest.add(dayset.Streaks(d.sets, int32(q.Range.From), int32(q.Range.To), int32(q.Today), q.Limit, e.never))
		numbers := make([]uint32, len(top))
		for i, t := range top {
			numbers[i] = t.Number
		}
		users, err := e.usersOf(ctx, p, numbers)
		for i, u := range users {
			if u != "" {
				out = append(out, rollcall.UserStreak{
					User:   u,
					Streak: rollcall.Streak{Current: top[i].Current, AtRisk: top[i].AtRisk, Longest: top[i].Longest},
				})
			}
		}
		return err
	})
	slices.SortFunc(out, func(a, b rollcall.UserStreak) int {
		return cmp.Or(cmp.Compare(b.Longest, a.Longest), strings.Compare(a.User, b.User))
	})
	return out[:min(len(out), q.Limit)], err
}

// longestRuns is how long the longest streaks are of the partitions so far.
type longestRuns struct {
	limit   int
	lengths []int // ascending, of no more than limit streaks
}

// add takes in the longest of a partition, longest first, and returns those of them
// that may be among the longest of all: nobody else's id is asked for.
func (l *longestRuns) add(top []dayset.Streak) []dayset.Streak {
	for _, s := range top[:min(len(top), l.limit)] {
		l.lengths = append(l.lengths, s.Longest)
	}
	slices.Sort(l.lengths)
	l.lengths = l.lengths[max(0, len(l.lengths)-l.limit):]
	if len(l.lengths) < l.limit {
		return top
	}
	return top[:sort.Search(len(top), func(i int) bool { return top[i].Longest < l.lengths[0] })]
}

// activePlace is where a walk of the users active stands: they come by
// partition, then number.
type activePlace struct {
	part   int
	number uint32
}

func (a activePlace) encode() string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, uint16(a.part)), a.number))
}

func decodeActivePlace(s string) activePlace {
	u := unpacker{s: s} // authenticated: its form is ours
	return activePlace{part: int(u.num(2)), number: uint32(u.num(4))}
}

// Active implements [rollcall.Attendance].
func (e *Engine) Active(ctx context.Context, q rollcall.ActiveQuery) (rollcall.Page[string], error) {
	var page rollcall.Page[string]
	skip := max(0, q.Page.Number-1) * q.Page.Limit
	after, resumed := activePlace{}, q.Page.Cursor != ""
	if resumed {
		after, skip = decodeActivePlace(q.Page.Cursor), 0
	}
	more, last := false, activePlace{}
	err := e.eachDays(ctx, q.Kind, int64(q.Range.From), int64(q.Range.To), func(p int, d partDays) error {
		from, to := int32(q.Range.From), int32(q.Range.To)
		var found *roaring.Bitmap
		if q.Match == rollcall.MatchEvery {
			found = dayset.Every(d.sets, from, to, e.never)
		} else {
			found = dayset.Any(d.sets, from, to)
		}
		page.Total += int(found.GetCardinality())
		if resumed && p < after.part {
			return nil
		}
		it := found.Iterator()
		if resumed && p == after.part {
			it.AdvanceIfNeeded(after.number + 1)
		}
		var numbers []uint32
		for it.HasNext() {
			n := it.Next()
			if skip > 0 {
				skip--
				continue
			}
			if len(page.Items)+len(numbers) == q.Page.Limit {
				more = q.Page.Limit > 0
				break
			}
			numbers = append(numbers, n)
			last = activePlace{p, n}
		}
		users, err := e.usersOf(ctx, p, numbers)
		users = slices.DeleteFunc(users, func(u string) bool { return u == "" }) // erased just now
		page.Items = append(page.Items, users...)
		return err
	})
	if more {
		page.Next = last.encode()
	}
	return page, err
}

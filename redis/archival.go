package redis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

var _ rollcall.Locator = (*Engine)(nil)

// changedPlace is where a walk of the changed maps stands: they come by
// partition, kind and month, then number.
type changedPlace struct {
	part   int
	field  string // kind:month
	number uint32 // the last one listed
	inside bool   // some of the field have been listed
}

func (c changedPlace) encode() string {
	var p packer
	p.u16(uint16(c.part))
	p.u32(c.number)
	p.b = append(p.b, c.field...)
	return p.text()
}

func decodeChangedPlace(s string) changedPlace {
	if s == "" {
		return changedPlace{}
	}
	u := unpacker{s: s}
	return changedPlace{part: int(u.num(2)), number: uint32(u.num(4)), field: u.s, inside: true}
}

// monthSnapshot is one month of a kind in one partition, as it was read for the
// step of a walk before, and is used for the next one.
type monthSnapshot struct {
	mu      sync.Mutex
	part    int
	field   string
	changed *roaring.Bitmap
	days    daySets
}

// Changed implements [rollcall.Archival].
func (e *Engine) Changed(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	at := decodeChangedPlace(cursor)
	for ; at.part < len(e.roots); at = (changedPlace{part: at.part + 1}) {
		fields, err := e.changedFields(ctx, at.part)
		if err != nil {
			return nil, "", err
		}
		for _, field := range fields {
			if at.inside && field < at.field {
				continue
			}
			if !at.inside || field > at.field {
				at = changedPlace{part: at.part, field: field}
			}
			maps, next, err := e.changedIn(ctx, at, limit)
			if err != nil || len(maps) > 0 {
				return maps, next, err
			}
			at.inside = false
		}
	}
	return nil, "", nil
}

func (e *Engine) changedFields(ctx context.Context, part int) ([]string, error) {
	msg, err := e.one(ctx, 0, plain(func() rueidis.Completed { return e.client.B().Hkeys().Key(e.of(part, "changed")).Build() }))
	if err != nil {
		return nil, err
	}
	fields, err := msg.AsStrSlice()
	slices.Sort(fields)
	return fields, err
}

// changedIn lists maps of one month of a kind in one partition, and where the
// walk goes on.
func (e *Engine) changedIn(ctx context.Context, at changedPlace, limit int) ([]rollcall.MonthMap, string, error) {
	kind, month, err := splitMonth(at.field)
	if err != nil {
		return nil, "", err
	}
	e.snapshot.mu.Lock()
	defer e.snapshot.mu.Unlock()
	if err := e.snap(ctx, at, kind, month); err != nil {
		return nil, "", err
	}
	it := e.snapshot.changed.Iterator()
	if at.inside {
		it.AdvanceIfNeeded(at.number + 1)
	}
	var numbers []uint32
	for it.HasNext() && len(numbers) < max(1, limit) {
		numbers = append(numbers, it.Next())
	}
	users, err := e.usersOf(ctx, at.part, numbers)
	if err != nil {
		return nil, "", err
	}
	var out []rollcall.MonthMap
	for i, n := range numbers {
		if users[i] == "" { // erased just now
			continue
		}
		m := rollcall.MonthMap{User: users[i], Kind: kind, Month: month}
		for d := range month.Len() {
			if set := e.snapshot.days[int32(month.Day(1))+int32(d)]; set != nil && set.Contains(n) {
				m.Days |= 1 << d
			}
		}
		out = append(out, m)
	}
	if len(numbers) > 0 {
		at.number = numbers[len(numbers)-1]
	}
	if !it.HasNext() {
		e.snapshot.changed = nil
	}
	return out, at.encode(), nil
}

// snap takes a snapshot, unless the one at hand is of the same walk.
func (e *Engine) snap(ctx context.Context, at changedPlace, kind string, month rollcall.Month) error {
	s := &e.snapshot
	if at.inside && s.changed != nil && s.part == at.part && s.field == at.field {
		return nil
	}
	msg, err := e.one(ctx, 0, in(at.part, &e.scripts.maps, at.field, kind, fmt.Sprint(int32(month.Day(1))), strconv.Itoa(month.Len())))
	if err != nil {
		return err
	}
	reply, err := msg.ToArray()
	if err != nil || len(reply) == 0 {
		return damaged("the marks of a month")
	}
	changed, err := reply[0].ToString()
	if err != nil {
		return damaged("the marks of a month")
	}
	days, err := readDays(reply[1:])
	if err != nil {
		return err
	}
	s.part, s.field, s.changed, s.days = at.part, at.field, readSet(changed), days
	return nil
}

func splitMonth(field string) (string, rollcall.Month, error) {
	i := strings.LastIndexByte(field, ':')
	n, err := strconv.Atoi(field[i+1:])
	if i < 0 || err != nil || !rollcall.Month(n).Valid() {
		return "", 0, damaged("the name of a month")
	}
	return field[:i], rollcall.Month(n), nil
}

// settleStep bounds the maps of one script.
const settleStep = 100

// Settle implements [rollcall.Archival].
func (e *Engine) Settle(ctx context.Context, all []rollcall.MonthMap) (int, error) {
	type group struct {
		part  int
		kind  string
		month rollcall.Month
	}
	groups := make(map[group][]string)
	for _, m := range all {
		g := group{e.partOf(m.User), m.Kind, m.Month}
		groups[g] = append(groups[g], m.User, strconv.FormatUint(uint64(m.Days), 10))
	}
	var calls []call
	for g, args := range groups {
		head := []string{g.kind, fmt.Sprint(int32(g.month)), fmt.Sprint(int32(g.month.Day(1))), strconv.Itoa(g.month.Len())}
		for some := range slices.Chunk(args, 2*settleStep) {
			calls = append(calls, in(g.part, &e.scripts.settle, append(slices.Clone(head), some...)...))
		}
	}
	left := 0
	messages, err := e.do(ctx, 0, calls...)
	for _, msg := range messages {
		n, err := msg.AsInt64()
		if err != nil {
			return left, damaged("a count")
		}
		left += int(n)
	}
	return left, err
}

// HotDays implements [rollcall.Archival].
func (e *Engine) HotDays(ctx context.Context) ([]rollcall.Departure, error) {
	calls := make([]call, len(e.roots))
	for p := range calls {
		calls[p] = plain(func() rueidis.Completed { return e.client.B().Hgetall().Key(e.of(p, "days")).Build() })
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	counts := make(map[kindDay]int)
	for _, msg := range messages {
		fields, err := msg.AsIntMap()
		if err != nil {
			return nil, damaged("the days")
		}
		for field, n := range fields {
			of, err := splitDay(field)
			if err != nil {
				return nil, err
			}
			counts[of] += int(n)
		}
	}
	order := slices.SortedFunc(maps.Keys(counts), func(a, b kindDay) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(a.day, b.day))
	})
	out := make([]rollcall.Departure, len(order))
	for i, k := range order {
		out[i] = rollcall.Departure{Kind: k.kind, Day: k.day, Users: counts[k]}
	}
	return out, nil
}

// Depart implements [rollcall.Archival]. The figures that the day is part of are
// made and kept before it goes.
func (e *Engine) Depart(ctx context.Context, kind string, day rollcall.Day) (int, bool, error) {
	if err := e.closeDay(ctx, kind, day); err != nil {
		return 0, false, err
	}
	messages, err := e.everywhere(ctx, 0, &e.scripts.depart, kind, fmt.Sprint(int32(day)), fmt.Sprint(int32(rollcall.MonthOf(day))))
	e.departed.outdated()
	users, left := 0, err == nil
	for _, msg := range messages {
		n, err := msg.AsInt64()
		if err != nil {
			return users, false, damaged("a count")
		}
		left = left && n >= 0
		users += int(max(0, n))
	}
	return users, left, err
}

// Readmit implements [rollcall.Archival].
func (e *Engine) Readmit(ctx context.Context, all []rollcall.MonthMap) error {
	byPart := make(map[int][]string)
	for _, m := range all {
		if err := e.knowKind(ctx, m.Kind); err != nil {
			return err
		}
		p := e.partOf(m.User)
		for _, day := range m.Month.Days(m.Days) {
			byPart[p] = append(byPart[p], m.User, m.Kind, fmt.Sprint(int32(day)))
		}
	}
	var calls []call
	for p, args := range byPart {
		for some := range slices.Chunk(args, 3*markStep) {
			calls = append(calls, in(p, &e.scripts.readmit, some...))
		}
	}
	_, err := e.do(ctx, 0, calls...)
	e.departed.outdated()
	return err
}

// announcer is the partition that has the events about no user.
const announcer = 0

// Announce implements [rollcall.Archival].
func (e *Engine) Announce(ctx context.Context, now time.Time, run rollcall.ArchiveRun) error {
	ev := run.Event(now)
	completed := "0"
	if ev.Type == rollcall.ArchiveCompleted {
		completed = "1"
	}
	_, err := e.confirmed(ctx, now.UnixMilli(), in(announcer, &e.scripts.announce, completed, ev.Reason, ev.Actor))
	e.news.ring()
	return err
}

package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Bounds of the marks that one script adds, or takes back.
const (
	markStep   = 64
	unmarkStep = 20
)

// Mark implements [rollcall.Attendance].
func (e *Engine) Mark(ctx context.Context, at time.Time, marks []rollcall.Mark) (marked, already int, err error) {
	kinds := make([]string, 0, 8)
	for i, m := range marks {
		if i == 0 || m.Kind != marks[i-1].Kind {
			kinds = append(kinds, m.Kind)
		}
	}
	if err := e.knowKinds(ctx, at.UnixMilli(), kinds...); err != nil {
		return 0, 0, err
	}
	err = e.eachMark(ctx, at, partCall(0, &e.scripts.daysMark), marks, func(_ []int, msg rueidis.RedisMessage) error {
		n, err := msg.AsIntSlice()
		if err != nil || len(n) != 2 {
			return damaged("a count")
		}
		marked, already = marked+int(n[0]), already+int(n[1])
		return nil
	})
	return marked, already, err
}

// Unmark implements [rollcall.Attendance]. A user who loses the mark of their first day
// gets another first day. If they have marks in the archive, that is asked for it.
func (e *Engine) Unmark(ctx context.Context, at time.Time, marks []rollcall.Mark) ([]bool, error) {
	taken := make([]bool, len(marks))
	var rest []*unmarkBatch
	err := e.eachMark(ctx, at, partCall(0, &e.scripts.daysUnmark, "", "0"), marks, func(some []int, msg rueidis.RedisMessage) error {
		u := &unmarkBatch{places: some, taken: taken}
		for _, i := range some {
			u.marks = append(u.marks, marks[i])
		}
		if err := u.read(msg); err != nil {
			return err
		}
		if u.done < len(u.marks) {
			rest = append(rest, u)
		}
		return nil
	})
	for _, u := range rest {
		if err != nil {
			break
		}
		err = e.unmarkRest(ctx, at, u)
	}
	return taken, err
}

// unmarkBatch is marks of one partition that are to be removed.
type unmarkBatch struct {
	marks         []rollcall.Mark
	done          int   // that many of them have been
	places        []int // of the marks among all, and whether each was there
	taken         []bool
	archiveChange string
	users         map[string]bool // of whom the archive has to be asked
}

// read reads what days_unmark.lua answers.
func (u *unmarkBatch) read(msg rueidis.RedisMessage) error {
	reply, err := msg.AsStrSlice()
	if err != nil || len(reply) < 2 {
		return damaged("an answer about marks")
	}
	if reply[0] == "0" {
		u.archiveChange = reply[1]
		if u.users == nil {
			u.users = make(map[string]bool)
		}
		for _, user := range reply[2:] {
			u.users[user] = true
		}
		return nil
	}
	if len(reply) != 2 || len(reply[1]) > len(u.marks)-u.done {
		return damaged("an answer about marks")
	}
	for i := range reply[1] {
		u.taken[u.places[u.done+i]] = reply[1][i] == '1'
	}
	u.done += len(reply[1])
	return nil
}

// unmarkRest removes the rest of a batch. It asks the archive for the first days that the
// script has to know.
func (e *Engine) unmarkRest(ctx context.Context, at time.Time, u *unmarkBatch) error {
	for u.done < len(u.marks) {
		var archived []string
		var err error
		for user := range u.users {
			if archived, err = e.archivedFirsts(ctx, archived, user, u.marks); err != nil {
				return err
			}
		}
		args := append([]string{u.archiveChange, strconv.Itoa(len(archived) / 3)}, archived...)
		for _, m := range u.marks[u.done:] {
			args = append(args, m.User, m.Kind, strconv.Itoa(int(m.Day)))
		}
		msg, err := e.one(ctx, at.UnixMilli(), partCall(e.partOf(u.marks[0].User), &e.scripts.daysUnmark, args...))
		if err != nil {
			return err
		}
		if err := u.read(msg); err != nil {
			return err
		}
	}
	return nil
}

// archivedFirsts appends, for days_unmark.lua, the first days that the archive has of a
// user, by kind and of all kinds. The marks that are being removed do not count.
func (e *Engine) archivedFirsts(ctx context.Context, to []string, user string, but []rollcall.Mark) ([]string, error) {
	offloaded, err := e.settings.Archive.OffloadedDays(ctx, true)
	if err != nil {
		return nil, err
	}
	days, err := enginekit.ArchivedDays(ctx, e.settings.Archive, user, "", func(d rollcall.KindDay) bool {
		removed := slices.ContainsFunc(but, func(m rollcall.Mark) bool { return m.User == user && m.Day == d.Day && m.Kind == d.Kind })
		return !removed && offloaded[d]
	})
	if err != nil {
		return nil, err
	}
	firsts := map[string]rollcall.Day{}
	for _, d := range days {
		for _, kind := range []string{d.Kind, ""} {
			if f, ok := firsts[kind]; !ok || d.Day < f {
				firsts[kind] = d.Day
			}
		}
	}
	if len(firsts) == 0 {
		return append(to, user, "", "-1"), nil
	}
	for kind, day := range firsts {
		to = append(to, user, kind, fmt.Sprint(int32(day)))
	}
	return to, nil
}

// eachMark runs a script on marks, in bounded steps, and calls each with what it returns.
func (e *Engine) eachMark(ctx context.Context, at time.Time, c call, marks []rollcall.Mark, each func(some []int, msg rueidis.RedisMessage) error) error {
	parts, places := e.byPart(len(marks), func(i int) int { return e.partOf(marks[i].User) })
	var calls []call
	var which [][]int
	step := markStep
	if c.script == &e.scripts.daysUnmark {
		step = unmarkStep
	}
	for j, p := range parts {
		for some := range slices.Chunk(places[j], step) {
			args := slices.Clone(c.args)
			for _, i := range some {
				m := &marks[i]
				args = append(args, m.User, m.Kind, strconv.Itoa(int(m.Day)))
			}
			calls, which = append(calls, partCall(p, c.script, args...)), append(which, some)
		}
	}
	messages, err := e.do(ctx, at.UnixMilli(), calls...)
	if err != nil {
		return err
	}
	for i, msg := range messages {
		if err := each(which[i], msg); err != nil {
			return err
		}
	}
	return nil
}

// daysOfUserStep is about how many days of a user one script looks at.
const daysOfUserStep = 1000

// Days implements [rollcall.Attendance].
func (e *Engine) Days(ctx context.Context, user, kind string, r rollcall.DayRange) ([]rollcall.Day, error) {
	days, err := e.daysOfUser(ctx, user, kind, r)
	var out []rollcall.Day
	for _, d := range days {
		out = append(out, d.Day)
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// daysOfUser returns the days with a mark of a user that Redis holds, by kind.
func (e *Engine) daysOfUser(ctx context.Context, user, kind string, r rollcall.DayRange) (out []rollcall.KindDay, err error) {
	for from := fmt.Sprint(int32(r.From)); from != ""; {
		msg, err := e.one(ctx, 0, partCall(e.partOf(user), &e.scripts.daysOfUser, user, kind, from, fmt.Sprint(int32(r.To)), strconv.Itoa(daysOfUserStep)))
		if err != nil {
			return nil, err
		}
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply)%2 != 1 {
			return nil, damaged("the days of a user")
		}
		from = reply[0]
		for i := 1; i < len(reply); i += 2 {
			day, err := strconv.Atoi(reply[i+1])
			if err != nil {
				return nil, damaged("the days of a user")
			}
			out = append(out, rollcall.KindDay{Kind: reply[i], Day: rollcall.Day(day)})
		}
	}
	return out, nil
}

// allDays is the range of all days there are.
var allDays = rollcall.DayRange{From: math.MinInt32, To: math.MaxInt32}

// SpanOf implements [rollcall.Attendance].
func (e *Engine) SpanOf(ctx context.Context, user, kind string) (rollcall.DayRange, bool, error) {
	days, err := e.Days(ctx, user, kind, allDays)
	if err != nil || len(days) == 0 {
		return rollcall.DayRange{}, false, err
	}
	return rollcall.DayRange{From: days[0], To: days[len(days)-1]}, true, nil
}

// Span implements [rollcall.Attendance].
func (e *Engine) Span(ctx context.Context, kind string) (rollcall.DayRange, bool, error) {
	return e.spanOfFields(ctx, kind, "days")
}

// spanOfFields returns the first and the last day, of a kind or of all, that the indexes
// of any partition have.
func (e *Engine) spanOfFields(ctx context.Context, kind string, indexes ...string) (r rollcall.DayRange, found bool, err error) {
	messages, err := e.inAllParts(ctx, 0, &e.scripts.daysSpan, append([]string{kind}, indexes...)...)
	if err != nil {
		return r, false, err
	}
	for _, msg := range messages {
		span, err := msg.AsIntSlice()
		if err != nil || (len(span) != 0 && len(span) != 2) {
			return r, false, damaged("the days")
		}
		if len(span) == 0 {
			continue
		}
		first, last := rollcall.Day(span[0]), rollcall.Day(span[1])
		if !found || first < r.From {
			r.From = first
		}
		if !found || last > r.To {
			r.To = last
		}
		found = true
	}
	return r, found, nil
}

// daySets are the sets of users of one partition by day, of a kind or of all:
// bitmaps over the partition's numbers.
type daySets map[int32]*roaring.Bitmap

// Set implements [dayset.Source].
func (s daySets) Set(day int32) *roaring.Bitmap { return s[day] }

// read adds days and their sets.
func (s daySets) read(reply []rueidis.RedisMessage) error {
	if len(reply)%2 != 0 {
		return damaged("the days")
	}
	for i := 0; i < len(reply); i += 2 {
		day, err := reply[i].AsInt64()
		packed, err2 := reply[i+1].ToString()
		if err != nil || err2 != nil {
			return damaged("the days")
		}
		set := readSet(packed)
		if have := s[int32(day)]; have != nil {
			have.Or(set)
		} else {
			s[int32(day)] = set
		}
	}
	return nil
}

// readSet reads a packed set: see days_set.lua.
func readSet(packed string) *roaring.Bitmap {
	switch {
	case len(packed) > 1 && packed[0] == 'B':
		b := []byte(packed[1:])
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
		words := make([]uint64, len(b)/8)
		for i := range words { // whose lowest bit is the highest of the first byte
			words[i] = bits.Reverse64(binary.BigEndian.Uint64(b[8*i:]))
		}
		return roaring.FromDense(words, false)
	case len(packed) > 1 && packed[0] == 'S':
		set := roaring.New()
		for b := []byte(packed[1:]); len(b) >= 4; b = b[4:] {
			set.Add(binary.BigEndian.Uint32(b))
		}
		return set
	default:
		return roaring.New()
	}
}

// idStep is how many numbers share a bucket of ids.
const idStep = 64

// usersOf turns numbers of a partition back into ids; "" for one that is free.
func (e *Engine) usersOf(ctx context.Context, part int, numbers []uint32) ([]string, error) {
	var calls []call
	var asked [][]int // for each call, the places of its numbers
	for _, some := range byBucket(numbers) {
		fields := make([]string, len(some))
		for i, place := range some {
			fields[i] = strconv.FormatUint(uint64(numbers[place]), 10)
		}
		bucket := e.of(part, "ids:"+strconv.FormatUint(uint64(numbers[some[0]]/idStep), 10))
		calls = append(calls, plainCall(func() rueidis.Completed { return e.client.B().Hmget().Key(bucket).Field(fields...).Build() }))
		asked = append(asked, some)
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(numbers))
	for i, msg := range messages {
		users, err := msg.ToArray()
		if err != nil || len(users) != len(asked[i]) {
			return nil, damaged("the ids of users")
		}
		for j, place := range asked[i] {
			out[place], _ = users[j].ToString() // nil if the user was erased just now
		}
	}
	return out, nil
}

// byBucket returns the places of numbers, those of a bucket together.
func byBucket(numbers []uint32) (out [][]int) {
	at := make(map[uint32]int, len(numbers)/8)
	for place, n := range numbers {
		i, ok := at[n/idStep]
		if !ok {
			i = len(out)
			at[n/idStep] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], place)
	}
	return out
}

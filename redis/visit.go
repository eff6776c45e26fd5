package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// The sketches of a name lie in the partition that its hash leads to, so that
// Redis can merge them. The bound on names is kept by a set of all of them; the
// truth is what the partitions have.

// Visit implements [rollcall.Visits].
func (e *Engine) Visit(ctx context.Context, at time.Time, name string, visitors []string) (noted string, err error) {
	if len(visitors) == 0 {
		return name, e.checkOpen()
	}
	if done, err := e.addVisitors(ctx, at, name, visitors, false); done || err != nil {
		return name, err
	}

	// The name is new. If there are too many, its visitors count under another name.
	entered, err := e.addName(ctx, name)
	if err == nil && !entered {
		name = rollcall.VisitsOther
		_, err = e.addName(ctx, name)
	}
	if err == nil {
		_, err = e.addVisitors(ctx, at, name, visitors, true)
	}
	return name, err
}

// visitStep bounds the visitors of one script.
const visitStep = 2000

// addVisitors adds visitors of a name. It returns false if the name is unknown: the caller has
// to enter it first.
func (e *Engine) addVisitors(ctx context.Context, at time.Time, name string, visitors []string, entered bool) (bool, error) {
	hour, end := rollcall.HourOf(at, e.settings.Zone())
	head := []string{name, strconv.FormatInt(hour.Unix(), 10), strconv.FormatInt(end.UnixMilli(), 10), flag(entered)}
	for some := range slices.Chunk(visitors, visitStep) {
		msg, err := e.one(ctx, at.UnixMilli(), partCall(e.partOf(name), &e.scripts.visitAdd, slices.Concat(head, some)...))
		if err != nil {
			return false, err
		}
		if n, err := msg.AsInt64(); n != 1 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// addName enters a name in rc:names; false if there are too many.
func (e *Engine) addName(ctx context.Context, name string) (bool, error) {
	msg, err := e.one(ctx, 0, keyCall(e.key("names"), &e.scripts.visitAddName, name, fmt.Sprint(rollcall.MaxVisitNames), rollcall.VisitsOther))
	if err != nil {
		return false, err
	}
	n, err := msg.AsInt64()
	return n == 1, err
}

// forgetNames removes names from rc:names, which makes room for others.
func (e *Engine) forgetNames(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Srem().Key(e.key("names")).Member(names...).Build()
	}))
	return err
}

// Visitors implements [rollcall.Visits].
func (e *Engine) Visitors(ctx context.Context, q rollcall.VisitQuery) (rollcall.VisitFigures, error) {
	out := rollcall.VisitFigures{StandardError: rollcall.VisitStandardError}
	parts := q.Parts(e.settings.Zone())
	groups := make([][]string, len(parts))
	i := 0
	for _, hour := range q.Hours(e.settings.Zone()) {
		for i+1 < len(parts) && !hour.Before(parts[i+1]) {
			i++
		}
		groups[i] = append(groups[i], strconv.FormatInt(hour.Unix(), 10))
	}
	counts, err := e.countVisitors(ctx, q.Name, groups)
	if err != nil {
		return out, err
	}
	out.Total = counts[0]
	for i, start := range parts {
		out.Items = append(out.Items, rollcall.VisitCount{Start: start, Visitors: counts[i+1]})
	}
	return out, nil
}

// hourStep is how many sketches one script merges. A day is merged as a whole.
const hourStep = 16

// countVisitors estimates the visitors of each group of hours, and (first) of all of them.
func (e *Engine) countVisitors(ctx context.Context, name string, groups [][]string) ([]int, error) {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	head := []string{name, hex.EncodeToString(nonce[:])}
	p := e.partOf(name)
	var calls []call
	for from := 0; from < len(groups); {
		args, hours, to := slices.Clone(head), 0, from
		for to < len(groups) && (to == from || hours+len(groups[to]) <= hourStep) {
			args = append(append(args, strconv.Itoa(len(groups[to]))), groups[to]...)
			hours += len(groups[to])
			to++
		}
		calls = append(calls, partCall(p, &e.scripts.visitCount, args...))
		from = to
	}

	// Each call merges its hours into one sketch. The last one, without hours, counts that.
	out := []int{0}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	last, err := e.one(ctx, 0, partCall(p, &e.scripts.visitCount, head...))
	if err != nil {
		return nil, err
	}
	for _, msg := range append(messages, last) {
		counts, err := msg.AsIntSlice()
		if err != nil || len(counts) == 0 {
			return nil, damaged("an answer about visitors")
		}
		out[0] = int(counts[0])
		for _, n := range counts[1:] {
			out = append(out, int(n))
		}
	}
	if len(out) != len(groups)+1 {
		return nil, damaged("an answer about visitors")
	}
	return out, nil
}

// VisitNames implements [rollcall.Visits].
func (e *Engine) VisitNames(ctx context.Context) ([]rollcall.VisitName, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed { return e.client.B().Hgetall().Key(e.of(p, "newesthours")).Build() })
	}
	out, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	var names []rollcall.VisitName
	for _, msg := range out {
		lasts, err := msg.AsIntMap()
		if err != nil {
			return nil, damaged("the names of visits")
		}
		for name, last := range lasts {
			names = append(names, rollcall.VisitName{Name: name, Last: time.Unix(last, 0).UTC()})
		}
	}
	slices.SortFunc(names, func(a, b rollcall.VisitName) int { return strings.Compare(a.Name, b.Name) })
	return names, nil
}

// forgetVisitStep bounds the hours one script looks at.
const forgetVisitStep = 500

// DeleteVisitName implements [rollcall.Visits].
func (e *Engine) DeleteVisitName(ctx context.Context, name string) error {
	p := e.partOf(name)
	msg, err := e.one(ctx, 0, plainCall(func() rueidis.Completed {
		return e.client.B().Hexists().Key(e.of(p, "names")).Field(name).Build()
	}))
	if err != nil {
		return err
	}
	if n, err := msg.AsInt64(); err != nil || n == 0 {
		return errors.Join(err, rollcall.NotFound("name"))
	}
	for from := int64(0); from >= 0; {
		msg, err := e.one(ctx, 0, partCall(p, &e.scripts.visitForget, name, fmt.Sprint(from), fmt.Sprint(forgetVisitStep)))
		if err == nil {
			from, err = msg.AsInt64()
		}
		if err != nil {
			return err
		}
	}
	return e.forgetNames(ctx, []string{name})
}

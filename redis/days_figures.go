package redis

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/dayset"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// partitionsPerRound is how many partitions' days are read at once. As many again are held
// in memory meanwhile.
const partitionsPerRound = 4

// partDays are the sets of one partition, the days that were offloaded from it, and its
// fields markchange and archivechange when they were read.
type partDays struct {
	sets                      daySets
	offloaded                 []offloadNote
	markChange, archiveChange int64
}

// maxRereads bounds how often a partition is read again because days were restored.
const maxRereads = 10

// eachDays calls fn with the sets of the days in a range, partition by partition: those of
// Redis, united with those that the archive has of offloaded days.
func (e *Engine) eachDays(ctx context.Context, kind string, from, to int64, fn func(part int, d partDays) error) error {
	from, to = max(from, math.MinInt32), min(to, math.MaxInt32)
	days := func(p int, from string) call { return partCall(p, &e.scripts.daysRead, kind, from, fmt.Sprint(to)) }
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

// readAheadResult is what these partitions answered.
type readAheadResult struct {
	messages []rueidis.RedisMessage
	err      error
}

// readAhead starts to read the next partitions, from one on, while the caller works on
// those before.
func (e *Engine) readAhead(ctx context.Context, first int, ask func(p int) call) <-chan readAheadResult {
	out := make(chan readAheadResult, 1)
	var calls []call
	for p := first; p < min(first+partitionsPerRound, len(e.keyPrefixes)); p++ {
		calls = append(calls, ask(p))
	}
	if len(calls) == 0 {
		out <- readAheadResult{}
		return out
	}
	go func() {
		messages, err := e.do(ctx, 0, calls...)
		out <- readAheadResult{messages, err}
	}()
	return out
}

// readPartition reads what a partition answered, asks for the days behind that, and adds
// what the archive has.
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
		if try == maxRereads {
			return d, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "days are offloaded to the archive and restored all the time"}
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
	archiveChange, err2 := reply[1].AsInt64()
	if err1 != nil || err2 != nil {
		return "", damaged("the days")
	}
	if d.sets == nil { // of the first answer: figures made of all are right if no mark has changed since
		d.sets, d.markChange = make(daySets), marks
	}
	d.archiveChange = archiveChange
	left, err := readOffloadNotes(reply[2])
	if err != nil {
		return "", err
	}
	d.offloaded = append(d.offloaded, left...)
	if next, err = reply[3].ToString(); err != nil {
		return "", damaged("the days")
	}
	return next, d.sets.read(reply[4:])
}

// newcomers tells which users have their first day, of a kind or of all, in a
// range: by the first days that every partition keeps.
func (e *Engine) newcomers(ctx context.Context, kind string, from, to int64) ([]dayset.Newcomers, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed { return e.client.B().Get().Key(e.of(p, "first:"+kind)).Build() })
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

// attendanceFigures are the methods of the engine that answer questions over days.
type attendanceFigures = enginekit.Figures

// engineDays are the engine's days as figures need them.
type engineDays struct{ e *Engine }

var _ enginekit.Days = engineDays{}

// Zone implements [enginekit.Days].
func (d engineDays) Zone() *time.Location { return d.e.settings.Zone() }

// LastDay implements [enginekit.Days].
func (d engineDays) LastDay(ctx context.Context, kind string) (rollcall.Day, bool, error) {
	span, ok, err := d.e.spanOfFields(ctx, kind, "days", "offloaded")
	return span.To, ok, err
}

// EachPartition implements [enginekit.Days]. Who was new is read first: a user whose
// first day comes between the two reads is not among the new.
func (d engineDays) EachPartition(ctx context.Context, q enginekit.DaysQuery, reset func(), fn func(enginekit.PartitionDays) error) error {
	e := d.e
	fresh := make([]dayset.Newcomers, len(e.keyPrefixes))
	if q.NewFrom <= q.NewTo {
		var err error
		if fresh, err = e.newcomers(ctx, q.Kind, int64(q.NewFrom), int64(q.NewTo)); err != nil {
			return err
		}
	}
	reset()
	return e.eachDays(ctx, q.Kind, int64(q.From), int64(q.To), func(p int, days partDays) error {
		users := func(numbers []uint32) ([]string, error) { return e.usersOf(ctx, p, numbers) }
		return fn(enginekit.PartitionDays{Index: p, Source: days.sets, New: fresh[p], Users: users})
	})
}

package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/coldcache"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Days read back from the archive. Each partition notes which days were offloaded from it
// (days_offload.go). A question that meets no such day needs no archive. The archive's list
// decides: a day that it does not list has been restored, and the note is forgotten.
//
// What was read back is kept in memory, month by month, with the field archiveChange that
// each partition had before the read. A partition whose field is later has changed marks
// that may be in the archive: the month is read again.

// coldCacheBytes is the memory that marks read back from the archive may take.
const coldCacheBytes = 256 << 20

// offloadNote is a partition's note that a day was offloaded from it.
type offloadNote struct {
	rollcall.KindDay
	field, stamp string
}

func readOffloadNotes(msg rueidis.RedisMessage) ([]offloadNote, error) {
	notes, err := msg.AsStrSlice()
	if err != nil || len(notes)%2 != 0 {
		return nil, damaged("which days were offloaded")
	}
	var out []offloadNote
	for i := 0; i < len(notes); i += 2 {
		of, err := splitDay(notes[i])
		if err != nil {
			return nil, err
		}
		out = append(out, offloadNote{of, notes[i], notes[i+1]})
	}
	slices.SortFunc(out, func(a, b offloadNote) int { return a.Compare(b.KindDay) })
	return out, nil
}

// splitDay reads the name of a day's set.
func splitDay(field string) (rollcall.KindDay, error) {
	i := strings.LastIndexByte(field, ':')
	day, err := strconv.Atoi(field[i+1:])
	if i < 0 || err != nil {
		return rollcall.KindDay{}, damaged("the name of a day")
	}
	return rollcall.KindDay{Kind: field[:i], Day: rollcall.Day(day)}, nil
}

// mergeCold adds to the sets of a partition what the archive has of its offloaded days.
// again says that days have been restored meanwhile: the partition has to be read again.
func (e *Engine) mergeCold(ctx context.Context, part int, d partDays) (again bool, err error) {
	if len(d.offloaded) == 0 {
		return false, nil
	}
	offloaded, back, err := e.splitOffloaded(ctx, d.offloaded)
	if err != nil {
		return false, err
	}
	if len(back) > 0 {
		return true, e.clearOffloaded(ctx, part, back)
	}
	for _, l := range offloaded {
		month, err := e.readColdSets(ctx, l.KindDay, part, d.archiveChange)
		if err != nil {
			return false, err
		}
		set := month.Set(part, int32(l.Day))
		if set == nil {
			continue
		}
		if have := d.sets[int32(l.Day)]; have != nil {
			d.sets[int32(l.Day)] = roaring.Or(have, set)
		} else {
			d.sets[int32(l.Day)] = set.Clone()
		}
	}
	return false, nil
}

// splitOffloaded separates the days that the archive lists from those that were restored.
func (e *Engine) splitOffloaded(ctx context.Context, all []offloadNote) (offloaded, back []offloadNote, err error) {
	for _, anew := range []bool{false, true} {
		listed, err := e.settings.Archive.OffloadedDays(ctx, anew)
		if err != nil {
			return nil, nil, err
		}
		offloaded, back = nil, nil
		for _, l := range all {
			if listed[l.KindDay] {
				offloaded = append(offloaded, l)
			} else {
				back = append(back, l)
			}
		}
		if len(back) == 0 {
			break // else they may have been offloaded since the list was read
		}
	}
	return offloaded, back, nil
}

// anyRestored reports whether any of some offloaded days has been restored.
func (e *Engine) anyRestored(ctx context.Context, left []offloadNote) (bool, error) {
	if len(left) == 0 {
		return false, nil
	}
	listed, err := e.settings.Archive.OffloadedDays(ctx, true)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(left, func(l offloadNote) bool { return !listed[l.KindDay] }), nil
}

// clearOffloaded forgets that days were offloaded, as the archive does not list them any
// more. If their marks are not in Redis either, it is the wrong archive.
func (e *Engine) clearOffloaded(ctx context.Context, part int, back []offloadNote) error {
	var args []string
	for _, l := range back {
		wrong, err := e.wrongArchive(ctx, part, l.KindDay)
		if err != nil {
			return err
		}
		if wrong {
			return enginekit.WrongArchive()
		}
		args = append(args, l.field, l.stamp)
	}
	_, err := e.one(ctx, 0, partCall(part, &e.scripts.archiveClearOffloaded, args...))
	return err
}

// wrongArchive reports whether an offloaded day is the first day of some users, and Redis
// has the mark of none of them.
func (e *Engine) wrongArchive(ctx context.Context, part int, of rollcall.KindDay) (bool, error) {
	messages, err := e.do(ctx, 0,
		partCall(part, &e.scripts.daysRead, of.Kind, fmt.Sprint(int32(of.Day)), fmt.Sprint(int32(of.Day))),
		plainCall(func() rueidis.Completed { return e.client.B().Get().Key(e.of(part, "first:"+of.Kind)).Build() }),
		plainCall(func() rueidis.Completed { return e.client.B().Get().Key(e.of(part, "hasarchived")).Build() }))
	if err != nil {
		return false, err
	}
	var here partDays
	if _, err := here.read(messages[0]); err != nil {
		return false, err
	}
	firsts, _ := messages[1].ToString() // nil if there is none
	away, _ := messages[2].ToString()
	set, missing := here.sets[int32(of.Day)], false
	for it := readSet("B" + away).Iterator(); it.HasNext(); {
		n := it.Next()
		if day, ok := firstOf(firsts, n); !ok || day != of.Day {
			continue
		}
		if set != nil && set.Contains(n) {
			return false, nil
		}
		missing = true
	}
	return missing, nil
}

// firstOf reads a number's first day from the string of all.
func firstOf(packed string, n uint32) (rollcall.Day, bool) {
	if uint64(len(packed)) < 4*uint64(n)+4 {
		return 0, false
	}
	day := binary.BigEndian.Uint32([]byte(packed[4*n : 4*n+4]))
	return rollcall.Day(day) - 1, day != 0
}

// readColdSets returns the month of a day as the archive has it, read after the partition's
// last change of marks that may be there.
func (e *Engine) readColdSets(ctx context.Context, of rollcall.KindDay, part int, archiveChange int64) (*coldcache.Month, error) {
	month := rollcall.MonthOf(of.Day)
	for {
		m, mine, err := enginekit.LoadMonth(ctx, e.coldMonths, of.Kind, month, func(m *coldcache.Month) error {
			return e.fillColdMonth(ctx, of.Kind, month, m)
		})
		switch {
		case err != nil:
			return nil, err
		case m.AsOf[part] >= archiveChange:
			return m, nil
		case mine: // a failover took back what the question had seen
			return nil, unavailable(errors.New("the partition is younger than it was"))
		}
		stale := enginekit.MonthKey(of.Kind, month)
		e.coldMonths.Forget(func(held coldcache.Key) bool { return held != stale })
	}
}

// fillColdMonth reads a month from the archive and turns its users into numbers.
func (e *Engine) fillColdMonth(ctx context.Context, kind string, month rollcall.Month, into *coldcache.Month) (err error) {
	if into.AsOf, err = e.archiveChanges(ctx); err != nil {
		return err
	}
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
	err = e.settings.Archive.Each(ctx, kind, month, func(m rollcall.MonthMap) error {
		if some = append(some, m); len(some) < 5000 {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// archiveChanges returns the field archivechange of each partition.
func (e *Engine) archiveChanges(ctx context.Context) ([]int64, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plainCall(func() rueidis.Completed {
			return e.client.B().Hget().Key(e.of(p, "part")).Field("archivechange").Build()
		})
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]int64, len(messages))
	for p, msg := range messages {
		if msg.IsNil() {
			continue
		}
		if out[p], err = msg.AsInt64(); err != nil {
			return nil, damaged("a count")
		}
	}
	return out, nil
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
		calls[j] = plainCall(func() rueidis.Completed { return e.client.B().Hmget().Key(e.of(p, "num")).Field(users...).Build() })
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

// HasArchivedDays implements [rollcall.Archival].
func (e *Engine) HasArchivedDays(ctx context.Context, user, kind string, d rollcall.DayRange) (bool, error) {
	msg, err := e.one(ctx, 0, partCall(e.partOf(user), &e.scripts.archiveHasDays, user, kind, fmt.Sprint(int32(d.From)), fmt.Sprint(int32(d.To))))
	if err != nil {
		return false, err
	}
	n, err := msg.AsInt64()
	if err != nil {
		return false, damaged("where a user's marks are")
	}
	return n == 1, nil
}

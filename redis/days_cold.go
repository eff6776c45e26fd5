package redis

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/coldcache"
)

// Each partition notes which days left it, in the step in which they leave. So a
// question that meets none of them needs no archive, on whatever server they
// left. What the archive says of them decides: a day that it does not list has
// come back, and the note is forgotten.

const (
	// offloadedListTTL is how long the archive's list of departed days is taken to
	// hold.
	offloadedListTTL = 10 * time.Second
	// coldCacheBytes is the memory that marks read back from the archive may take.
	coldCacheBytes = 256 << 20
)

// offloadedDays is what is known of what the archive holds.
type offloadedDays struct {
	mu     sync.Mutex // held while the archive is asked for its list
	days   map[kindDay]bool
	read   time.Time // zero for never, or for no longer
	months *coldcache.Months
}

type kindDay struct {
	kind string
	day  rollcall.Day
}

// outdated has the list read anew when it is needed next.
func (d *offloadedDays) outdated() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read = time.Time{}
}

// offloadedDays returns the days that have left by the archive, read anew if
// asked.
func (e *Engine) offloadedDays(ctx context.Context, anew bool) (map[kindDay]bool, error) {
	if e.settings.Archive == nil {
		return nil, &rollcall.Error{
			Code:   rollcall.CodeUnavailable,
			Detail: "the question is about days that have left for an archive, and none is configured",
		}
	}
	d := &e.offloaded
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if !anew && now.Sub(d.read) <= offloadedListTTL {
		return d.days, nil
	}
	list, err := e.settings.Archive.OffloadedDays(ctx)
	if err != nil {
		return nil, archiveUnavailable(err)
	}
	d.days = make(map[kindDay]bool, len(list))
	for _, x := range list {
		d.days[kindDay{x.Kind, x.Day}] = true
	}
	d.read = now
	return d.days, nil
}

func isCutShort(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func archiveUnavailable(err error) error {
	return rollcall.ArchiveAway("the archive does not answer, and the question is about days that are there", err)
}

// offloadedKindDay is a partition's note of a day that left it.
type offloadedKindDay struct {
	kindDay
	field, stamp string
}

func readOffloaded(msg rueidis.RedisMessage) ([]offloadedKindDay, error) {
	notes, err := msg.AsStrSlice()
	if err != nil || len(notes)%2 != 0 {
		return nil, damaged("which days left")
	}
	var out []offloadedKindDay
	for i := 0; i < len(notes); i += 2 {
		of, err := splitDay(notes[i])
		if err != nil {
			return nil, err
		}
		out = append(out, offloadedKindDay{of, notes[i], notes[i+1]})
	}
	slices.SortFunc(out, func(a, b offloadedKindDay) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(a.day, b.day))
	})
	return out, nil
}

// splitDay reads the name of a day's set.
func splitDay(field string) (kindDay, error) {
	i := strings.LastIndexByte(field, ':')
	day, err := strconv.Atoi(field[i+1:])
	if i < 0 || err != nil {
		return kindDay{}, damaged("the name of a day")
	}
	return kindDay{field[:i], rollcall.Day(day)}, nil
}

// mergeCold adds to what a partition has of some days what the archive has of them.
// again says that days have come back meanwhile and the partition has to be read
// anew.
func (e *Engine) mergeCold(ctx context.Context, part int, d partDays) (again bool, err error) {
	if len(d.left) == 0 {
		return false, nil
	}
	departed, back, err := e.sortOffloaded(ctx, d.left)
	if err != nil {
		return false, err
	}
	if len(back) > 0 {
		return true, e.clearOffloaded(ctx, part, back)
	}
	for _, l := range departed {
		month, err := e.readColdSets(ctx, l.kindDay, part, d.cold)
		if err != nil {
			return false, err
		}
		set := month.Set(part, int32(l.day))
		if set == nil {
			continue
		}
		if have := d.sets[int32(l.day)]; have != nil {
			d.sets[int32(l.day)] = roaring.Or(have, set)
		} else {
			d.sets[int32(l.day)] = set.Clone()
		}
	}
	return false, nil
}

// sortOffloaded tells the days that the archive lists from those that have come
// back.
func (e *Engine) sortOffloaded(ctx context.Context, all []offloadedKindDay) (departed, back []offloadedKindDay, err error) {
	for _, anew := range []bool{false, true} {
		listed, err := e.offloadedDays(ctx, anew)
		if err != nil {
			return nil, nil, err
		}
		departed, back = nil, nil
		for _, l := range all {
			if listed[l.kindDay] {
				departed = append(departed, l)
			} else {
				back = append(back, l)
			}
		}
		if len(back) == 0 {
			break // else they may have left since the list was read
		}
	}
	return departed, back, nil
}

// anyRestored reports whether any of some days that left has come back.
func (e *Engine) anyRestored(ctx context.Context, left []offloadedKindDay) (bool, error) {
	if len(left) == 0 {
		return false, nil
	}
	listed, err := e.offloadedDays(ctx, true)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(left, func(l offloadedKindDay) bool { return !listed[l.kindDay] }), nil
}

// clearOffloaded forgets that days left, which the archive does not list any more.
// If marks of them are not here, it is the wrong archive.
func (e *Engine) clearOffloaded(ctx context.Context, part int, back []offloadedKindDay) error {
	var args []string
	for _, l := range back {
		wrong, err := e.wrongArchive(ctx, part, l.kindDay)
		if err != nil {
			return err
		}
		if wrong {
			return &rollcall.Error{
				Code:   rollcall.CodeUnavailable,
				Detail: "the archive does not know of a day that left for it: is it another archive?",
			}
		}
		args = append(args, l.field, l.stamp)
	}
	_, err := e.one(ctx, 0, in(part, &e.scripts.archiveClearOffloaded, args...))
	return err
}

// wrongArchive reports whether a day was the first of some with marks that left, and
// the mark of none of them is here.
func (e *Engine) wrongArchive(ctx context.Context, part int, of kindDay) (bool, error) {
	messages, err := e.do(ctx, 0,
		in(part, &e.scripts.daysRead, of.kind, fmt.Sprint(int32(of.day)), fmt.Sprint(int32(of.day))),
		plain(func() rueidis.Completed { return e.client.B().Get().Key(e.of(part, "first:"+of.kind)).Build() }),
		plain(func() rueidis.Completed { return e.client.B().Get().Key(e.of(part, "away")).Build() }))
	if err != nil {
		return false, err
	}
	var here partDays
	if _, err := here.read(messages[0]); err != nil {
		return false, err
	}
	firsts, _ := messages[1].ToString() // nil if there is none
	away, _ := messages[2].ToString()
	set, missing := here.sets[int32(of.day)], false
	for it := readSet("B" + away).Iterator(); it.HasNext(); {
		n := it.Next()
		if day, ok := firstOf(firsts, n); !ok || day != of.day {
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

// readColdSets returns the month of a day as the archive has it, read not before what
// happened last in a partition to marks that may be there.
func (e *Engine) readColdSets(ctx context.Context, of kindDay, part int, recalls int64) (*coldcache.Month, error) {
	month := rollcall.MonthOf(of.day)
	k := coldcache.Key{Kind: of.kind, Month: int32(month)}
	for {
		mine := false
		m, err := e.offloaded.months.Load(k, func(m *coldcache.Month) error {
			mine = true
			return e.fill(ctx, of.kind, month, m)
		})
		switch {
		case err != nil && (mine || ctx.Err() != nil || !isCutShort(err)): // else another question's time was up
			return nil, err
		case err != nil:
		case m.AsOf[part] >= recalls:
			return m, nil
		case mine: // a failover took back what the question had seen
			return nil, unavailable(errors.New("the partition is younger than it was"))
		default:
			e.offloaded.months.Forget(func(held coldcache.Key) bool { return held != k })
		}
	}
}

// fill reads a month from the archive and turns its users into numbers.
func (e *Engine) fill(ctx context.Context, kind string, month rollcall.Month, into *coldcache.Month) (err error) {
	if into.AsOf, err = e.coldMonths(ctx); err != nil {
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
		return archiveUnavailable(err)
	}
	return flush()
}

// coldMonths returns how often, in each partition, something happened to marks that
// may be in the archive.
func (e *Engine) coldMonths(ctx context.Context) ([]int64, error) {
	calls := make([]call, len(e.keyPrefixes))
	for p := range calls {
		calls[p] = plain(func() rueidis.Completed { return e.client.B().Hget().Key(e.of(p, "part")).Field("recalls").Build() })
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
		calls[j] = plain(func() rueidis.Completed { return e.client.B().Hmget().Key(e.of(p, "num")).Field(users...).Build() })
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

// AllHot implements [rollcall.Locator].
func (e *Engine) AllHot(ctx context.Context, user, kind string, d rollcall.DayRange) (bool, error) {
	msg, err := e.one(ctx, 0, in(e.partOf(user), &e.scripts.archiveHasDays, user, kind, fmt.Sprint(int32(d.From)), fmt.Sprint(int32(d.To))))
	if err != nil {
		return false, err
	}
	n, err := msg.AsInt64()
	if err != nil {
		return false, damaged("where a user's marks are")
	}
	return n == 1, nil
}

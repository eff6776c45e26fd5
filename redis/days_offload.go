package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Offloading a day.
//
// The problem: old days move to the archive, a database that shares no transaction with
// Redis. Marks may change meanwhile, and any server may be asked about any day.
//
// The invariant: each mark is in Redis or in the archive, at every instant. If it may be in
// the archive, the archive lists its day. Where both have a mark it counts once, as sets
// are united.
//
//	1 the archive's runner copies the dirty maps: ListDirty lists them, ClearDirty takes
//	  those as archived that are still as they were copied
//	2 FinalizeFigures caches the figures that count the days
//	3 the archive copies what is dirty once more, and lists the days as offloaded. From
//	  here on every question about them asks the archive too, if a partition says so
//	4 Offload removes the day from each partition, in one step for each: unless one of its
//	  users is dirty, archive_offload.lua notes who has marks in the archive, removes the
//	  set, and notes the day in the hash offloaded with a stamp
//
// Restoring goes the other way: Restore adds the marks, the archive counts and stops to
// list the days, and the next question forgets the partitions' notes (days_cold.go).
//
// | the runner dies after | what the next one finds |
// | --- | --- |
// | a part of 1 | fewer dirty maps. It copies the others |
// | 2 | cached figures, which a change of a mark makes stale as always |
// | 3 | days that are listed and still here. Questions unite both; the next run offloads them |
// | a part of 4 | the day in some partitions, a note in the others. The next run offloads the rest |

// dirtyPlace is where a walk over the dirty maps stands: they come by partition, kind and
// month, then number.
type dirtyPlace struct {
	part   int
	field  string // kind:month
	number uint32 // the last one listed
	inside bool   // some of the field have been listed
}

func (c dirtyPlace) encode() string {
	var p packer
	p.u16(uint16(c.part))
	p.u32(c.number)
	p.b = append(p.b, c.field...)
	return p.text()
}

func decodeDirtyPlace(s string) dirtyPlace {
	if s == "" {
		return dirtyPlace{}
	}
	u := unpacker{s: s}
	return dirtyPlace{part: int(u.num(2)), number: uint32(u.num(4)), field: u.s, inside: true}
}

// monthSnapshot is the numbers that were dirty in one month of a kind in one partition when
// a walk came to it. The walk follows their order; each step asks for the maps as they are
// then.
type monthSnapshot struct {
	mu    sync.Mutex
	part  int
	field string
	dirty *roaring.Bitmap
}

// mapStep bounds the maps that one script reads.
const mapStep = 50

// ListDirty implements [rollcall.Archival].
func (e *Engine) ListDirty(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	at := decodeDirtyPlace(cursor)
	for ; at.part < len(e.keyPrefixes); at = (dirtyPlace{part: at.part + 1}) {
		fields, err := e.dirtyFields(ctx, at.part)
		if err != nil {
			return nil, "", err
		}
		for _, field := range fields {
			if at.inside && field < at.field {
				continue
			}
			if !at.inside || field > at.field {
				at = dirtyPlace{part: at.part, field: field}
			}
			maps, next, err := e.dirtyIn(ctx, at, limit)
			if err != nil || len(maps) > 0 {
				return maps, next, err
			}
			at.inside = false
		}
	}
	return nil, "", nil
}

func (e *Engine) dirtyFields(ctx context.Context, part int) ([]string, error) {
	var fields []string
	err := e.eachField(ctx, "dirtymonths", []int{part}, func(_ int, field, _ string) error {
		fields = append(fields, field)
		return nil
	})
	slices.Sort(fields)
	return slices.Compact(fields), err
}

// dirtyIn lists dirty maps of one month of a kind in one partition, and where the walk goes
// on.
func (e *Engine) dirtyIn(ctx context.Context, at dirtyPlace, limit int) ([]rollcall.MonthMap, string, error) {
	kind, month, err := splitMonth(at.field)
	if err != nil {
		return nil, "", err
	}
	for {
		numbers, err := e.dirtyNumbers(ctx, at, max(1, limit))
		if err != nil || len(numbers) == 0 {
			return nil, "", err
		}
		at.number, at.inside = numbers[len(numbers)-1], true
		maps, err := e.mapsOf(ctx, at.part, kind, month, numbers)
		if err != nil || len(maps) > 0 { // else all were erased or archived meanwhile
			return maps, at.encode(), err
		}
	}
}

// dirtyNumbers returns the next numbers of a walk.
func (e *Engine) dirtyNumbers(ctx context.Context, at dirtyPlace, limit int) ([]uint32, error) {
	s := &e.snapshot
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.inside || s.dirty == nil || s.part != at.part || s.field != at.field {
		msg, err := e.one(ctx, 0, partCall(at.part, &e.scripts.archiveListDirty, at.field))
		if err != nil {
			return nil, err
		}
		packed, err := msg.ToString()
		if err != nil {
			return nil, damaged("the maps of a month")
		}
		s.part, s.field, s.dirty = at.part, at.field, readSet(packed)
	}
	it := s.dirty.Iterator()
	if at.inside {
		it.AdvanceIfNeeded(at.number + 1)
	}
	var numbers []uint32
	for it.HasNext() && len(numbers) < limit {
		numbers = append(numbers, it.Next())
	}
	if !it.HasNext() {
		s.dirty = nil
	}
	return numbers, nil
}

// mapsOf returns the maps of numbers as they are now.
func (e *Engine) mapsOf(ctx context.Context, part int, kind string, month rollcall.Month, numbers []uint32) ([]rollcall.MonthMap, error) {
	var calls []call
	for some := range slices.Chunk(numbers, mapStep) {
		args := []string{kind, fmt.Sprint(int32(month)), fmt.Sprint(int32(month.Day(1))), strconv.Itoa(month.Len())}
		for _, n := range some {
			args = append(args, strconv.FormatUint(uint64(n), 10))
		}
		calls = append(calls, partCall(part, &e.scripts.archiveReadMaps, args...))
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	var out []rollcall.MonthMap
	for _, msg := range messages {
		reply, err := msg.AsStrSlice()
		if err != nil || len(reply)%2 != 0 {
			return nil, damaged("the maps of a month")
		}
		for i := 0; i < len(reply); i += 2 {
			days, err := strconv.ParseUint(reply[i+1], 10, 32)
			if err != nil {
				return nil, damaged("the maps of a month")
			}
			out = append(out, rollcall.MonthMap{User: reply[i], Kind: kind, Month: month, Days: uint32(days)})
		}
	}
	return out, nil
}

func splitMonth(field string) (string, rollcall.Month, error) {
	i := strings.LastIndexByte(field, ':')
	n, err := strconv.Atoi(field[i+1:])
	if i < 0 || err != nil || !rollcall.Month(n).Valid() {
		return "", 0, damaged("the name of a month")
	}
	return field[:i], rollcall.Month(n), nil
}

// clearDirtyStep bounds the maps that one script clears.
const clearDirtyStep = 25

// ClearDirty implements [rollcall.Archival].
func (e *Engine) ClearDirty(ctx context.Context, all []rollcall.MonthMap) (int, error) {
	type group struct {
		part  int
		kind  string
		month rollcall.Month
	}

	// Maps of one partition, kind and month go in one script, a few at a time.
	groups := make(map[group][]string)
	for _, m := range all {
		g := group{e.partOf(m.User), m.Kind, m.Month}
		groups[g] = append(groups[g], m.User, strconv.FormatUint(uint64(m.Days), 10))
	}
	var calls []call
	for g, args := range groups {
		head := []string{g.kind, fmt.Sprint(int32(g.month)), fmt.Sprint(int32(g.month.Day(1))), strconv.Itoa(g.month.Len())}
		for some := range slices.Chunk(args, 2*clearDirtyStep) {
			calls = append(calls, partCall(g.part, &e.scripts.archiveClearDirty, append(slices.Clone(head), some...)...))
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
func (e *Engine) HotDays(ctx context.Context) ([]rollcall.HotDay, error) {
	type inPart struct {
		part  int
		field string
	}
	found := make(map[inPart]int)
	err := e.eachField(ctx, "days", e.allParts(), func(p int, field, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return damaged("the days")
		}
		found[inPart{p, field}] = n // once, though a scan may return it again
		return nil
	})
	if err != nil {
		return nil, err
	}

	// Sum over the partitions.
	counts := make(map[rollcall.KindDay]int)
	for at, n := range found {
		of, err := splitDay(at.field)
		if err != nil {
			return nil, err
		}
		counts[of] += n
	}
	return enginekit.HotDays(counts), nil
}

// MarkDirty implements [rollcall.Archival].
func (e *Engine) MarkDirty(ctx context.Context, kind string, day rollcall.Day) error {
	_, err := e.inAllParts(ctx, 0, &e.scripts.archiveMarkDirty, kind, fmt.Sprint(int32(day)))
	return err
}

// Offload implements [rollcall.Archival].
func (e *Engine) Offload(ctx context.Context, kind string, day rollcall.Day) (int, bool, error) {
	messages, err := e.inAllParts(ctx, 0, &e.scripts.archiveOffload, kind, fmt.Sprint(int32(day)), fmt.Sprint(int32(rollcall.MonthOf(day))))
	e.settings.Archive.Outdate()
	users, left := 0, err == nil
	for _, msg := range messages {
		n, wrong := msg.AsInt64()
		switch {
		case wrong == nil:
		case err != nil:
			continue // it was not answered
		default:
			return users, false, damaged("a count")
		}
		left = left && n >= 0
		users += int(max(0, n))
	}
	return users, left, err
}

// Restore implements [rollcall.Archival].
func (e *Engine) Restore(ctx context.Context, all []rollcall.MonthMap) error {
	byPart := make(map[int][]string)
	kinds := make([]string, len(all))
	for i, m := range all {
		kinds[i] = m.Kind
	}
	if err := e.knowKinds(ctx, 0, kinds...); err != nil {
		return err
	}
	for _, m := range all {
		p := e.partOf(m.User)
		for _, day := range m.Month.Days(m.Days) {
			byPart[p] = append(byPart[p], m.User, m.Kind, fmt.Sprint(int32(day)))
		}
	}
	var calls []call
	for p, args := range byPart {
		for some := range slices.Chunk(args, 3*markStep) {
			calls = append(calls, partCall(p, &e.scripts.archiveRestore, some...))
		}
	}
	defer e.settings.Archive.Outdate()
	if e.opts.Wait == 0 {
		_, err := e.do(ctx, 0, calls...)
		return err
	}
	for _, c := range calls { // the archive may forget them at any moment
		if _, err := e.oneConfirmed(ctx, 0, c); err != nil {
			return err
		}
	}
	return nil
}

// runEventsPart is the partition that has the events about no user.
const runEventsPart = 0

// RecordRun implements [rollcall.Archival].
func (e *Engine) RecordRun(ctx context.Context, now time.Time, run rollcall.ArchiveRun) error {
	ev := run.Event(now)
	completed := "0"
	if ev.Type == rollcall.ArchiveCompleted {
		completed = "1"
	}
	_, err := e.oneConfirmed(ctx, now.UnixMilli(), partCall(runEventsPart, &e.scripts.archiveRecordRun, completed, ev.Reason, ev.Actor))
	e.news.wake()
	return err
}

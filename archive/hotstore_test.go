package archive

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// hotStore is an engine's days by the words of Archival alone.
type hotStore struct {
	mu      sync.Mutex
	seed    maphash.Seed
	marks   map[rollcall.Mark]bool
	changed map[Row]bool // without days
	told    []rollcall.Event
}

var _ rollcall.Archival = (*hotStore)(nil)

func newHotStore() *hotStore {
	return &hotStore{seed: maphash.MakeSeed(), marks: map[rollcall.Mark]bool{}, changed: map[Row]bool{}}
}

const hotPartitions = 3

func (h *hotStore) part(user string) uint64 { return maphash.String(h.seed, user) % hotPartitions }

func rowOf(m rollcall.Mark) Row {
	return Row{User: m.User, Kind: m.Kind, Month: rollcall.MonthOf(m.Day)}
}

func (h *hotStore) set(m rollcall.Mark, there bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.marks[m] == there {
		return
	}
	h.changed[rowOf(m)] = true
	if there {
		h.marks[m] = true
	} else {
		delete(h.marks, m)
	}
}

func (h *hotStore) erase(user string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.marks, func(m rollcall.Mark, _ bool) bool { return m.User == user })
	maps.DeleteFunc(h.changed, func(r Row, _ bool) bool { return r.User == user })
}

func (h *hotStore) all() map[rollcall.Mark]bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.marks)
}

func (h *hotStore) mapOf(r Row) uint32 {
	days := uint32(0)
	for _, d := range r.Month.Days(r.Month.Mask()) {
		if h.marks[rollcall.Mark{User: r.User, Kind: r.Kind, Day: d}] {
			days |= rollcall.Bit(d)
		}
	}
	return days
}

func cursorOf(r Row) string { return fmt.Sprintf("%s\x00%d\x00%s", r.Kind, r.Month, r.User) }

func (h *hotStore) ListDirty(ctx context.Context, cursor string, limit int) ([]rollcall.MonthMap, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	order := slices.SortedFunc(maps.Keys(h.changed), func(a, b Row) int { return strings.Compare(cursorOf(a), cursorOf(b)) })
	var found []rollcall.MonthMap
	for _, r := range order {
		if cursorOf(r) <= cursor {
			continue
		}
		if len(found) == limit {
			last := Row(found[limit-1])
			last.Days = 0
			return found, cursorOf(last), nil
		}
		r.Days = h.mapOf(r)
		found = append(found, rollcall.MonthMap(r))
	}
	return found, "", nil
}

func (h *hotStore) ClearDirty(_ context.Context, all []rollcall.MonthMap) (stillDirty int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range all {
		r := Row(m)
		r.Days = 0
		switch {
		case h.mapOf(r) == m.Days:
			delete(h.changed, r)
		default:
			stillDirty++
		}
	}
	return stillDirty, nil
}

func (h *hotStore) HotDays(context.Context) ([]rollcall.HotDay, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	users := map[rollcall.HotDay]int{}
	for m := range h.marks {
		users[rollcall.HotDay{Kind: m.Kind, Day: m.Day}]++
	}
	var days []rollcall.HotDay
	for d, n := range users {
		d.Users = n
		days = append(days, d)
	}
	slices.SortFunc(days, func(a, b rollcall.HotDay) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Day, b.Day)) })
	return days, nil
}

func (h *hotStore) Offload(_ context.Context, kind string, day rollcall.Day) (users int, left bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	left = true
	for part := range uint64(hotPartitions) {
		var going []rollcall.Mark
		stays := false
		for m := range h.marks {
			if m.Kind == kind && m.Day == day && h.part(m.User) == part {
				going = append(going, m)
				stays = stays || h.changed[rowOf(m)]
			}
		}
		if stays {
			left = false
			continue
		}
		for _, m := range going {
			delete(h.marks, m)
		}
		users += len(going)
	}
	return users, left, nil
}

func (h *hotStore) Restore(_ context.Context, all []rollcall.MonthMap) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range all {
		for _, d := range m.Month.Days(m.Days) {
			h.marks[rollcall.Mark{User: m.User, Kind: m.Kind, Day: d}] = true
		}
	}
	return nil
}

// RecordRun implements [rollcall.Archival].
func (h *hotStore) RecordRun(_ context.Context, now time.Time, run rollcall.ArchiveRun) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, run.Event(now))
	return nil
}

// MarkDirty implements [rollcall.Archival].
func (h *hotStore) MarkDirty(_ context.Context, kind string, day rollcall.Day) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.marks {
		if m.Kind == kind && m.Day == day {
			h.changed[rowOf(m)] = true
		}
	}
	return nil
}

// FinalizeFigures implements [rollcall.Archival].
func (h *hotStore) FinalizeFigures(context.Context, string, rollcall.DayRange) error { return nil }

// HasArchivedDays implements [rollcall.Archival]. A runner does not ask.
func (h *hotStore) HasArchivedDays(context.Context, string, string, rollcall.DayRange) (bool, error) {
	return true, nil
}

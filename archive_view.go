package rollcall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// offloadedListTTL is how long the archive's list of offloaded days is used before it
// is read again.
const offloadedListTTL = 10 * time.Second

// archivePatience is how long a question waits for the archive if it can be answered,
// though less well, without it.
const archivePatience = 2 * time.Second

// ErrArchiveAway is in the chain of errors that say that an archive does not
// answer.
var ErrArchiveAway = errors.New("the archive is away")

// KindDay names the marks of one kind on one day.
type KindDay struct {
	Kind string
	Day  Day
}

// Compare orders by kind, then day.
func (d KindDay) Compare(other KindDay) int {
	return cmp.Or(strings.Compare(d.Kind, other.Kind), cmp.Compare(d.Day, other.Day))
}

// ArchiveView is the archive as [Roll] and the engines ask it. It is the one place that
// caches the list of offloaded days, that knows how long the archive is waited for, and
// that words the errors: an archive that fails, and one that is not configured, answer
// with CodeUnavailable, the first with ErrArchiveAway in the chain too.
//
// All methods are safe for concurrent use. A nil *ArchiveView is a view of no archive.
type ArchiveView struct {
	archive Archive       // nil for none
	reading chan struct{} // has one element while the list is read

	stale atomic.Uint64 // raised when the list has to be read again

	mu     sync.Mutex
	list   offloadedList
	failed time.Time // when the list could not be read; zero if the last reading worked
}

// offloadedList is the archive's list of offloaded days. It is replaced, not changed.
type offloadedList struct {
	days  map[KindDay]bool
	dates map[Day]bool // of any kind
	asOf  uint64       // what stale was before the list was read
	read  time.Time    // when the reading began; zero for never
}

// NewArchiveView returns a view of an archive; nil is no archive.
func NewArchiveView(a Archive) *ArchiveView {
	return &ArchiveView{archive: a, reading: make(chan struct{}, 1)}
}

// Configured reports whether there is an archive.
func (v *ArchiveView) Configured() bool { return v != nil && v.archive != nil }

// OffloadedDays returns the offloaded days; nobody may change the map. It reads the list
// if that is older than 10 s or outdated, or in any case with anew.
func (v *ArchiveView) OffloadedDays(ctx context.Context, anew bool) (map[KindDay]bool, error) {
	list, err := v.offloaded(ctx, anew)
	return list.days, err
}

// OffloadedDates returns the days that were offloaded for some kind; nobody may change
// the map. It waits for the archive for 2 s at most, and returns what the list said
// before if the archive does not answer.
func (v *ArchiveView) OffloadedDates(ctx context.Context) map[Day]bool {
	if !v.Configured() {
		return nil
	}
	v.mu.Lock()
	list, failed := v.list, v.failed
	v.mu.Unlock()
	if !failed.IsZero() && time.Since(failed) <= offloadedListTTL {
		return list.dates
	}
	patient, stop := context.WithTimeout(ctx, archivePatience)
	defer stop()
	read, err := v.offloaded(patient, false)
	if err == nil {
		return read.dates
	}
	v.noteFailure(ctx)
	return list.dates
}

func (v *ArchiveView) offloaded(ctx context.Context, anew bool) (offloadedList, error) {
	if !v.Configured() {
		return offloadedList{}, noArchive()
	}
	asked := time.Now()
	if list := v.lastList(); !anew && v.holds(list, asked) {
		return list, nil
	}
	// Only one caller reads the list. The others wait for it, each as long as it may.
	select {
	case v.reading <- struct{}{}:
	case <-ctx.Done():
		return offloadedList{}, archiveError(ctx, ctx.Err())
	}
	defer func() { <-v.reading }()
	list := v.lastList()
	if v.holds(list, time.Now()) && (!anew || list.read.After(asked)) {
		return list, nil
	}
	return v.readList(ctx)
}

func (v *ArchiveView) lastList() offloadedList {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.list
}

// holds reports whether a list may be used at an instant.
func (v *ArchiveView) holds(list offloadedList, now time.Time) bool {
	return !list.read.IsZero() && list.asOf == v.stale.Load() && now.Sub(list.read) <= offloadedListTTL
}

func (v *ArchiveView) readList(ctx context.Context) (offloadedList, error) {
	list := offloadedList{days: make(map[KindDay]bool), dates: make(map[Day]bool), asOf: v.stale.Load(), read: time.Now()}
	days, err := v.archive.OffloadedDays(ctx)
	for _, d := range days {
		list.days[KindDay{d.Kind, d.Day}] = true
		list.dates[d.Day] = true
	}
	if err != nil {
		v.noteFailure(ctx)
		return offloadedList{}, archiveError(ctx, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list, v.failed = list, time.Time{}
	return list, nil
}

// noteFailure notes that the list could not be read, unless the caller gave up.
func (v *ArchiveView) noteFailure(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed = time.Now()
}

// Outdate has the list of offloaded days read again when it is next needed.
func (v *ArchiveView) Outdate() {
	if v != nil {
		v.stale.Add(1)
	}
}

// Version changes with each call of Outdate.
func (v *ArchiveView) Version() uint64 {
	if v == nil {
		return 0
	}
	return v.stale.Load()
}

// UpToDate reports whether the list has been read since Outdate was called last.
func (v *ArchiveView) UpToDate() bool {
	return v != nil && v.lastList().asOf == v.stale.Load()
}

// Each is [Archive.Each]. It returns an error of visit as it is.
func (v *ArchiveView) Each(ctx context.Context, kind string, m Month, visit func(MonthMap) error) error {
	if !v.Configured() {
		return noArchive()
	}
	var refused error
	err := v.archive.Each(ctx, kind, m, func(row MonthMap) error {
		refused = visit(row)
		return refused
	})
	if refused != nil {
		return refused
	}
	return archiveError(ctx, err)
}

// User is [Archive.User].
func (v *ArchiveView) User(ctx context.Context, user, kind string, from, to Month) ([]MonthMap, error) {
	if !v.Configured() {
		return nil, noArchive()
	}
	rows, err := v.archive.User(ctx, user, kind, from, to)
	return rows, archiveError(ctx, err)
}

// Marked is [Archive.Marked].
func (v *ArchiveView) Marked(ctx context.Context, marks []Mark) ([]bool, error) {
	if !v.Configured() {
		return nil, noArchive()
	}
	stand, err := v.archive.Marked(ctx, marks)
	return stand, archiveError(ctx, err)
}

// Unmark is [Archive.Unmark].
func (v *ArchiveView) Unmark(ctx context.Context, marks []Mark) ([]bool, error) {
	if !v.Configured() {
		return nil, noArchive()
	}
	taken, err := v.archive.Unmark(ctx, marks)
	return taken, archiveError(ctx, err)
}

// EraseUser is [Archive.EraseUser].
func (v *ArchiveView) EraseUser(ctx context.Context, user string) error {
	if !v.Configured() {
		return noArchive()
	}
	return archiveError(ctx, v.archive.EraseUser(ctx, user))
}

// Patiently runs a question that may ask the archive, and gives it 2 s. away says that
// the archive did not answer in time: the caller falls back on what it knows.
func (v *ArchiveView) Patiently(ctx context.Context, ask func(context.Context) error) (away bool, err error) {
	patient, stop := context.WithTimeout(ctx, archivePatience)
	defer stop()
	err = ask(patient)
	if err == nil || ctx.Err() != nil || !errors.Is(err, ErrArchiveAway) && patient.Err() == nil {
		return false, err
	}
	return true, nil
}

// noArchive is the error of a question that needs an archive where there is none.
func noArchive() error {
	return &Error{Code: CodeUnavailable, Detail: "days have left for an archive, and none is configured"}
}

// archiveError is the error of a question that the archive did not answer; nil if it
// did. If the caller's time was up, the archive is not to blame.
func archiveError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &Error{Code: CodeUnavailable, Detail: "cut short", Err: ctx.Err()}
	default:
		return &Error{
			Code: CodeUnavailable, Detail: "the archive does not answer, and has days that this is about",
			Err: fmt.Errorf("%w: %w", ErrArchiveAway, err),
		}
	}
}

package enginekit

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rollcall/rollcall"
)

// listTTL is how long the archive's list of offloaded days is taken to hold.
const listTTL = 10 * time.Second

// KindDay names the marks of a kind on a day.
type KindDay struct {
	Kind string
	Day  rollcall.Day
}

// Compare orders by kind, then day.
func (d KindDay) Compare(other KindDay) int {
	return cmp.Or(strings.Compare(d.Kind, other.Kind), cmp.Compare(d.Day, other.Day))
}

// OffloadedDays is what the archive said of which days were offloaded, for a while.
// The zero value has not asked yet.
type OffloadedDays struct {
	stale atomic.Uint64 // raised when it has to be read anew

	mu   sync.Mutex // held while the archive is asked
	asOf uint64     // stale, before the list was read
	read time.Time  // zero for never
	days map[KindDay]bool
}

// Outdate has the list read anew when it is needed next.
func (o *OffloadedDays) Outdate() { o.stale.Add(1) }

// Version changes when the list is outdated.
func (o *OffloadedDays) Version() uint64 { return o.stale.Load() }

// Holds reports whether the list has not been outdated since it was read.
func (o *OffloadedDays) Holds() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asOf == o.stale.Load()
}

// List returns the days that were offloaded by the archive; nobody may change the
// map. It asks the archive if the list is older than 10 s or outdated.
func (o *OffloadedDays) List(ctx context.Context, archive rollcall.Archive) (map[KindDay]bool, error) {
	if archive == nil {
		return nil, &rollcall.Error{
			Code:   rollcall.CodeUnavailable,
			Detail: "the question is about days that have left for an archive, and none is configured",
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now, asOf := time.Now(), o.stale.Load()
	if !o.read.IsZero() && o.asOf == asOf && now.Sub(o.read) <= listTTL {
		return o.days, nil
	}
	list, err := archive.OffloadedDays(ctx)
	if err != nil {
		return nil, ArchiveUnavailable(ctx, err)
	}
	o.days = make(map[KindDay]bool, len(list))
	for _, d := range list {
		o.days[KindDay{d.Kind, d.Day}] = true
	}
	o.read, o.asOf = now, asOf
	return o.days, nil
}

// archivePatience is how long the archive is waited for when figures are asked for
// that are known but for marks that changed since.
const archivePatience = 2 * time.Second

// Patiently counts something for which the archive may be asked, and gives it 2 s.
// away says that the archive did not answer in time: the caller falls back on what it
// knows.
func Patiently(ctx context.Context, count func(context.Context) error) (away bool, err error) {
	patient, stop := context.WithTimeout(ctx, archivePatience)
	defer stop()
	err = count(patient)
	if err == nil || ctx.Err() != nil || !errors.Is(err, rollcall.ErrArchiveAway) && patient.Err() == nil {
		return false, err
	}
	return true, nil
}

// ArchiveUnavailable is the error of a question that the archive did not answer.
func ArchiveUnavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return CutShort(ctx.Err())
	}
	return rollcall.ArchiveAway("the archive does not answer, and the question is about days that are there", err)
}

// WrongArchive is the error of an archive that does not know of a day which left for
// it, and whose marks are nowhere else.
func WrongArchive() error {
	return &rollcall.Error{
		Code:   rollcall.CodeUnavailable,
		Detail: "the archive does not know of a day that left for it: is it another archive?",
	}
}

// CutShort is the error of a command whose context ended.
func CutShort(err error) error {
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "cut short", Err: err}
}

// IsCutShort reports whether an error says that a context ended.
func IsCutShort(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

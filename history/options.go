package history

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// Roll is the part of [rollcall.Roll] that an import needs.
type Roll interface {
	// ImportMarks makes marks of any age and says how many were new.
	ImportMarks(ctx context.Context, marks ...rollcall.Mark) (marked, already int, err error)
	Today() rollcall.Day
	Timezone() *time.Location
}

var _ Roll = (*rollcall.Roll)(nil)

// Options configure an import. The zero value works.
type Options struct {
	// Kind is the kind of rows that name none; "" stands for the user's own.
	Kind string
	// Window is how many rows are imported from one checkpoint to the next, give
	// or take a chunk: more is faster on files that are not in the order of time,
	// and takes about 100 bytes of memory a row. 1,000 to 10,000,000; default
	// 1,000,000.
	Window int
	// DryRun only reads: no mark is made, and no checkpoint.
	DryRun bool
	// StateDir is where checkpoints are kept, in a file for each source, until
	// its import is complete; "" for none.
	StateDir string
	// Resume goes on from the checkpoint that an import of the same file left in
	// StateDir, if there is one.
	Resume bool
	// Rejected is a file that is to list all lines that were rejected, as CSV of
	// the columns line, reason and text; "" for none.
	Rejected string
	// Progress, if set, is told at the start and now and then how far the import
	// has come.
	Progress func(Progress)
}

const (
	defaultWindow = 1_000_000
	minWindow     = 1_000
	maxWindow     = 10_000_000
)

func (o *Options) fill() error {
	if o.Window == 0 {
		o.Window = defaultWindow
	}
	if o.Window < minWindow || o.Window > maxWindow {
		return rollcall.Invalid("window", "must be between %d and %d rows, is %d", minWindow, maxWindow, o.Window)
	}
	if err := rollcall.CheckKind(o.Kind); err != nil {
		return err
	}
	if o.Resume && o.StateDir == "" {
		return rollcall.Invalid("resume", "needs a directory where checkpoints are kept")
	}
	return nil
}

// Progress is how far an import has come.
type Progress struct {
	Rows     int64 // of the file, imported or rejected
	Rejected int64
	Bytes    int64 // read of the file, as it lies there
	Size     int64 // of the file; -1 if it is not known
}

// Summary is what an import did.
type Summary struct {
	Rows     int64            `json:"rows"`     // lines that are neither empty nor the header
	Marked   int64            `json:"marked"`   // marks that were new
	Already  int64            `json:"already"`  // rows whose mark stood, or came twice
	Rejected int64            `json:"rejected"` // rows that were rejected
	Reasons  map[Reason]int64 `json:"reasons"`  // of those, by reason
	// FirstRejected are some of them: the first that this run met.
	FirstRejected []Rejected `json:"first_rejected"`
	// FirstDay and LastDay are the first and last day of the rows accepted; both
	// nil if none was.
	FirstDay *rollcall.Day `json:"first_day"`
	LastDay  *rollcall.Day `json:"last_day"`
	Bytes    int64         `json:"bytes"` // read of the file, as it lies there
	// ResumedAt is the line at which this run went on, 0 if it began at the first.
	ResumedAt int64 `json:"resumed_at"`
}

// keptRejected bounds FirstRejected.
const keptRejected = 20

// Accepted returns how many rows were imported.
func (s *Summary) Accepted() int64 { return s.Rows - s.Rejected }

// AllRejected reports whether there were rows and all were rejected.
func (s *Summary) AllRejected() bool { return s.Rows > 0 && s.Accepted() == 0 }

func (s *Summary) day(d rollcall.Day) {
	if s.FirstDay == nil {
		s.FirstDay, s.LastDay = &d, new(rollcall.Day)
		*s.LastDay = d
	}
	*s.FirstDay, *s.LastDay = min(*s.FirstDay, d), max(*s.LastDay, d)
}

func (s *Summary) reject(r Rejected) {
	s.Rejected++
	s.Reasons[r.Reason]++
	if len(s.FirstRejected) < keptRejected {
		s.FirstRejected = append(s.FirstRejected, r)
	}
}

// String says the outcome in one line.
func (s *Summary) String() string {
	return fmt.Sprintf("%d rows: %d new marks, %d known, %d rejected", s.Rows, s.Marked, s.Already, s.Rejected)
}

package rollcall

import (
	"fmt"
	"time"
)

// ArchiveState is how far a run of the archive has come.
type ArchiveState string

// The states of a run.
const (
	RunRunning   ArchiveState = "running"
	RunCompleted ArchiveState = "completed"
	RunFailed    ArchiveState = "failed"
)

// ArchiveRun is one run of the archive: it copies what changed since the last
// one, and lets days go that are old enough.
type ArchiveRun struct {
	ID            int64
	StartedAt     time.Time // by the archive's clock
	FinishedAt    time.Time // zero while it is running
	State         ArchiveState
	RowsWritten   int64 // user-months copied
	DaysOffloaded int64 // days that left the hot store; one of several kinds counts once, with the first
	Position      string
	Error         string // why it failed
	Runner        string // which process does it
}

// Event returns the event of a run that has ended. Its actor is the runner.
func (r ArchiveRun) Event(at time.Time) Event {
	e := Event{Type: ArchiveFailed, At: at, Reason: r.Error, Actor: r.Runner}
	if r.State == RunCompleted {
		e.Type = ArchiveCompleted
		e.Reason = fmt.Sprintf("run %d: %d user-months copied, %d days left", r.ID, r.RowsWritten, r.DaysOffloaded)
	}
	return e
}

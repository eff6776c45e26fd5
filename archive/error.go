package archive

import (
	"errors"

	"github.com/rollcall/rollcall"
)

// These are in the chain of errors with CodeConflict.
var (
	// ErrHeld: another process holds the lease.
	ErrHeld = errors.New("the lease is held")
	// ErrLeaseLost: another process has taken the lease, or it was released.
	ErrLeaseLost = errors.New("the lease is no longer held")
	// ErrRunEnded: the run is not under way, or not this lease's.
	ErrRunEnded = errors.New("the run is not under way")
	// ErrDiffers: rows do not read back as they were written.
	ErrDiffers = errors.New("rows differ from what was written")
	// ErrOffloaded: a change calls a day hot that has left the hot store.
	ErrOffloaded = errors.New("the day is offloaded")
)

// unavailable words a failure of the database. Errors that are Rollcall's own
// already pass through.
func unavailable(what string, err error) error {
	var own *rollcall.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the archive " + what, Err: err}
}

func conflict(detail string, err error) error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Detail: detail, Err: err}
}

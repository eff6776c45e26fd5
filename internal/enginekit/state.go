package enginekit

import (
	"fmt"
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// State says whether an engine can be used.
type State struct {
	Ready  atomic.Bool // it is configured
	Closed atomic.Bool
}

// Err returns nil if the engine can be used, else why not.
func (s *State) Err() error {
	switch {
	case s.Closed.Load():
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the engine is closed"}
	case !s.Ready.Load():
		return &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the engine is not configured"}
	default:
		return nil
	}
}

// ImportConflict refuses a snapshot of a user that contradicts what an engine knows.
func ImportConflict(user, why string) error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Field: "user", Detail: fmt.Sprintf("%q: %s", user, why)}
}

// KnownUser refuses a snapshot of a user of whom an engine knows something.
func KnownUser(user string) error {
	return ImportConflict(user, "something is known of them already: import into an engine that is empty")
}

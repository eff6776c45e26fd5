package enginekit

import (
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

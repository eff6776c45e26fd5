package enginekit

import (
	"fmt"

	"github.com/rollcall/rollcall"
)

// ImportConflict refuses a snapshot of a user that contradicts what an engine knows.
func ImportConflict(user, why string) error {
	return &rollcall.Error{Code: rollcall.CodeConflict, Field: "user", Detail: fmt.Sprintf("%q: %s", user, why)}
}

// KnownUser refuses a snapshot of a user of whom an engine knows something.
func KnownUser(user string) error {
	return ImportConflict(user, "something is known of them already: import into an engine that is empty")
}

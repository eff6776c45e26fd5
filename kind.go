package rollcall

import (
	"context"
	"fmt"
)

// KindUse is a kind of users and what it is used by.
type KindUse struct {
	Kind     string
	Users    int // whose own kind it was made; everyone else's own is DefaultKind
	Sessions int // live ones
	Days     int // with marks, in the hot store or the archive
}

// Unused reports whether nothing is of the kind.
func (k KindUse) Unused() bool { return k.Users == 0 && k.Sessions == 0 && k.Days == 0 }

// KindInUseError is the error of removing a kind that something is of.
func KindInUseError(k KindUse) error {
	return &Error{Code: CodeConflict, Field: "kind", Detail: fmt.Sprintf(
		"%q is in use: by %d users, %d live sessions, and marks on %d days", k.Kind, k.Users, k.Sessions, k.Days)}
}

// Kinds lists the kinds known, by name, with their use.
func (r *Roll) Kinds(ctx context.Context) ([]KindUse, error) {
	return observe(r, "kinds", func() ([]KindUse, error) { return r.engine.Kinds(ctx) })
}

// DeleteKind removes a kind that nothing is of, which makes room for another.
// Errors: not_found, conflict while it is in use; DefaultKind always is.
func (r *Roll) DeleteKind(ctx context.Context, kind string) error {
	return r.do("delete_kind", func() error {
		if kind == "" {
			return NotFound("kind")
		}
		if err := validateKind("kind", kind); err != nil {
			return err
		}
		return r.engine.DeleteKind(ctx, kind)
	})
}

package rollcall

import "fmt"

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

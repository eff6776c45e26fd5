package rollcall

import (
	"net/netip"
	"strconv"
	"time"
)

// SessionSort orders sessions.
type SessionSort string

// The orders of sessions. Ties are broken by id in the same direction as the
// sort itself; as ids lead with the login time, "-login_at" is "newest id
// first".
const (
	NewestLogin SessionSort = "-login_at"
	OldestLogin SessionSort = "login_at"
	NewestSeen  SessionSort = "-seen_at" // an order that moves
)

// SessionFilter keeps the sessions that meet all its conditions; the zero
// value keeps all.
type SessionFilter struct {
	Users       []string // any of these users; nil means any user at all
	Kind        string
	App         string
	Device      string
	IP          netip.Prefix      // a single address is a prefix of its full length
	Name        string            // a prefix of the name, case-folded
	Attrs       map[string]string // all of these
	LoginAfter  time.Time         // login_at at or after
	LoginBefore time.Time         // login_at before
	SeenWithin  time.Duration     // seen_at at or after now − this
}

// audit says which conditions the filter has, for the audit trail: with their values, but
// for those that name users.
func (f *SessionFilter) audit() map[string]string {
	out := map[string]string{"kind": f.Kind, "app": f.App, "device": f.Device}
	if f.Users != nil {
		out["users"] = strconv.Itoa(len(f.Users))
	}
	if f.IP.IsValid() {
		out["ip"] = "set"
	}
	if f.Name != "" {
		out["name"] = "set"
	}
	if len(f.Attrs) > 0 {
		out["attrs"] = strconv.Itoa(len(f.Attrs))
	}
	if !f.LoginAfter.IsZero() {
		out["login_after"] = f.LoginAfter.UTC().Format(time.RFC3339)
	}
	if !f.LoginBefore.IsZero() {
		out["login_before"] = f.LoginBefore.UTC().Format(time.RFC3339)
	}
	if f.SeenWithin > 0 {
		out["seen_within"] = f.SeenWithin.String()
	}
	return out
}

// IsZero reports whether the filter keeps every session.
func (f *SessionFilter) IsZero() bool {
	return f.Users == nil && f.Kind == "" && f.App == "" && f.Device == "" && !f.IP.IsValid() &&
		f.Name == "" && len(f.Attrs) == 0 && f.LoginAfter.IsZero() && f.LoginBefore.IsZero() && f.SeenWithin == 0
}

func (f *SessionFilter) validate() error {
	if len(f.Users) > MaxQueryUsers {
		return Invalid("users", "names %d users, the limit is %d", len(f.Users), MaxQueryUsers)
	}
	for _, u := range f.Users {
		if err := validateUser("user", u); err != nil {
			return err
		}
	}
	if err := validateKind("kind", f.Kind); err != nil {
		return err
	}
	if err := validateText("app", f.App, MaxAppLen); err != nil {
		return err
	}
	if err := validateText("device", f.Device, MaxDeviceLen); err != nil {
		return err
	}
	if err := validateText("name", f.Name, MaxNameLen); err != nil {
		return err
	}
	if f.SeenWithin < 0 {
		return Invalid("seen_within", "must not be negative")
	}
	if !f.LoginAfter.IsZero() && !f.LoginBefore.IsZero() && f.LoginBefore.Before(f.LoginAfter) {
		return Invalid("login_before", "lies before login_after")
	}
	return validateAttrs(f.Attrs)
}

// SessionQuery asks for a part of the list of live sessions.
type SessionQuery struct {
	Filter SessionFilter
	Sort   SessionSort // default NewestLogin
	Page   PageRequest
	Viewer Viewer
}

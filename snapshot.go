package rollcall

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxSnapshots is how many snapshots one import takes.
const MaxSnapshots = 1000

// UserSnapshot is all that an engine knows about one user, in a form that another
// engine can enter. What is not about users stands in none: API keys, events,
// visits, outages, the keys of retried logins.
//
// One without a User holds what is left of users who were erased: their bans,
// and for their clients that their sessions ended.
type UserSnapshot struct {
	User      string
	Kind      string // "" for one never given
	Name      string
	Invisible bool
	Frozen    time.Time // the last-seen time the public is shown while Invisible; zero for never

	LastSeen time.Time // in whole seconds; zero if no sign of life is kept
	Gone     bool      // not online until the next beat

	Friends []Friend         // by user, ascending
	Days    map[string][]Day // marks by kind, ascending
	// Archived says that the engine has let days of the user go, and that they are
	// not among Days. Roll.Export adds them.
	Archived bool
	Sessions []SessionSnapshot // live; by id, ascending
	Ended    []SessionSnapshot // that are still remembered, with their End; by id, ascending
	Bans     []BanSnapshot     // in force; at most one of a user
	// BanKey is the key under which a ban of the user stands in the engine that
	// the snapshot is entered in. Roll.Import fills it in.
	BanKey BanKey
}

// SessionSnapshot is a session with what engines keep of it besides.
type SessionSnapshot struct {
	Session
	Token TokenKey
	// Idle and Lifetime (0 for none) are the timeouts that apply to a live
	// session; both 0 if it has ended. ExpiresAt is later than SeenAt and Idle
	// say if an outage has put it off.
	Idle, Lifetime time.Duration
}

// TokenKey is the first half of the SHA-256 of a session's token, which is all
// that engines keep of a token.
type TokenKey [16]byte

// BanSnapshot is a ban with what leads to the partition of its user, who may have
// been erased: the low Bits bits of their hash, in Home.
type BanSnapshot struct {
	Ban
	Home uint16
	Bits uint8
}

// IsEmpty reports whether the snapshot says nothing.
func (d *UserSnapshot) IsEmpty() bool {
	return !d.HasRecord() && d.LastSeen.IsZero() && len(d.Friends) == 0 && len(d.Days) == 0 &&
		len(d.Sessions) == 0 && len(d.Ended) == 0 && len(d.Bans) == 0 && !d.Archived
}

// HasRecord reports whether anything about the user was ever set.
func (d *UserSnapshot) HasRecord() bool { return d.Kind != "" || d.Name != "" || d.Invisible }

// Kinds returns all kinds the snapshot names.
func (d *UserSnapshot) Kinds() []string {
	kinds := make([]string, 0, 1+len(d.Days)+len(d.Sessions))
	if d.Kind != "" {
		kinds = append(kinds, d.Kind)
	}
	for kind := range d.Days {
		kinds = append(kinds, kind)
	}
	for i := range d.Sessions {
		kinds = append(kinds, d.Sessions[i].Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// validate checks a snapshot against the rules that whatever comes in by other
// ways was held to. No time may be later than latest, no day than today.
func (d *UserSnapshot) validate(latest time.Time, today Day) error {
	if d.User == "" {
		if d.HasRecord() || !d.LastSeen.IsZero() || len(d.Friends) > 0 || len(d.Days) > 0 || len(d.Sessions) > 0 {
			return Invalid("user", "is required")
		}
	} else if err := validateUser("user", d.User); err != nil {
		return err
	}
	if err := cmp.Or(validateKind("kind", d.Kind), validateText("name", d.Name, MaxNameLen)); err != nil {
		return err
	}
	for _, t := range []struct {
		field string
		at    time.Time
	}{{"last_seen", d.LastSeen}, {"frozen", d.Frozen}} {
		if !t.at.IsZero() && (t.at.Unix() <= 0 || t.at.After(latest)) {
			return Invalid(t.field, "%s lies before 1970 or in the future", t.at.Format(time.RFC3339))
		}
	}
	if err := validateFriends(cmp.Or(d.User, "nobody"), d.Friends); err != nil {
		return err
	}
	if err := d.validateLists(today); err != nil {
		return err
	}
	if len(d.Bans) > 0 && len(d.Sessions) > 0 {
		return Invalid("sessions", "a user who is banned has none")
	}
	for i := range d.Sessions {
		err := d.Sessions[i].validateLive(d.User, latest)
		if err := cmp.Or(err, inOrder(d.Sessions, i)); err != nil {
			return under(err, "sessions", i)
		}
	}
	for i := range d.Ended {
		err := d.Ended[i].validateEnded(d.User, latest)
		if err := cmp.Or(err, inOrder(d.Ended, i)); err != nil {
			return under(err, "ended", i)
		}
	}
	return nil
}

func inOrder(list []SessionSnapshot, i int) error {
	if i > 0 && bytes.Compare(list[i-1].ID[:], list[i].ID[:]) >= 0 {
		return Invalid("id", "must follow the one before, each once")
	}
	return nil
}

func (d *UserSnapshot) validateLists(today Day) error {
	for i, f := range d.Friends {
		if f.Since.IsZero() {
			return Invalid(fmt.Sprintf("friends[%d].since", i), "is required")
		}
		if i > 0 && f.User <= d.Friends[i-1].User {
			return Invalid(fmt.Sprintf("friends[%d].user", i), "must follow the one before, each once")
		}
	}
	for kind, days := range d.Days {
		if err := validateKind("days", kind); err != nil || kind == "" {
			return cmp.Or(err, Invalid("days", "a kind is empty"))
		}
		for i, day := range days {
			if day < 0 || day > today || (i > 0 && day <= days[i-1]) {
				return Invalid("days."+kind, "days must ascend from 1970-01-01 to today, %s does not", day)
			}
		}
	}
	if d.User != "" && len(d.Bans) > 1 {
		return Invalid("bans", "a user has one ban at most")
	}
	for i := range d.Bans {
		b := &d.Bans[i]
		if b.User != d.User || b.Bits > 16 {
			return Invalid(fmt.Sprintf("bans[%d]", i), "is of another user, or leads nowhere")
		}
		if err := cmp.Or(validateText("reason", b.Reason, MaxReasonLen), validateText("actor", b.Actor, MaxActorLen)); err != nil {
			return under(err, "bans", i)
		}
	}
	return nil
}

// under names the element of a list in which a field is at fault.
func under(err error, list string, i int) error {
	e, ok := err.(*Error) //nolint:errorlint // made by a validator just now
	if !ok {
		return err
	}
	out := *e
	out.Field = fmt.Sprintf("%s[%d].%s", list, i, e.Field)
	return &out
}

// validateLive checks a session that has not been ended.
func (s *SessionSnapshot) validateLive(user string, latest time.Time) error {
	if err := s.validate(user, latest); err != nil {
		return err
	}
	ends := time.Time{}
	if s.Lifetime != 0 {
		ends = s.LoginAt.Add(s.Lifetime)
	}
	switch {
	case s.End != nil:
		return Invalid("end", "has no place in a session that has not ended")
	case s.Kind == "":
		return Invalid("kind", "is required")
	case s.Idle < time.Second || s.Idle > maxPolicyDuration:
		return Invalid("idle", "must be between 1s and 10 years, is %v", s.Idle)
	case s.Lifetime < 0 || s.Lifetime > maxPolicyDuration:
		return Invalid("lifetime", "must be between 0 and 10 years, is %v", s.Lifetime)
	case s.ExpiresAt.Before(s.SeenAt.Add(s.Idle)) || s.ExpiresAt.After(latest.Add(2*maxPolicyDuration)):
		return Invalid("expires_at", "contradicts seen_at and idle")
	case !s.EndsAt.Equal(ends):
		return Invalid("ends_at", "contradicts login_at and lifetime")
	}
	return nil
}

// validateEnded checks a session that is remembered to have ended.
func (s *SessionSnapshot) validateEnded(user string, latest time.Time) error {
	if err := s.validate(user, latest); err != nil {
		return err
	}
	if s.End == nil || s.End.At.After(latest) || s.End.At.Before(s.LoginAt) {
		return Invalid("end", "is required, between the login and now")
	}
	if !slices.Contains(causes, s.End.Cause) {
		return Invalid("end.cause", "%q is no cause", s.End.Cause)
	}
	return cmp.Or(validateText("end.reason", s.End.Reason, MaxReasonLen), validateText("end.actor", s.End.Actor, MaxActorLen))
}

func (s *SessionSnapshot) validate(user string, latest time.Time) error {
	l := Login{
		User: cmp.Or(user, "nobody"), Kind: s.Kind, Name: s.Name, App: s.App, Device: s.Device, DeviceID: s.DeviceID,
		IP: s.IP, UserAgent: s.UserAgent, Attrs: s.Attrs,
	}
	if err := l.validate(); err != nil {
		return err
	}
	switch {
	case s.User != user:
		return Invalid("user", "is another one than the snapshot's")
	case user != "" && s.ID.Home() != uint16(HashUser(user)):
		return Invalid("id", "is not one of a session of this user")
	case !s.ID.Time().Equal(s.LoginAt):
		return Invalid("login_at", "contradicts the id")
	case s.SeenAt.Before(s.LoginAt) || s.SeenAt.After(latest):
		return Invalid("seen_at", "must lie between the login and now")
	default:
		return nil
	}
}

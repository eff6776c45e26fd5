package rollcall

import "time"

// Kick ends sessions: exactly one of Session, User and Filter (or All) says
// which. Device and Except narrow User.
type Kick struct {
	Session SessionID
	User    string
	Device  string    // only this device class
	Except  SessionID // all but this one
	Filter  *SessionFilter
	All     bool // every session; also allows a Filter that keeps all

	Cause  Cause         // default CauseKicked
	Reason string        // up to 256 bytes, shown to the client
	Actor  string        // who did it, up to 128 bytes
	Ban    time.Duration // keeps the users out for so long; with User or Filter only
	DryRun bool          // only count
}

// MaxBan is the longest ban.
const MaxBan = maxPolicyDuration

// kickStep bounds how many sessions one step of a kick by filter ends.
const kickStep = 500

func (k *Kick) validate() error {
	targets := 0
	for _, set := range []bool{!k.Session.IsZero(), k.User != "", k.Filter != nil || k.All} {
		if set {
			targets++
		}
	}
	byFilter := k.Filter != nil || k.All
	switch {
	case targets != 1:
		return Invalid("session", "name exactly one of session, user, filter and all")
	case k.User == "" && (k.Device != "" || !k.Except.IsZero()):
		return Invalid("user", "is required with device and except")
	case k.Device != "" && !k.Except.IsZero():
		return Invalid("except", "cannot be combined with device")
	case k.Ban < 0 || k.Ban > MaxBan:
		return Invalid("ban", "must be between 0 and 10 years, is %v", k.Ban)
	case k.Ban > 0 && !byFilter && (k.User == "" || k.Device != "" || !k.Except.IsZero()):
		return Invalid("ban", "goes with a user or a filter only")
	case k.Filter != nil && k.Filter.IsZero() && !k.All:
		return Invalid("all", "this filter matches everything: say \"all\": true if that is meant")
	case k.Cause != CauseKicked && k.Cause != CauseLogout:
		return Invalid("cause", "must be kicked or logout, is %q", k.Cause)
	}
	if k.User != "" {
		if err := validateUser("user", k.User); err != nil {
			return err
		}
	}
	if k.Filter != nil {
		if err := k.Filter.validate(); err != nil {
			return err
		}
	}
	if err := validateText("device", k.Device, MaxDeviceLen); err != nil {
		return err
	}
	if err := validateText("reason", k.Reason, MaxReasonLen); err != nil {
		return err
	}
	return validateText("actor", k.Actor, MaxActorLen)
}

func (k *Kick) query(limit int) SessionQuery {
	q := SessionQuery{Sort: OldestLogin, Page: PageRequest{Limit: limit}}
	switch {
	case k.Filter != nil:
		q.Filter = *k.Filter
	case k.User != "":
		q.Filter.Users, q.Filter.Device = []string{k.User}, k.Device
	}
	return q
}

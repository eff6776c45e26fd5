package e2e

import (
	"maps"
	"time"

	"github.com/rollcall/rollcall"
)

// account is what the server must know about one user, going by what it has
// acknowledged.
type account struct {
	user    string
	live    map[string]deviceSlot // by session id
	ended   map[string]ending     // by session id
	banned  bool
	friends map[string]bool
	days    map[rollcall.Day]bool
}

// deviceSlot is a live session. Its token is not known if the login was never
// answered.
type deviceSlot struct{ token, device, deviceID string }

// ending is a session that is over.
type ending struct {
	token string
	cause rollcall.Cause
}

// login is what a login's answer says, or the list of sessions where there was
// no answer.
type login struct {
	id      string
	token   string
	loginAt time.Time
}

func newAccount(user string) *account {
	return &account{
		user: user, live: map[string]deviceSlot{}, ended: map[string]ending{},
		friends: map[string]bool{}, days: map[rollcall.Day]bool{},
	}
}

func (a *account) clone() *account {
	return &account{
		user: a.user, live: maps.Clone(a.live), ended: maps.Clone(a.ended), banned: a.banned,
		friends: maps.Clone(a.friends), days: maps.Clone(a.days),
	}
}

// begin starts a session and ends the one of the same physical device.
func (a *account) begin(l login, device, deviceID string) {
	if deviceID != "" {
		a.end(rollcall.CauseReplaced, func(_ string, s deviceSlot) bool { return s.deviceID == deviceID })
	}
	a.live[l.id] = deviceSlot{token: l.token, device: device, deviceID: deviceID}
	a.days[rollcall.DayOf(l.loginAt, time.UTC)] = true
}

// end ends the sessions for which goes holds.
func (a *account) end(cause rollcall.Cause, goes func(id string, s deviceSlot) bool) {
	for id, s := range a.live {
		if goes(id, s) {
			delete(a.live, id)
			a.ended[id] = ending{token: s.token, cause: cause}
		}
	}
}

func everySeat(string, deviceSlot) bool { return true }

// view is the part of an account that the server can be asked for.
type view struct {
	Live    map[string]string // session id to device
	Banned  bool
	Friends map[string]bool
	Days    map[rollcall.Day]bool
}

func (a *account) view() view {
	v := view{Live: map[string]string{}, Banned: a.banned, Friends: a.friends, Days: a.days}
	for id, s := range a.live {
		v.Live[id] = s.device
	}
	return v
}

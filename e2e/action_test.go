package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// action is one thing done to one user: what is asked of the server, what it must
// answer, and what is true from then on.
type action struct {
	request
	status int
	// effect changes the account; nil for an action that changes nothing. The
	// login is for an action that begins a session.
	effect func(*account, login)
	begins bool
}

// chooser draws actions for accounts.
type chooser struct {
	rng   *rand.Rand
	today rollcall.Day
}

// maxLive keeps accounts small: a user with more sessions is kicked next.
const maxLive = 6

func (c *chooser) next(a *account) action {
	if len(a.live) > maxLive {
		return c.kickUser(a)
	}
	weighted := []struct {
		weight int
		make   func(*account) action
	}{
		{8, c.login},
		{3, c.endOne},
		{1, c.kickUser},
		{2, c.kickSome},
		{1, c.ban},
		{1, c.unban},
		{3, c.mark},
		{2, c.unmark},
		{3, c.befriend},
		{2, c.unfriend},
		{3, c.touch},
		{1, c.beat},
	}
	if a.banned { // a banned user can do little: let them in again soon
		weighted[5].weight = 8
	}
	sum := 0
	for _, w := range weighted {
		sum += w.weight
	}
	n := c.rng.IntN(sum)
	for _, w := range weighted {
		if n -= w.weight; n < 0 {
			return w.make(a)
		}
	}
	return c.beat(a)
}

func (c *chooser) login(a *account) action {
	device := []string{"web", "ios", "android"}[c.rng.IntN(3)]
	deviceID := []string{"", "", "phone", "tablet"}[c.rng.IntN(4)]
	d := action{request: request{method: "POST", path: "/v1/sessions", body: map[string]any{
		"user": a.user, "device": device, "device_id": deviceID, "ip": "192.0.2.7", "attrs": map[string]string{"n": fmt.Sprint(c.rng.IntN(9))},
	}}, status: http.StatusForbidden}
	if a.banned {
		return d
	}
	d.status, d.begins = http.StatusCreated, true
	d.effect = func(a *account, l login) { a.begin(l, device, deviceID) }
	return d
}

// session draws a live session of the account, "" if there is none.
func (c *chooser) session(a *account) string {
	ids := make([]string, 0, len(a.live))
	for id := range a.live {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return ids[c.rng.IntN(len(ids))]
}

// endOne signs a session out, or kicks it.
func (c *chooser) endOne(a *account) action {
	target := c.session(a)
	if target == "" {
		return c.login(a)
	}
	this := func(id string, _ deviceSlot) bool { return id == target }
	if c.rng.IntN(2) == 0 {
		return action{
			request: request{method: "DELETE", path: "/v1/sessions/" + target}, status: http.StatusOK,
			effect: func(a *account, _ login) { a.end(rollcall.CauseLogout, this) },
		}
	}
	return c.kick(map[string]any{"session": target, "reason": "test"}, this)
}

func (c *chooser) kick(body map[string]any, goes func(string, deviceSlot) bool) action {
	return action{
		request: request{method: "POST", path: "/v1/kicks", body: body}, status: http.StatusOK,
		effect: func(a *account, _ login) { a.end(rollcall.CauseKicked, goes) },
	}
}

func (c *chooser) kickUser(a *account) action {
	d := c.kick(map[string]any{"user": a.user}, everySeat)
	if c.rng.IntN(4) == 0 {
		d = c.kick(map[string]any{"user": a.user, "ban": "1h"}, everySeat)
		kicked := d.effect
		d.effect = func(a *account, l login) { kicked(a, l); a.banned = true }
	}
	return d
}

// kickSome kicks a class of devices, or all sessions but one.
func (c *chooser) kickSome(a *account) action {
	spared := c.session(a)
	if spared == "" || c.rng.IntN(2) == 0 {
		return c.kick(map[string]any{"user": a.user, "device": "web"}, func(_ string, s deviceSlot) bool { return s.device == "web" })
	}
	return c.kick(map[string]any{"user": a.user, "except": spared}, func(id string, _ deviceSlot) bool { return id != spared })
}

func (c *chooser) ban(a *account) action {
	return action{
		request: request{method: "PUT", path: "/v1/bans/" + a.user, body: map[string]any{"duration": "1h"}}, status: http.StatusOK,
		effect: func(a *account, _ login) { a.end(rollcall.CauseBanned, everySeat); a.banned = true },
	}
}

func (c *chooser) unban(a *account) action {
	d := action{request: request{method: "DELETE", path: "/v1/bans/" + a.user}, status: http.StatusNotFound}
	if a.banned {
		d.status = http.StatusNoContent
		d.effect = func(a *account, _ login) { a.banned = false }
	}
	return d
}

// marks names up to three of the last days, of the user's own kind.
func (c *chooser) marks(a *account) (days []rollcall.Day, body map[string]any) {
	var marks []map[string]any
	for range 1 + c.rng.IntN(3) {
		day := c.today - rollcall.Day(c.rng.IntN(28))
		days = append(days, day)
		marks = append(marks, map[string]any{"user": a.user, "day": day})
	}
	return days, map[string]any{"marks": marks}
}

func (c *chooser) mark(a *account) action {
	days, body := c.marks(a)
	return action{
		request: request{method: "POST", path: "/v1/attendance/marks", body: body}, status: http.StatusOK,
		effect: func(a *account, _ login) {
			for _, day := range days {
				a.days[day] = true
			}
		},
	}
}

func (c *chooser) unmark(a *account) action {
	days, body := c.marks(a)
	return action{
		request: request{method: "DELETE", path: "/v1/attendance/marks", body: body}, status: http.StatusOK,
		effect: func(a *account, _ login) {
			for _, day := range days {
				delete(a.days, day)
			}
		},
	}
}

func (c *chooser) befriend(a *account) action {
	friend := fmt.Sprintf("friend-%d", c.rng.IntN(12))
	return action{
		request: request{method: "PUT", path: "/v1/users/" + a.user + "/friends/" + friend}, status: http.StatusNoContent,
		effect: func(a *account, _ login) { a.friends[friend] = true },
	}
}

func (c *chooser) unfriend(a *account) action {
	friend := fmt.Sprintf("friend-%d", c.rng.IntN(12))
	d := action{request: request{method: "DELETE", path: "/v1/users/" + a.user + "/friends/" + friend}, status: http.StatusNotFound}
	if a.friends[friend] {
		d.status = http.StatusNoContent
		d.effect = func(a *account, _ login) { delete(a.friends, friend) }
	}
	return d
}

// touch touches a session that lives, or tries to revive one that is over.
func (c *chooser) touch(a *account) action {
	d := action{request: request{method: "POST", path: "/v1/touch"}, status: http.StatusOK}
	if id := c.session(a); id != "" && a.live[id].token != "" {
		d.token = a.live[id].token
		return d
	}
	for _, e := range a.ended {
		if e.token != "" {
			d.token, d.status = e.token, http.StatusUnauthorized
			return d
		}
	}
	return c.beat(a)
}

func (c *chooser) beat(a *account) action {
	return action{
		request: request{method: "POST", path: "/v1/beats", body: map[string]any{"users": []string{a.user, "friend-1"}}},
		status:  http.StatusOK,
	}
}

// today returns the civil day of an instant as the server counts it.
func today(now time.Time) rollcall.Day { return rollcall.DayOf(now, time.UTC) }

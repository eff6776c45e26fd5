package main

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/rollcall/rollcall"
)

// putBan bans a user.
func (c *chooser) putBan(u *user) *action {
	d := pick(c, 5*time.Second, time.Hour, 72*time.Hour)
	apply := func(p *userModel, at span) *userModel {
		p.age(at, &c.world.outages)
		p.putBan(d, "enough", at)
		return p
	}
	return &action{
		request: request{method: "PUT", path: "/v1/bans/" + inPath(u.id), body: map[string]any{"duration": int(d / time.Second), "reason": "enough"}},
		judge: func(a answer) error {
			if a.code == rollcall.CodeNotFound && a.at.hi.Sub(a.at.lo) > d { // it is over by the time it is read
				apply(u.now, a.at)
				return nil
			}
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			var got struct {
				wireBan
				Ended int
			}
			if err := a.read(&got); err != nil {
				return err
			}
			u.now.age(a.at, &c.world.outages)
			if least, most := counts(u.now.live()); got.Ended < least || got.Ended > most {
				return wrong(a, "%d to %d sessions ought to end", least, most)
			}
			apply(u.now, a.at)
			if !u.now.ban.until.has(got.Until) {
				return wrong(a, "the ban ought to be until %s", u.now.ban.until)
			}
			u.now.ban.until = exactly(got.Until)
			return nil
		},
		suppose: apply,
	}
}

// liftBan lifts a ban.
func (c *chooser) liftBan(u *user) *action {
	if u.now.ban == nil && !c.one(4) {
		return nil
	}
	return &action{
		request: request{method: "DELETE", path: "/v1/bans/" + inPath(u.id)},
		judge: func(a answer) error {
			banned := u.now.banned(a.at)
			switch {
			case a.status == http.StatusNoContent && banned == no:
				return wrong(a, "there was no ban")
			case a.code == rollcall.CodeNotFound && banned == yes:
				return wrong(a, "there was a ban until %s", u.now.ban.until)
			case a.status != http.StatusNoContent && a.code != rollcall.CodeNotFound:
				return wrong(a, "204 was expected")
			}
			u.now.ban = nil
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			p.ban = nil
			return p
		},
	}
}

// putUser changes the record of a user.
func (c *chooser) putUser(u *user) *action {
	body := map[string]any{}
	var change func(p *userModel)
	switch c.rng.IntN(3) {
	case 0:
		kind := pick(c, "user", "strict")
		body["kind"], change = kind, func(p *userModel) { p.kind = kind }
	case 1:
		name := pick(c, "", "Ann", "İnci")
		body["name"], change = name, func(p *userModel) { p.name = name }
	default:
		hidden := !u.now.invisible
		body["invisible"], change = hidden, func(p *userModel) { p.invisible = hidden }
	}
	return &action{
		request: request{method: "PUT", path: "/v1/users/" + inPath(u.id), body: body},
		judge: func(a answer) error {
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			change(u.now)
			var got struct {
				Kind, Name string
				Invisible  bool
			}
			if err := a.read(&got); err != nil {
				return err
			}
			if p := u.now; got.Kind != p.kind || got.Name != p.name || got.Invisible != p.invisible {
				return wrong(a, "{kind %q, name %q, invisible %t} was expected", p.kind, p.name, p.invisible)
			}
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			change(p)
			return p
		},
	}
}

// erase erases a user. While it is under way the user may be gone from any list of
// friends. One that was not answered was carried out whole, or not at all: servers
// finish what they have begun, and nothing is compared before that.
func (c *chooser) erase(u *user) *action {
	from := c.world.clocks.now().lo
	x := c.world.erasing(u.id, span{from, from.Add(24 * time.Hour)})
	return &action{
		request: request{method: "DELETE", path: "/v1/users/" + inPath(u.id)},
		judge: func(a answer) error {
			if a.status != http.StatusNoContent {
				return wrong(a, "204 was expected")
			}
			c.world.erased(x, a.at)
			u.now, u.retry = u.now.erased(), nil
			return nil
		},
		suppose:    func(p *userModel, _ span) *userModel { return p.erased() },
		unanswered: func() { u.retry = nil },
		resolved: func(done bool, at span) {
			if done {
				c.world.erased(x, at)
			} else {
				c.world.notErased(x)
			}
		},
	}
}

// addFriend adds a friend, and perhaps the user to the friend's friends.
func (c *chooser) addFriend(u *user) *action {
	other := pick(c, c.world.users...)
	mutual := c.one(3)
	if mutual {
		other = pick(c, c.own...)
		mutual = other.unanswered == nil
	}
	if other == u {
		return nil
	}
	query := url.Values{}
	var since *time.Time
	if c.one(2) {
		t := c.world.clocks.now().lo.Add(-time.Duration(c.rng.IntN(1000)) * time.Minute).Truncate(time.Millisecond)
		since = &t
		query.Set("since", instant(t))
	}
	if mutual {
		query.Set("mutual", "1")
	}
	add := func(p *userModel, at span) *userModel {
		p.befriend(other.id, since, at, c.world)
		return p
	}
	back := func(p *userModel, at span) *userModel {
		p.befriend(u.id, since, at, c.world)
		return p
	}
	d := &action{
		request: request{method: "PUT", path: "/v1/users/" + inPath(u.id) + "/friends/" + inPath(other.id) + "?" + query.Encode()},
		judge: func(a answer) error {
			if a.status != http.StatusNoContent {
				return wrong(a, "204 was expected")
			}
			add(u.now, a.at)
			if mutual {
				back(other.now, a.at)
			}
			return nil
		},
		suppose: add,
	}
	if mutual {
		d.other, d.supposeOther = other, back
	}
	return d
}

// removeFriend removes a friend.
func (c *chooser) removeFriend(u *user) *action {
	id := pick(c, c.world.users...).id
	if all := keysOf(u.now.friends); len(all) > 0 && !c.one(5) {
		id = pick(c, all...)
	}
	return &action{
		request: request{method: "DELETE", path: "/v1/users/" + inPath(u.id) + "/friends/" + inPath(id)},
		judge: func(a answer) error {
			stood := no
			if e := u.now.friends[id]; e != nil {
				stood = c.world.stands(id, e, a.at)
			}
			switch {
			case a.status == http.StatusNoContent && stood == no:
				return wrong(a, "%q was no friend", id)
			case a.code == rollcall.CodeNotFound && stood == yes:
				return wrong(a, "%q was a friend", id)
			case a.status != http.StatusNoContent && a.code != rollcall.CodeNotFound:
				return wrong(a, "204 was expected")
			}
			delete(u.now.friends, id)
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			delete(p.friends, id)
			return p
		},
	}
}

// replaceFriends makes the friends exactly these.
func (c *chooser) replaceFriends(u *user) *action {
	var list []map[string]any
	chosen := map[string]*time.Time{}
	for range c.rng.IntN(6) {
		other := pick(c, c.world.users...)
		if _, twice := chosen[other.id]; twice || other == u {
			continue
		}
		f := map[string]any{"user": other.id}
		chosen[other.id] = nil
		if c.one(3) {
			t := c.world.clocks.now().lo.Add(-time.Duration(c.rng.IntN(1000)) * time.Minute).Truncate(time.Millisecond)
			f["since"], chosen[other.id] = instant(t), &t
		}
		list = append(list, f)
	}
	if list == nil {
		list = []map[string]any{}
	}
	replace := func(p *userModel, at span) *userModel {
		for f := range p.friends {
			if _, stays := chosen[f]; !stays {
				delete(p.friends, f)
			}
		}
		for f, since := range chosen {
			p.befriend(f, since, at, c.world)
		}
		return p
	}
	return &action{
		request: request{method: "PUT", path: "/v1/users/" + inPath(u.id) + "/friends", body: map[string]any{"friends": list}},
		judge: func(a answer) error {
			if a.status != http.StatusNoContent {
				return wrong(a, "204 was expected")
			}
			replace(u.now, a.at)
			return nil
		},
		suppose: replace,
	}
}

// aMark is a mark of a user, on a day that is no longer today wherever the clock
// was set.
func (c *chooser) aMark(u *user) (body map[string]any, kind string, day rollcall.Day) {
	day = dayOf(c.world.clocks.now().lo) - 1 - rollcall.Day(c.rng.IntN(20))
	kind = pick(c, kinds()...)
	return map[string]any{"marks": []map[string]any{{"user": u.id, "kind": kind, "day": day.String()}}}, kind, day
}

// mark says that a user was there on a day.
func (c *chooser) mark(u *user) *action {
	body, kind, day := c.aMark(u)
	return &action{
		request: request{method: "POST", path: "/v1/attendance/marks", body: body},
		judge: func(a answer) error {
			var got struct{ Marked, Already int }
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			if err := a.read(&got); err != nil {
				return err
			}
			stood := u.now.days.on(kind, day)
			if got.Marked+got.Already != 1 || (stood == yes && got.Marked == 1) || (stood == no && got.Already == 1) {
				return wrong(a, "the mark stood: %d of 2", stood)
			}
			u.now.days.set(kind, day, yes)
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			p.days.set(kind, day, yes)
			return p
		},
	}
}

// unmark takes a mark back.
func (c *chooser) unmark(u *user) *action {
	body, kind, day := c.aMark(u)
	for d := range u.now.days[kind] {
		if d < dayOf(c.world.clocks.now().lo) && d > dayOf(c.world.clocks.now().hi)-25 {
			day = max(day, d)
		}
	}
	body["marks"] = []map[string]any{{"user": u.id, "kind": kind, "day": day.String()}}
	return &action{
		request: request{method: "DELETE", path: "/v1/attendance/marks", body: body},
		judge: func(a answer) error {
			var got struct{ Unmarked int }
			if a.status != http.StatusOK {
				return wrong(a, "200 was expected")
			}
			if err := a.read(&got); err != nil {
				return err
			}
			stood := u.now.days.on(kind, day)
			if (stood == yes && got.Unmarked != 1) || (stood == no && got.Unmarked != 0) {
				return wrong(a, "the mark stood: %d of 2", stood)
			}
			u.now.days.set(kind, day, no)
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			p.days.set(kind, day, no)
			return p
		},
	}
}

// makeKey makes an API key.
func (c *chooser) makeKey(*user) *action {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.keys)+len(w.askedKeys) > 200 {
		return nil
	}
	name, role := fmt.Sprintf("key-%x", c.rng.Uint64()), pick(c, "reader", "writer")
	return &action{
		request: request{method: "POST", path: "/v1/keys", body: map[string]any{"name": name, "role": role}},
		judge: func(a answer) error {
			if a.status != http.StatusCreated {
				return wrong(a, "201 was expected")
			}
			var got struct{ ID, Key string }
			if err := a.read(&got); err != nil {
				return err
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			w.keys[got.ID] = &apiKey{id: got.ID, text: got.Key, role: role}
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.askedKeys = append(w.askedKeys, name)
			return p
		},
	}
}

// revokeKey revokes a key.
func (c *chooser) revokeKey(*user) *action {
	w := c.world
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := keysOf(w.keys)
	if len(ids) < 3 {
		return nil
	}
	k := w.keys[pick(c, ids...)]
	if k.revoked != no {
		return nil
	}
	k.revoked = perhaps
	return &action{
		request: request{method: "DELETE", path: "/v1/keys/" + k.id},
		judge: func(a answer) error {
			if a.status != http.StatusNoContent {
				return wrong(a, "204 was expected")
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			k.revoked = yes
			return nil
		},
		suppose: func(p *userModel, _ span) *userModel { return p },
	}
}

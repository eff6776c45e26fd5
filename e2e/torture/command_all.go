package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// aboutAll sends commands that are about many users, one after the other, and
// compares what they leave.
func (r *run) aboutAll(ctx context.Context) error {
	for range 1 + r.rng.IntN(2) {
		var err error
		switch r.rng.IntN(4) {
		case 0:
			err = r.kickMany(ctx, map[string]any{"all": true, "reason": "all"}, "all", func(*session) bool { return true }, 0)
		case 1:
			err = r.kickMany(ctx, map[string]any{"filter": map[string]any{"app": "shop"}, "reason": "shops"}, "shops", func(s *session) bool { return s.app == "shop" }, 0)
		case 2:
			err = r.kickMany(ctx, map[string]any{"filter": map[string]any{"device": "tv"}, "reason": "tv", "ban": 5}, "tv", func(s *session) bool { return s.device == "tv" }, 5*time.Second)
		default:
			err = r.clear(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := r.compare(ctx); err != nil {
		return fmt.Errorf("after commands about all: %w", err)
	}
	return nil
}

// kickMany ends all sessions that meet conditions.
func (r *run) kickMany(ctx context.Context, body map[string]any, reason string, meets func(*session) bool, banned time.Duration) error {
	var got struct{ Ended int }
	req := request{method: "POST", path: "/v1/kicks", body: body}
	a, err := get(ctx, r.site, req, &got)
	if err != nil {
		return err
	}
	r.say("%s: %s", req, a)
	least, most := 0, 0
	for _, u := range r.world.users {
		p := u.now
		p.age(a.at, &r.world.outages)
		u.remember("%s: %s at %s", req, a, a.at)
		var hit []*session
		for _, s := range p.live() {
			if meets(s) {
				hit = append(hit, s)
			}
		}
		l, m := counts(hit)
		if banned > 0 && m > 0 {
			p.finish(rollcall.CauseKicked, reason, a.at, hit...)
			rl, rm := counts(p.live())
			if l > 0 {
				p.putBan(banned, reason, a.at)
			} else { // perhaps
				for _, s := range p.live() {
					s.mayHaveEnded = true
				}
				p.ban = &ban{until: span{a.at.lo, a.at.hi.Add(banned)}, reason: reason}
				rl = 0
			}
			l, m = l+rl, m+rm
		} else {
			p.finish(rollcall.CauseKicked, reason, a.at, hit...)
		}
		least, most = least+l, most+m
	}
	if got.Ended < least || got.Ended > most {
		return &difference{nil, fmt.Errorf("%s ended %d sessions instead of %d to %d", req, got.Ended, least, most)}
	}
	return nil
}

// clear forgets who was not seen for long.
func (r *run) clear(ctx context.Context) error {
	age := pick(&r.workers[0].chooser, 10*time.Second, time.Minute, time.Hour)
	var got struct{ Cleared int }
	req := request{method: "POST", path: "/v1/online/clear", body: map[string]any{"older_than": int(age / time.Second)}}
	a, err := get(ctx, r.site, req, &got)
	if err != nil {
		return err
	}
	r.say("%s: %s", req, a)
	r.world.mu.Lock()
	r.world.clears = append(r.world.clears, a.at)
	r.world.mu.Unlock()
	least, most := 0, 0
	for _, u := range r.world.users {
		p := &u.now.presence
		u.remember("%s: %s at %s", req, a, a.at)
		switch before := a.at.shift(-age); {
		case p.known == no || p.seen.lo.Unix() >= before.hi.Unix():
		case p.known == yes && p.seen.hi.Unix() < before.lo.Unix():
			least, most = least+1, most+1
			*p = presence{cleared: a.at.hi}
		default:
			most++
			p.known, p.cleared = perhaps, a.at.hi
		}
	}
	if got.Cleared < least || got.Cleared > most {
		return &difference{nil, fmt.Errorf("%s: %d to %d were expected", a, least, most)}
	}
	return nil
}

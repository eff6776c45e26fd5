package rollcall

import (
	"context"
	"strconv"
	"time"
)

// Kick ends what k names; after it returns, no Verify or Touch of those
// succeeds. Of one user it is atomic. By filter it goes in steps of 500:
// sessions begun meanwhile may stay, and the result says how many ended even
// when an error cuts it short. A session that is not known is CodeNotFound; one
// that ended before is no error.
func (r *Roll) Kick(ctx context.Context, k Kick) (EndResult, error) {
	return observe(ctx, r, "kick", func() (EndResult, error) {
		setDefault(&k.Cause, CauseKicked)
		if err := k.validate(); err != nil {
			return EndResult{}, err
		}
		if k.DryRun {
			return r.countKick(ctx, k)
		}
		switch {
		case k.Filter != nil && k.Filter.Users != nil && len(k.Filter.Users) == 0:
			return EndResult{}, nil // of nobody: nothing is asked for
		case k.Filter != nil || k.All:
			return act(ctx, r, k.audit(), func() (EndResult, error) { return r.kickMatching(ctx, k) }, func(res EndResult) map[string]string {
				return map[string]string{"ended": strconv.Itoa(res.Ended)}
			})
		case k.Ban > 0:
			return act(ctx, r, banning(k.User, k.Ban), func() (EndResult, error) { return r.kickOne(ctx, k) }, nil)
		default:
			return r.kickOne(ctx, k)
		}
	})
}

// audit is the entry of a kick of many. Of what names users it has a count, or that it was
// asked for.
func (k *Kick) audit() NewAuditEntry {
	n := NewAuditEntry{Action: AuditKicked, Detail: map[string]string{"all": "true"}}
	if k.Filter != nil && !k.Filter.IsZero() {
		n.Detail = k.Filter.audit()
	}
	if k.Ban > 0 {
		n.Detail["ban"] = k.Ban.String()
	}
	return n
}

func (r *Roll) kickOne(ctx context.Context, k Kick) (EndResult, error) {
	now := r.clock.Now()
	c := EndCommand{User: k.User, Device: k.Device, Except: k.Except, Cause: k.Cause, Reason: k.Reason, Actor: k.Actor}
	if !k.Session.IsZero() {
		c.Sessions = []SessionID{k.Session}
	}
	if k.Ban > 0 {
		c.Bans = []Ban{r.newBan(now, k.User, k)}
	}
	res, err := r.engine.End(ctx, now, c)
	if err == nil && res.Ended == 0 && !k.Session.IsZero() {
		_, err = r.engine.Lookup(ctx, now, Ref{ID: k.Session}, ViewerAdmin)
	}
	return res, err
}

func (r *Roll) newBan(now time.Time, user string, k Kick) Ban {
	return Ban{User: user, Key: r.banKey(user), At: now, Until: now.Add(k.Ban), Reason: k.Reason, Actor: k.Actor}
}

// countKick answers how many sessions a kick would end.
func (r *Roll) countKick(ctx context.Context, k Kick) (EndResult, error) {
	now := r.clock.Now()
	if !k.Session.IsZero() {
		s, err := r.engine.Lookup(ctx, now, Ref{ID: k.Session}, ViewerAdmin)
		if err != nil || s.End != nil {
			return EndResult{}, err
		}
		return EndResult{Ended: 1, Sessions: []SessionID{s.ID}}, nil
	}
	if k.Ban > 0 && k.User == "" {
		return r.countBanned(ctx, k)
	}
	page, err := r.engine.List(ctx, now, k.query(101))
	if err != nil {
		return EndResult{}, err
	}
	res := EndResult{Ended: page.Total}
	for _, s := range page.Items {
		if s.ID == k.Except {
			continue
		}
		if len(res.Sessions) < 100 {
			res.Sessions = append(res.Sessions, s.ID)
		}
	}
	if !k.Except.IsZero() {
		if s, err := r.engine.Lookup(ctx, now, Ref{ID: k.Except}, ViewerAdmin); err == nil && s.End == nil && s.User == k.User {
			res.Ended--
		}
	}
	return res, nil
}

// countBanned answers how many sessions a kick by filter with a ban would end:
// all those of the users of the matches, as a ban ends whatever its user has.
func (r *Roll) countBanned(ctx context.Context, k Kick) (EndResult, error) {
	var res EndResult
	counted := make(map[uint64]struct{}) // users, by hash
	for q := k.query(kickStep); ; {
		if err := ctx.Err(); err != nil {
			return EndResult{}, &Error{Code: CodeUnavailable, Detail: "the count was cut short", Err: err}
		}
		page, err := r.engine.List(ctx, r.clock.Now(), q)
		if err != nil {
			return EndResult{}, err
		}
		of := SessionQuery{Sort: OldestLogin, Page: PageRequest{Limit: 100 - len(res.Sessions)}}
		for _, s := range page.Items {
			h := HashUser(s.User)
			if _, known := counted[h]; !known {
				counted[h] = struct{}{}
				of.Filter.Users = append(of.Filter.Users, s.User)
			}
		}
		if of.Filter.Users != nil {
			all, err := r.engine.List(ctx, r.clock.Now(), of)
			if err != nil {
				return EndResult{}, err
			}
			res.Ended += all.Total
			for _, s := range all.Items {
				res.Sessions = append(res.Sessions, s.ID)
			}
		}
		if page.Next == "" {
			return res, nil
		}
		q.Page.Cursor = page.Next
	}
}

// kickMatching walks the matches from the oldest login on, up to the newest
// there was when it began, and ends them step by step.
func (r *Roll) kickMatching(ctx context.Context, k Kick) (EndResult, error) {
	var res EndResult
	newest, found, err := r.newestMatch(ctx, k)
	if err != nil || !found {
		return res, err
	}
	q := k.query(kickStep)
	q.Filter.LoginBefore = newest.LoginAt.Add(time.Millisecond)
	for {
		if err := ctx.Err(); err != nil {
			return res, &Error{Code: CodeUnavailable, Detail: "the kick was cut short", Err: err}
		}
		now := r.clock.Now()
		page, err := r.engine.List(ctx, now, q)
		if err != nil {
			return res, err
		}
		// A page may hold none and the next one some: an engine that looks at
		// sessions one by one looks at so many for a page.
		if len(page.Items) > 0 {
			step, err := r.engine.End(ctx, now, r.kickStep(now, k, page.Items))
			res.Ended += step.Ended // also of a step that failed in part
			res.Sessions = append(res.Sessions, step.Sessions[:min(len(step.Sessions), 100-len(res.Sessions))]...)
			if err != nil {
				return res, err
			}
		}
		if page.Next == "" {
			return res, nil
		}
		q.Page.Cursor = page.Next
	}
}

// newestMatch returns the match with the newest login; false if there is none.
func (r *Roll) newestMatch(ctx context.Context, k Kick) (Session, bool, error) {
	q := k.query(1)
	q.Sort = NewestLogin
	for {
		page, err := r.engine.List(ctx, r.clock.Now(), q)
		if err != nil {
			return Session{}, false, err
		}
		if len(page.Items) > 0 {
			return page.Items[0], true, nil
		}
		if page.Next == "" {
			return Session{}, false, nil
		}
		q.Page.Cursor = page.Next
	}
}

func (r *Roll) kickStep(now time.Time, k Kick, sessions []Session) EndCommand {
	c := EndCommand{Cause: k.Cause, Reason: k.Reason, Actor: k.Actor}
	banned := make(map[string]bool)
	for _, s := range sessions {
		c.Sessions = append(c.Sessions, s.ID)
		if k.Ban > 0 && !banned[s.User] {
			banned[s.User] = true
			c.Bans = append(c.Bans, r.newBan(now, s.User, k))
		}
	}
	return c
}

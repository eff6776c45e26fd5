package rollcall

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// MaxBeatUsers is how many users one call of Beat may name.
const MaxBeatUsers = 10_000

// Beat is a sign of life of each of the users, with or without a session.
func (r *Roll) Beat(ctx context.Context, users ...string) error {
	if r.opts.Observer != nil {
		start := time.Now()
		err := r.beat(ctx, users)
		r.opts.Observer.Observe(ctx, "beat", time.Since(start), err)
		return err
	}
	return r.beat(ctx, users)
}

func (r *Roll) beat(ctx context.Context, users []string) error {
	if len(users) > MaxBeatUsers {
		return Invalid("users", "names %d users, the limit is %d", len(users), MaxBeatUsers)
	}
	for i, u := range users {
		if plainID(u) {
			continue
		}
		if err := validateUser("users", u); err != nil {
			return atIndex(err, "users", i)
		}
	}
	now := r.clock.Now()
	if err := r.engine.Beat(ctx, now, users); err != nil || r.opts.AttendanceOn != AttendOnBeat {
		return err
	}
	day := DayOf(now, r.opts.Timezone)
	marks := make([]Mark, len(users))
	for i, u := range users {
		marks[i] = Mark{User: u, Day: day}
	}
	_, _, err := r.engine.Mark(ctx, now, marks)
	return err
}

// plainID accepts the common ids, short printable ASCII, without a closer look.
func plainID(u string) bool {
	if len(u) == 0 || len(u) > MaxUserLen {
		return false
	}
	for i := range len(u) {
		if c := u[i]; c < 0x20 || c >= 0x7f {
			return false
		}
	}
	return true
}

// atIndex names the element of a list that an error is about.
func atIndex(err error, field string, i int) error {
	e, ok := err.(*Error) //nolint:errorlint // made by a validator just now
	if !ok {
		return err
	}
	out := *e
	out.Field = fmt.Sprintf("%s[%d]", field, i)
	return &out
}

func (r *Roll) checkWindow(w *time.Duration) error {
	setDefault(w, r.opts.Window)
	if *w < time.Second || *w > r.opts.Retention {
		return Invalid("window", "must be between 1s and the retention of last-seen times (%v), is %v", r.opts.Retention, *w)
	}
	return nil
}

// OnlineCount returns how many users are online for a window; 0 means the
// default window.
func (r *Roll) OnlineCount(ctx context.Context, window time.Duration) (int, error) {
	return observe(ctx, r, "online_count", func() (int, error) {
		if err := r.checkWindow(&window); err != nil {
			return 0, err
		}
		return r.engine.Count(ctx, r.clock.Now(), window, r.viewer)
	})
}

// KnownCount returns how many users have a last-seen time.
func (r *Roll) KnownCount(ctx context.Context) (int, error) {
	return observe(ctx, r, "known_count", func() (int, error) { return r.engine.CountKnown(ctx, r.clock.Now(), r.viewer) })
}

// Online lists the users online for a window, last seen first.
func (r *Roll) Online(ctx context.Context, window time.Duration, p PageRequest) (Page[Seen], error) {
	return observe(ctx, r, "online", func() (Page[Seen], error) {
		if err := r.checkWindow(&window); err != nil {
			return Page[Seen]{}, err
		}
		bound := fmt.Sprintf("online %d %d", window, r.viewer)
		p, err := r.openPage(p, bound, true)
		if err != nil {
			return Page[Seen]{}, err
		}
		page, err := r.engine.Online(ctx, r.clock.Now(), window, p, r.viewer)
		return sealPage(r, page, bound), err
	})
}

// KnownUsers lists the users who have a last-seen time, last seen first: those
// online for any window, and those who are gone.
func (r *Roll) KnownUsers(ctx context.Context, p PageRequest) (Page[Seen], error) {
	return observe(ctx, r, "known", func() (Page[Seen], error) {
		bound := fmt.Sprintf("known %d", r.viewer)
		p, err := r.openPage(p, bound, true)
		if err != nil {
			return Page[Seen]{}, err
		}
		page, err := r.engine.KnownUsers(ctx, r.clock.Now(), p, r.viewer)
		return sealPage(r, page, bound), err
	})
}

// Status answers for up to 1,000 users, in the order asked, for the default
// window.
func (r *Roll) Status(ctx context.Context, users ...string) ([]Status, error) {
	return observe(ctx, r, "status", func() ([]Status, error) {
		if len(users) > MaxQueryUsers {
			return nil, Invalid("users", "names %d users, the limit is %d", len(users), MaxQueryUsers)
		}
		for i, u := range users {
			if err := validateUser("users", u); err != nil {
				return nil, atIndex(err, "users", i)
			}
		}
		return r.engine.Status(ctx, r.clock.Now(), r.opts.Window, users, r.viewer)
	})
}

// LastSeen returns when a user was last seen and how long ago that is;
// CodeNotFound if no sign of life is kept.
func (r *Roll) LastSeen(ctx context.Context, user string) (time.Time, time.Duration, error) {
	s, err := r.Status(ctx, user)
	if err != nil {
		return time.Time{}, 0, err
	}
	if s[0].LastSeen.IsZero() {
		return time.Time{}, 0, NotFound("sign of life of this user")
	}
	return s[0].LastSeen, max(0, r.clock.Now().Truncate(time.Second).Sub(s[0].LastSeen)), nil
}

// ClearPresence forgets users last seen longer ago than olderThan and returns
// how many those were.
func (r *Roll) ClearPresence(ctx context.Context, olderThan time.Duration) (int, error) {
	return observe(ctx, r, "clear", func() (int, error) {
		if olderThan < 0 || olderThan > maxPolicyDuration {
			return 0, Invalid("older_than", "must be between 0 and 10 years, is %v", olderThan)
		}
		n := NewAuditEntry{Action: AuditCleared, Detail: map[string]string{"older_than": olderThan.String()}}
		return act(ctx, r, n, func() (int, error) {
			now := r.clock.Now()
			return r.engine.Clear(ctx, now, now.Add(-olderThan))
		}, func(users int) map[string]string { return map[string]string{"users": strconv.Itoa(users)} })
	})
}

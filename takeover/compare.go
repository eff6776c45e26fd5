package takeover

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// Comparison says how far both sides agree.
type Comparison struct {
	Compared    int64        `json:"compared"` // entries that were looked at on both sides
	Moved       int64        `json:"moved"`    // entries whose time here is up to a minute later, as they were entered as of then
	Passed      int64        `json:"passed"`   // entries that rightly are not here: dead, too old, refused
	Differences int64        `json:"differences"`
	First       []Difference `json:"first"` // the first 100
}

// Difference is one entry on which both sides do not agree.
type Difference struct {
	Entry  string `json:"entry"`
	Old    string `json:"old"`
	Here   string `json:"here"`
	Reason string `json:"reason"`
}

// shownDifferences bounds how many differences are listed.
const shownDifferences = 100

func (c *Comparison) differ(entry, old, here, reason string) {
	c.Differences++
	if len(c.First) < shownDifferences {
		c.First = append(c.First, Difference{visible(entry), old, here, reason})
	}
}

// Compare looks at each entry of the old system on both sides, a portion at a time, and at
// what is here alone. It changes nothing. While the old system is written to, what
// changes meanwhile differs.
func (m *Importer) Compare(ctx context.Context) (Comparison, error) {
	c := Comparison{First: []Difference{}}
	var err error
	switch m.opts.Layout {
	case OnlineZset:
		err = m.compareOnline(ctx, &c)
	case LastSeenZset, HeartbeatZset:
		err = m.compareSeen(ctx, &c)
	case LoginBitmaps:
		err = m.compareDays(ctx, &c)
	case MinuteSets:
		err = m.compareMinutes(ctx, &c)
	}
	if err == nil && m.names.friends != nil {
		err = m.compareFriends(ctx, &c)
	}
	return c, err
}

// compareSeen compares last-seen times, both ways.
func (m *Importer) compareSeen(ctx context.Context, c *Comparison) error {
	err := m.src.walkZset(ctx, m.names.key, 0, func(some []member, _ uint64) error {
		list := make([]lastSeen, 0, len(some))
		for _, z := range some {
			at, ok := m.opts.Unit.instant(z.score)
			now := m.opts.Now()
			if !ok || at.After(now) || checkUser(z.name) != nil || at.Before(now.Add(-m.opts.Retention)) {
				c.Passed++
				continue
			}
			list = append(list, lastSeen{user: z.name, at: second(at)})
		}
		return m.compareTimes(ctx, c, list, true)
	})
	if err != nil {
		return err
	}

	// Who is known here alone.
	return pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) { return m.to.KnownUsers(ctx, p) }, func(list []rollcall.Seen) error {
		for some := range slices.Chunk(list, portion) {
			users := make([]string, len(some))
			for i := range some {
				users[i] = some[i].User
			}
			_, there, err := m.src.scores(ctx, m.names.key, users)
			if err != nil {
				return err
			}
			for i := range some {
				if !there[i] {
					c.differ(some[i].User, "unknown", some[i].LastSeen.Format(time.RFC3339), "known here alone")
				}
			}
		}
		return nil
	})
}

// compareTimes compares the last-seen times of users. Of a minute set only the earliest that a
// time may be is known: it is not exact.
func (m *Importer) compareTimes(ctx context.Context, c *Comparison, list []lastSeen, exact bool) error {
	for some := range slices.Chunk(list, portion) {
		users := make([]string, len(some))
		for i := range some {
			users[i] = some[i].user
		}
		here, err := m.to.Status(ctx, users...)
		if err != nil {
			return err
		}
		for i, l := range some {
			c.Compared++
			at := here[i].LastSeen
			old, text := l.at.Format(time.RFC3339), at.Format(time.RFC3339)
			switch {
			case at.IsZero():
				c.differ(l.user, old, "unknown", "not seen here")
			case at.Equal(l.at) || !exact && at.After(l.at):
			case at.Before(l.at):
				c.differ(l.user, old, text, "seen later in the old system")
			case at.Sub(l.at) <= fresh:
				c.Moved++
			default:
				c.differ(l.user, old, text, "seen later here")
			}
		}
	}
	return nil
}

// compareMinutes expects who is in the sets of the last ten minutes to have been seen here
// then, or later.
func (m *Importer) compareMinutes(ctx context.Context, c *Comparison) error {
	now := m.opts.Now().Truncate(time.Minute)
	for i := range union {
		at := now.Add(-time.Duration(i) * time.Minute)
		key := m.names.family.key(map[string]string{"minute": fmt.Sprintf("%02d", at.Minute())})
		ttl, err := m.src.number(ctx, m.src.client.B().Ttl().Key(key).Build())
		if err != nil {
			return err
		}
		if ttl == -1 { // it may be hours old
			n, err := m.sizeOfSet(ctx, key)
			if err != nil {
				return err
			}
			c.Passed += n
			continue
		}
		err = m.walkSet(ctx, key, func(users []string) error {
			list := make([]lastSeen, 0, len(users))
			for _, user := range users {
				if checkUser(user) != nil {
					c.Passed++
					continue
				}
				list = append(list, lastSeen{user: user, at: at})
			}
			return m.compareTimes(ctx, c, list, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compareOnline compares entries of an online list with sessions, both ways.
func (m *Importer) compareOnline(ctx context.Context, c *Comparison) error {
	err := m.src.walkZset(ctx, m.names.key, 0, func(some []member, _ uint64) error {
		before := m.summary.Dead + m.summary.Refused
		byUser, err := m.sessionsOf(ctx, some)
		if err != nil {
			return err
		}
		c.Passed += m.summary.Dead + m.summary.Refused - before
		read := make(map[string]bool, len(some))
		for _, z := range some {
			read[z.name] = true
		}
		var live []oldSession
		for _, sessions := range byUser {
			live = append(live, slices.DeleteFunc(sessions, func(s oldSession) bool { return !read[s.member] })...)
		}
		return m.compareSessions(ctx, c, live)
	})
	if err != nil {
		return err
	}

	// Imported sessions that are no longer in the old list.
	return pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
		return m.to.Sessions(ctx, rollcall.SessionQuery{Page: p})
	}, func(list []rollcall.Session) error {
		gone, err := m.goneOf(ctx, list)
		for _, s := range gone {
			c.differ(s.Attrs[attrOrigin], "gone", s.ID.String(), "a session here alone")
		}
		return err
	})
}

// compareSessions looks for the sessions that entries became.
func (m *Importer) compareSessions(ctx context.Context, c *Comparison, list []oldSession) error {
	for some := range slices.Chunk(list, portion) {
		users := make([]string, len(some))
		for i := range some {
			users[i] = some[i].user
		}
		here, own := make(map[string]rollcall.Session, len(some)), make(map[string]rollcall.Session)
		query := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: users}}
		err := pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
			query.Page = p
			return m.to.Sessions(ctx, query)
		}, func(list []rollcall.Session) error {
			for _, s := range list {
				if s.Attrs[attrLogin] != "" {
					here[s.Attrs[attrOrigin]] = s
				} else {
					own[nameWrittenBack(s)], own[s.User] = s, s
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, old := range some {
			c.Compared++
			s, found := here[old.member]
			text := old.login.Format(time.RFC3339Nano)
			switch {
			case !found && old.isOf(own[old.member]):
			case !found:
				c.differ(old.member, text, "no session", "not logged in here")
			case s.Attrs[attrLogin] != old.scoreText():
				c.differ(old.member, text, s.LoginAt.Format(time.RFC3339Nano), "logged in again in the old system")
			case !s.LoginAt.Equal(old.login):
				c.Moved++
			}
		}
	}
	return nil
}

// compareFriends compares each list, with its times if the old one has them.
func (m *Importer) compareFriends(ctx context.Context, c *Comparison) error {
	return m.src.walkKeys(ctx, m.names.friends.glob(nil), position{}, func(keys []string, _ position) error {
		kinds, err := m.src.kinds(ctx, keys)
		if err != nil {
			return err
		}
		for i, key := range keys {
			values, ok := m.names.friends.match(key)
			if !ok {
				continue
			}
			before := m.summary.Refused
			old, err := m.friendsOf(ctx, key, kinds[i], values["user"])
			if err != nil {
				return err
			}
			if old == nil || checkUser(values["user"]) != nil {
				c.Passed++
				continue
			}
			c.Passed += m.summary.Refused - before
			var here []rollcall.FriendStatus
			err = pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
				return m.to.Friends(ctx, values["user"], p)
			}, func(list []rollcall.FriendStatus) error {
				here = append(here, list...)
				return nil
			})
			if err != nil {
				return err
			}
			slices.SortFunc(here, func(a, b rollcall.FriendStatus) int { return compareText(a.User, b.User) })
			c.Compared++
			same := slices.EqualFunc(old, here, func(a rollcall.Friend, b rollcall.FriendStatus) bool {
				return a.User == b.User && (a.Since.IsZero() || a.Since.Equal(b.Since))
			})
			if !same {
				c.differ(key, plural(len(old), "friend"), plural(len(here), "friend"), "another list of friends")
			}
		}
		return nil
	})
}

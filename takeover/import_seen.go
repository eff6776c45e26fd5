package takeover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// lastSeen is when a user was last seen in the old system.
type lastSeen struct {
	user   string
	at     time.Time
	within time.Duration // how much later it may have been
}

// enterSeen enters members of a sorted set of last-seen times.
func (m *Importer) enterSeen(ctx context.Context, some []member) error {
	list := make([]lastSeen, 0, len(some))
	for _, z := range some {
		at, ok := m.instant(z.score)
		switch {
		case !ok:
			m.refuse(z.name, errors.New("its score is no time"))
		case at.Before(m.opts.Now().Add(-m.opts.Retention)):
			m.summary.Dead++
		default:
			list = append(list, lastSeen{user: z.name, at: second(at)})
		}
	}
	return m.see(ctx, list)
}

// see enters last-seen times: of users of whom nothing is known with their own time, of
// others by a beat, if it is not long ago.
func (m *Importer) see(ctx context.Context, list []lastSeen) error {
	for some := range slices.Chunk(m.latestByRank(list), portion) {
		users := make([]string, len(some))
		for i := range some {
			users[i] = some[i].user
		}
		here, err := m.to.Status(ctx, users...)
		if err != nil {
			return err
		}
		var unknown []rollcall.UserSnapshot
		var beats []string
		late := func(l lastSeen, known time.Time) {
			switch now := m.opts.Now(); {
			case !known.Before(l.at):
				m.summary.Already++
			case now.Sub(l.at) > fresh+l.within:
				m.summary.Behind++
			default:
				beats = append(beats, l.user)
			}
		}
		at := make(map[string]lastSeen, len(some))
		for i, l := range some {
			if at[l.user] = l; here[i].LastSeen.IsZero() && here[i].Sessions == 0 {
				unknown = append(unknown, rollcall.UserSnapshot{User: l.user, LastSeen: l.at})
			} else {
				late(l, here[i].LastSeen)
			}
		}
		if m.past == nil { // it follows over HTTP
			for i := range unknown {
				late(at[unknown[i].User], time.Time{})
			}
			unknown = nil
		}
		err = m.enterAll(ctx, unknown, func(d *rollcall.UserSnapshot) error {
			late(at[d.User], time.Time{}) // friends or days of theirs are here
			return nil
		})
		if err == nil && len(beats) > 0 {
			err = m.to.Beat(ctx, beats...)
			m.summary.Moved += int64(len(beats))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// latestByRank returns the latest time of each user whose id Rollcall takes, in the order of
// their rank.
func (m *Importer) latestByRank(list []lastSeen) []lastSeen {
	latest := make(map[string]lastSeen, len(list))
	users := make([]string, 0, len(list))
	for _, l := range list {
		if err := checkUser(l.user); err != nil {
			m.refuse(l.user, err)
			continue
		}
		if known, ok := latest[l.user]; ok && !known.at.Before(l.at) {
			continue
		}
		latest[l.user] = l
		users = append(users, l.user)
	}
	out := make([]lastSeen, 0, len(users))
	for _, user := range byRank(users) {
		out = append(out, latest[user])
	}
	return out
}

// lookedMinutes is how many sets of minutes a look reads.
const lookedMinutes = 2

// readMinutes reads the sets of the last minutes, newest first. A set without an expiry may
// be hours old, and is passed over.
func (m *Importer) readMinutes(ctx context.Context, minutes int) error {
	if minutes > lookedMinutes {
		m.looked = m.opts.Now()
	}
	now := m.opts.Now().Truncate(time.Minute)
	for i := range minutes {
		at := now.Add(-time.Duration(i) * time.Minute)
		key := m.names.family.key(map[string]string{"minute": fmt.Sprintf("%02d", at.Minute())})
		ttl, err := m.src.number(ctx, m.src.client.B().Ttl().Key(key).Build())
		if err != nil {
			return err
		}
		if ttl == -1 { // no expiry
			n, err := m.sizeOfSet(ctx, key)
			if err != nil {
				return err
			}
			m.summary.Dead += n
			continue
		}
		var gathered []lastSeen
		err = m.walkSet(ctx, key, func(users []string) error {
			m.read(len(users))
			for _, user := range users {
				gathered = append(gathered, lastSeen{user, at, time.Minute})
			}
			if len(gathered) < window {
				return nil
			}
			err := m.see(ctx, gathered)
			gathered = gathered[:0]
			if minutes <= lookedMinutes || err != nil {
				return err
			}
			return m.meanwhile(ctx)
		})
		if err == nil {
			err = m.see(ctx, gathered)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walkSet shows visit the members of a set, and refuses a key of another type.
func (m *Importer) walkSet(ctx context.Context, key string, visit func([]string) error) error {
	err := m.src.walkSet(ctx, key, visit)
	if wrongType(err) {
		m.refuse(key, errNoSet)
		return nil
	}
	return err
}

func (m *Importer) sizeOfSet(ctx context.Context, key string) (int64, error) {
	n, err := m.src.number(ctx, m.src.client.B().Scard().Key(key).Build())
	if wrongType(err) {
		m.refuse(key, errNoSet)
		return 0, nil
	}
	return n, err
}

// refuseSet refuses those of some keys that are no sets.
func (m *Importer) refuseSet(keys []string) func(int) {
	return func(i int) { m.refuse(keys[i], errNoSet) }
}

var errNoSet = errors.New("it is no set")

package takeover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// compareFunc is how a question compares both sides.
type compareFunc = func(context.Context, *question, string) (*differing, error)

// missing reports whether a count falls short of the least that it may be, by more than who may
// have come and gone between the two questions: by one in a hundred.
func missing(count, least int64) bool { return least-count > max(2, least/100) }

// shadowCount asks how many are online. Here it may be more: times ahead are those of the import,
// and who was followed may have been seen a minute later.
func (m *Importer) shadowCount(to Answers) compareFunc {
	return func(ctx context.Context, q *question, key string) (*differing, error) {
		var least, most int64
		var here int
		now := m.opts.Now()
		err := q.ask(func() (err error) {
			least, err = m.seenBetween(ctx, key, now.Add(-shadowWindow), now)
			return err
		}, func() (err error) {
			here, err = to.OnlineCount(ctx, shadowWindow)
			return err
		})
		if err == nil {
			most, err = m.seenBetween(ctx, key, now.Add(-shadowWindow-shadowSlack), time.UnixMilli(lastMilliseconds))
		}
		if err != nil || !missing(int64(here), least) && !missing(most, int64(here)) {
			return nil, err
		}
		return &differing{old: strconv.FormatInt(least, 10), here: strconv.Itoa(here)}, nil
	}
}

// seenBetween counts the members of the sorted set with times between two, in either unit.
func (m *Importer) seenBetween(ctx context.Context, key string, from, to time.Time) (sum int64, err error) {
	for _, unit := range []Unit{UnitSeconds, UnitMilliseconds} {
		least, most := unit.score(from), unit.score(to)
		if unit == UnitSeconds {
			most = float64(firstMilliseconds - 1)
		}
		c := m.src.client.B().Zcount().Key(key).Min(strconv.FormatFloat(least, 'f', 0, 64)).Max(strconv.FormatFloat(most, 'f', 0, 64)).Build()
		n, err := m.src.number(ctx, c)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// shadowSeen asks when a user was last seen.
func (m *Importer) shadowSeen(ctx context.Context, q *question, user string) (*differing, error) {
	if !isUser(user) {
		return nil, nil //nolint:nilnil // they agree
	}
	var z member
	var found bool
	var here []rollcall.Status
	err := q.ask(func() (err error) {
		z, found, err = m.memberOf(ctx, user)
		return err
	}, func() (err error) {
		here, err = m.to.Status(ctx, user)
		return err
	})
	at, ok := m.opts.Unit.instant(z.score)
	now := m.opts.Now()
	if err != nil || !found || !ok || at.After(now) || at.Before(now.Add(-m.opts.Retention)) {
		return nil, err // it is rightly not here
	}
	if here[0].LastSeen.Sub(at).Abs() <= shadowSlack {
		return nil, nil //nolint:nilnil // they agree
	}
	old := at.Format(time.RFC3339)
	return &differing{old: old, here: timeText(here[0].LastSeen), same: old}, nil
}

// timeText is a time that may not be known.
func timeText(at time.Time) string {
	if at.IsZero() {
		return "unknown"
	}
	return at.Format(time.RFC3339)
}

// minuteKey is the set of a minute.
type minuteKey struct {
	at  time.Time // its beginning
	key string
}

// minuteKeys returns those sets of the last ten minutes that are there, newest first. One
// without an expiry may be hours old, and is left out.
func (m *Importer) minuteKeys(ctx context.Context) ([]minuteKey, error) {
	now := m.opts.Now().Truncate(time.Minute)
	var out []minuteKey
	for i := range union {
		at := now.Add(-time.Duration(i) * time.Minute)
		key := m.names.family.key(map[string]string{"minute": fmt.Sprintf("%02d", at.Minute())})
		ttl, err := m.src.number(ctx, m.src.client.B().Ttl().Key(key).Build())
		if err != nil {
			return nil, err
		}
		if ttl >= 0 {
			out = append(out, minuteKey{at, key})
		}
	}
	return out, nil
}

// mostOfUnion bounds the sets whose union Redis is asked to make, which it does in one go.
const mostOfUnion = 20_000

// shadowUnion asks how many are online by the union of the sets, where these are small.
func (m *Importer) shadowUnion(to Answers) compareFunc {
	return func(ctx context.Context, q *question, _ string) (*differing, error) {
		sets, err := m.minuteKeys(ctx)
		if err != nil || len(sets) == 0 {
			return nil, err
		}
		keys, sum := make([]string, len(sets)), int64(0)
		for i, set := range sets {
			keys[i] = set.key
			n, err := m.sizeOfSet(ctx, set.key)
			if err != nil {
				return nil, err
			}
			sum += n
		}
		if sum > mostOfUnion {
			return nil, nil //nolint:nilnil // it is not asked
		}
		// Here times are those of the beginnings of minutes, or up to a minute after their ends.
		now := m.opts.Now()
		first := now.Sub(now.Truncate(time.Minute).Add(-(union - 1) * time.Minute)).Truncate(time.Second)
		var old, least, most int
		err = q.ask(func() error {
			answer, err := m.src.do(ctx, int(sum), m.src.client.B().Sunion().Key(keys...).Build())
			if err != nil {
				return err
			}
			users, err := answer.AsStrSlice()
			old = len(users)
			return m.src.readError(err)
		}, func() (err error) {
			most, err = to.OnlineCount(ctx, first+time.Second)
			return err
		})
		if err == nil {
			least, err = to.OnlineCount(ctx, first-time.Minute-shadowSlack)
		}
		if err != nil || !missing(int64(most), int64(old)) && !missing(int64(old), int64(least)) {
			return nil, err
		}
		return &differing{old: strconv.Itoa(old), here: strconv.Itoa(most)}, nil
	}
}

// someOfMinutes returns a user of one of the sets at random.
func (m *Importer) someOfMinutes(ctx context.Context) ([]string, error) {
	sets, err := m.minuteKeys(ctx)
	if err != nil || len(sets) == 0 {
		return nil, err
	}
	set := sets[rand.IntN(len(sets))] //nolint:gosec // nobody gains by guessing
	answer, err := m.src.do(ctx, 1, m.src.client.B().Srandmember().Key(set.key).Count(1).Build())
	if wrongType(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	users, err := answer.AsStrSlice()
	return users, m.src.readError(err)
}

// inMinutes returns the beginning of the latest of the last ten minutes in whose set users are;
// zero for those who are in none.
func (m *Importer) inMinutes(ctx context.Context, users []string) ([]time.Time, error) {
	sets, err := m.minuteKeys(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]time.Time, len(users))
	for _, set := range sets {
		answer, err := m.src.do(ctx, len(users), m.src.client.B().Smismember().Key(set.key).Member(users...).Build())
		if wrongType(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		in, err := answer.AsIntSlice()
		if err != nil || len(in) != len(users) {
			return nil, m.src.readError(err)
		}
		for i := range users {
			if in[i] == 1 && out[i].IsZero() {
				out[i] = set.at
			}
		}
	}
	return out, nil
}

// shadowMinutes asks in which minute a user was seen last.
func (m *Importer) shadowMinutes(ctx context.Context, q *question, user string) (*differing, error) {
	if !isUser(user) {
		return nil, nil //nolint:nilnil // they agree
	}
	var old []time.Time
	var here []rollcall.Status
	err := q.ask(func() (err error) {
		old, err = m.inMinutes(ctx, []string{user})
		return err
	}, func() (err error) {
		here, err = m.to.Status(ctx, user)
		return err
	})
	if err != nil || old[0].IsZero() {
		return nil, err // their minutes are over
	}
	at, seen := old[0], here[0].LastSeen
	if !seen.Before(at) && seen.Sub(at) <= time.Minute+shadowSlack {
		return nil, nil //nolint:nilnil // they agree
	}
	text := at.Format(time.RFC3339)
	return &differing{old: text, here: timeText(seen), same: text}, nil
}

// isUser reports whether Rollcall takes an id.
func isUser(id string) bool { return checkUser(id) == nil }

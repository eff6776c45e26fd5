package takeover

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rollcall/rollcall"
)

// oldFriends is what the old system tells of a user's friends.
type oldFriends struct {
	all map[string]bool
	// seen has the times of some of them, of whom each lies between its time and exact later;
	// zero for who was not seen.
	seen  map[string]time.Time
	exact time.Duration
}

// shadowFriends asks which friends of a user are online.
func (m *Importer) shadowFriends(to Answers) compareFunc {
	window := shadowWindow
	if m.opts.Layout == MinuteSets {
		window = union * time.Minute
	}
	return func(ctx context.Context, q *question, key string) (*differing, error) {
		values, _ := m.names.friends.match(key)
		user := values["user"]
		if !isUser(user) {
			return nil, nil //nolint:nilnil // it is rightly not here
		}
		var old oldFriends
		here := make(map[string]time.Time)
		began := m.opts.Now()
		err := q.ask(func() (err error) {
			old, err = m.friendsSeen(ctx, key, user)
			return err
		}, func() error {
			return pages(func(p rollcall.PageRequest) (rollcall.Page[rollcall.FriendStatus], error) {
				return to.OnlineFriends(ctx, rollcall.FriendQuery{User: user, Window: window, Page: p})
			}, func(list []rollcall.FriendStatus) error {
				for _, f := range list {
					here[f.User] = f.LastSeen
				}
				return nil
			})
		})
		if err != nil || old.all == nil {
			return nil, err
		}
		return old.differ(here, began.Add(-window), m.opts.Now().Add(-window)), nil
	}
}

// friendsSeen reads a list of friends, and of some of them when they were seen.
func (m *Importer) friendsSeen(ctx context.Context, key, user string) (out oldFriends, err error) {
	kind, err := m.src.kind(ctx, key)
	if err != nil {
		return out, err
	}
	list, err := m.friendsOf(ctx, key, kind, user)
	if err != nil || list == nil {
		return out, err
	}
	out.all, out.seen = make(map[string]bool, len(list)), make(map[string]time.Time)
	for _, f := range list {
		out.all[f.User] = true
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	some := make([]string, min(len(list), portion))
	for i := range some {
		some[i] = list[i].User
	}
	if len(some) == 0 {
		return out, nil
	}
	if m.opts.Layout == MinuteSets {
		out.exact = time.Minute
		times, err := m.inMinutes(ctx, some)
		for i := range times {
			out.seen[some[i]] = times[i]
		}
		return out, err
	}
	scores, there, err := m.src.scores(ctx, m.names.key, some)
	for i := range scores {
		at, ok := m.opts.Unit.instant(scores[i])
		switch {
		case !there[i] || !ok:
			out.seen[some[i]] = time.Time{}
		case at.After(m.opts.Now()): // it counts as a time of the import here
		default:
			out.seen[some[i]] = second(at)
		}
	}
	return out, err
}

// differ compares with who is online here: since an instant between first and last, when the
// window begins. Who was followed may have been seen up to a minute later here, so near it both
// may be right.
func (o *oldFriends) differ(here map[string]time.Time, first, last time.Time) *differing {
	for user, at := range here {
		if !o.all[user] {
			return &differing{old: user + " is no friend", here: user + " " + timeText(at), same: user}
		}
	}
	for user, at := range o.seen {
		_, online := here[user]
		text := user + " " + timeText(at)
		switch {
		case !online && at.After(last.Add(time.Second)):
			return &differing{old: text, here: user + " is not online", same: text}
		case online && at.Add(o.exact+shadowSlack).Before(first):
			return &differing{old: text, here: user + " " + timeText(here[user]), same: text}
		}
	}
	return nil
}

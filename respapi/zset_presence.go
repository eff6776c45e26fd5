package respapi

import (
	"time"

	"github.com/rollcall/rollcall"
)

// presenceSet is users by when they were last seen. Seconds are what is kept: a range of
// milliseconds stands for the seconds it touches.
type presenceSet struct {
	c *conn
	b *binding
}

// deepest is how far from the newest user a list may reach: what pages by number serve.
const deepest = rollcall.MaxMovingPages * rollcall.MaxLimit

func (s presenceSet) count(r scores) (int, error) {
	r = r.seconds(s.b.unit)
	since, err := s.since(r.least)
	if err != nil || r.most >= s.c.now.Unix() {
		return since, err
	}
	newer, err := s.since(r.most + 1)
	return max(0, since-newer), err
}

// since counts who was seen in a second or later.
func (s presenceSet) since(second int64) (int, error) {
	window := s.c.now.Unix() - second
	switch {
	case window < 0:
		return 0, nil
	case s.beyond(window):
		return s.c.roll.KnownCount(s.c.ctx)
	case window > 0:
		return s.c.roll.OnlineCount(s.c.ctx, time.Duration(window)*time.Second)
	}
	// Windows begin at a second before: those of this very second are looked at.
	n := 0
	err := s.walk(1, 0, deepest, func(seen rollcall.Seen) bool {
		if seen.LastSeen.Unix() < second {
			return false
		}
		n++
		return true
	})
	return n, err
}

// beyond reports whether a window is longer than last-seen times are kept: then all users
// known are in it.
func (s presenceSet) beyond(window int64) bool {
	return window > int64(s.c.l.opts.Retention/time.Second)
}

// walk calls visit for users of a window, newest first, from a place on.
func (s presenceSet) walk(window int64, from, n int, visit func(rollcall.Seen) bool) error {
	p := rollcall.PageRequest{Limit: rollcall.MaxLimit, Number: from/rollcall.MaxLimit + 1}
	skip := from % rollcall.MaxLimit
	for {
		page, err := s.page(window, p)
		if err != nil {
			return err
		}
		for _, seen := range page.Items[min(skip, len(page.Items)):] {
			if n == 0 || !visit(seen) {
				return nil
			}
			n--
		}
		if page.Next == "" || n == 0 {
			return nil
		}
		skip, p.Number, p.Cursor = 0, 0, page.Next
	}
}

func (s presenceSet) page(window int64, p rollcall.PageRequest) (rollcall.Page[rollcall.Seen], error) {
	if s.beyond(window) {
		return s.c.roll.KnownUsers(s.c.ctx, p)
	}
	return s.c.roll.Online(s.c.ctx, time.Duration(max(window, 1))*time.Second, p)
}

func (s presenceSet) list(of scores, rev bool, from, n int) ([]entry, error) {
	r := of.seconds(s.b.unit)
	// Places are counted from the newest user on, whatever the order of the answer.
	if !rev {
		total, err := s.count(of)
		if err != nil {
			return nil, err
		}
		from = max(0, total-from-n)
	}
	skip := 0
	if r.most < s.c.now.Unix() {
		newer, err := s.since(r.most + 1)
		if err != nil {
			return nil, err
		}
		if from += newer; rev && s.beyond(s.c.now.Unix()-r.least) {
			// The list of all known has those too who were seen since and are gone. How
			// many is not known, so places are counted behind them.
			from, skip = newer, from-newer
		}
	}
	if from+skip+n > deepest {
		return nil, &rollcall.Error{Code: rollcall.CodeTooLarge, Detail: "this part of the list lies more than 100,000 users behind the newest: GET /v1/online goes there by cursor"}
	}
	var out []entry
	places := n
	if rev {
		places = deepest - from
	}
	err := s.walk(s.c.now.Unix()-r.least, from, places, func(seen rollcall.Seen) bool {
		switch at := seen.LastSeen.Unix(); {
		case at < r.least || at > r.most:
		case skip > 0:
			skip--
		default:
			out = append(out, entry{seen.User, float64(at * s.b.unit)})
		}
		return len(out) < n
	})
	return arrange(out, rev), err
}

func (s presenceSet) score(member string) (float64, bool, error) {
	status, err := s.c.roll.Status(s.c.ctx, member)
	if err != nil || status[0].LastSeen.IsZero() {
		return 0, false, err
	}
	return float64(status[0].LastSeen.Unix() * s.b.unit), true, nil
}

// lastSeen is ZSCORE on presence, without an allocation.
func (c *conn) lastSeen(b *binding, user []byte) {
	c.one = append(c.one[:0], c.beats.keep(user))
	status, err := c.roll.Status(c.ctx, c.one...)
	switch {
	case err != nil:
		c.failWith(err)
	case status[0].LastSeen.IsZero():
		c.null()
	default:
		c.reply.score(float64(status[0].LastSeen.Unix() * b.unit))
	}
}

// clearPresence forgets who was last seen up to the end of a range, which has to begin with
// the oldest.
func (c *conn) clearPresence(b *binding, r scores) {
	if r.empty() {
		c.int(0)
		return
	}
	r = r.seconds(b.unit)
	if r.least > 0 {
		c.failWith(rollcall.Invalid("min", "must be 0 or -inf: only those who were seen longest ago can be forgotten"))
		return
	}
	age := max(0, c.l.roll.Now().Unix()-r.most-1)
	n, err := c.l.roll.ClearPresence(c.acting, time.Duration(min(age, 10*365*24*3600))*time.Second)
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(n)
}

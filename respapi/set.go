package respapi

import (
	"slices"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// maxUnion is how many keys SUNION takes: the minutes of a day.
const maxUnion = 1440

// takeSAdd is SADD key member [member …]. In the set of the present minute it is a sign of
// life that may wait for others.
func takeSAdd(c *conn, args [][]byte) {
	b, n := c.l.opts.Dialect.find(args[1])
	var err error
	if b != nil && b.means == MinuteSet {
		var at time.Time
		if at, err = c.minute(n.minute); err == nil {
			err = c.presentMinute(at)
		}
		if err == nil {
			c.beatRoom(len(args)-2, minuteUsers)
			for _, user := range args[2:] {
				c.beats.users = append(c.beats.users, c.beats.keep(user))
			}
			c.await(minuteUsers)
			return
		}
	}
	c.alone(func() {
		switch {
		case b == nil:
			c.unbound(args[1])
		case b.kind() != "set":
			c.wrongType(b)
		case err != nil:
			c.failWith(err)
		default:
			friends := make([]rollcall.Friend, len(args)-2)
			for i, friend := range args[2:] {
				friends[i].User = string(friend)
			}
			c.befriend(string(n.user), friends)
		}
	})
}

func cmdSRem(c *conn, args [][]byte) {
	b, n := c.bound(args[1], "set")
	switch {
	case b == nil:
	case b.means == Friends:
		c.removeFriends(string(n.user), args[2:])
	default:
		c.failWith(rollcall.Invalid("SREM", "who was heard in a minute was heard: presence ends by silence, or with the user's last session"))
	}
}

// minute returns when the minute of a key began: 05 is the latest fifth minute of an hour,
// 1205 the latest such time of day, and 201710201205 that of a date, in the time zone.
func (c *conn) minute(text []byte) (time.Time, error) {
	zone := c.l.roll.Timezone()
	now := c.now.In(zone).Truncate(time.Minute)
	v, err := strconv.Atoi(string(text))
	if err != nil || v < 0 || len(text) > 12 {
		return now, badMinute(text)
	}
	year, month, day := now.Date()
	switch {
	case len(text) <= 2 && v < 60:
		back := (now.Minute() - v + 60) % 60
		if back == 59 { // the client's clock is a little ahead
			back = -1
		}
		return now.Add(-time.Duration(back) * time.Minute), nil
	case len(text) == 4 && v/100 < 24 && v%100 < 60:
		at := time.Date(year, month, day, v/100, v%100, 0, 0, zone)
		if at.After(now.Add(time.Minute)) {
			at = time.Date(year, month, day-1, v/100, v%100, 0, 0, zone)
		}
		return at, nil
	case len(text) == 12:
		at, err := time.ParseInLocation("200601021504", string(text), zone)
		if err != nil {
			return now, badMinute(text)
		}
		return at, nil
	default:
		return now, badMinute(text)
	}
}

func badMinute(text []byte) error {
	return rollcall.Invalid("minute", "%q is no minute: 05, 1205 or 201710201205", clip(text))
}

// presentMinute refuses minutes that are not about now.
func (c *conn) presentMinute(at time.Time) error {
	if from, to := at.Add(-maxSkew*time.Second), at.Add(time.Minute+maxSkew*time.Second); !c.now.Before(from) && c.now.Before(to) {
		return nil
	}
	return rollcall.Invalid("minute", "is not the present one: a client's clock decides nothing")
}

// since reads keys of minutes as the question who was seen since the first of them, and returns
// the second in which that began. They have to lead up to now without a gap: who was seen in
// a minute that is over and again later is not kept under that minute.
func (c *conn) since(minutes []time.Time) (int64, error) {
	slices.SortFunc(minutes, time.Time.Compare)
	minutes = slices.Compact(minutes)
	for i := 1; i < len(minutes); i++ {
		if minutes[i].Sub(minutes[i-1]) > time.Minute {
			return 0, rollcall.Invalid("key", "the minutes have a gap before %s: name those up to now, or ask ONLINE.LIST", minutes[i].Format("15:04"))
		}
	}
	if err := c.presentMinute(minutes[len(minutes)-1]); err != nil {
		return 0, rollcall.Invalid("key", "a minute that is over is known together with all since then only: name those up to now, or ask ONLINE.LIST")
	}
	return min(minutes[0].Unix(), c.now.Unix()), nil // the client's clock may be ahead
}

// everyone is all users by when they were last seen, for those who ask in seconds.
func (c *conn) everyone() presenceSet { return presenceSet{c, &binding{unit: 1}} }

// seenSince returns all users seen in a second or later.
func (c *conn) seenSince(second int64) ([]string, error) {
	n, err := c.everyone().since(second)
	if err != nil {
		return nil, err
	}
	if n > maxReply {
		return nil, tooMany(n)
	}
	var out []string
	err = c.everyone().walk(c.now.Unix()-second, 0, maxReply, func(seen rollcall.Seen) bool {
		if seen.LastSeen.Unix() < second {
			return false // a window begins at a second before
		}
		out = append(out, seen.User)
		return true
	})
	return out, err
}

// setMembers are what the keys of a command have together.
func (c *conn) setMembers(keys [][]byte) ([]string, bool) {
	var minutes []time.Time
	var out []string
	for _, key := range keys {
		b, n := c.bound(key, "set")
		if b == nil {
			return nil, false
		}
		if b.means == MinuteSet {
			at, err := c.minute(n.minute)
			if err != nil {
				c.failWith(err)
				return nil, false
			}
			minutes = append(minutes, at)
			continue
		}
		friends, err := friendSet{c, b, string(n.user)}.read()
		if err == nil && len(out)+len(friends) > maxReply {
			err = tooMany(len(out) + len(friends))
		}
		if err != nil {
			c.failWith(err)
			return nil, false
		}
		for _, f := range friends {
			out = append(out, f.member)
		}
	}
	if len(minutes) > 0 {
		second, err := c.since(minutes)
		var seen []string
		if err == nil {
			seen, err = c.seenSince(second)
		}
		if err != nil {
			c.failWith(err)
			return nil, false
		}
		out = append(out, seen...)
	}
	slices.Sort(out)
	return slices.Compact(out), true
}

func cmdSMembers(c *conn, args [][]byte) { cmdSUnion(c, args) }

func cmdSUnion(c *conn, args [][]byte) {
	members, ok := c.setMembers(args[1:])
	if !ok {
		return
	}
	c.set(len(members))
	for _, m := range members {
		c.bulk(m)
	}
}

func cmdSCard(c *conn, args [][]byte) {
	b, n := c.bound(args[1], "set")
	if b == nil {
		return
	}
	var total int
	var err error
	if b.means == Friends {
		total, err = c.friendCount(string(n.user))
	} else {
		var second int64
		if second, err = c.sinceOne(n); err == nil {
			total, err = c.everyone().since(second)
		}
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.int(total)
}

func (c *conn) sinceOne(n names) (int64, error) {
	at, err := c.minute(n.minute)
	if err != nil {
		return 0, err
	}
	return c.since([]time.Time{at})
}

func cmdSIsMember(c *conn, args [][]byte) {
	b, n := c.bound(args[1], "set")
	if b == nil {
		return
	}
	var found bool
	var err error
	if b.means == Friends {
		_, found, err = friendSet{c, b, string(n.user)}.score(string(args[2]))
	} else {
		var second int64
		var status []rollcall.Status
		if second, err = c.sinceOne(n); err == nil {
			status, err = c.roll.Status(c.ctx, string(args[2]))
		}
		if err == nil {
			age := c.now.Truncate(time.Second).Sub(status[0].LastSeen)
			found = !status[0].LastSeen.IsZero() && status[0].LastSeen.Unix() >= second && (status[0].Online || age > c.l.roll.Window())
		}
	}
	if err != nil {
		c.failWith(err)
		return
	}
	c.bool(found)
}

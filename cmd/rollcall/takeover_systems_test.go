package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/takeover"
)

const million = 1_000_000

// expired and recordGone tell whose entries of an online list are dead.
func expired(i int) bool    { return i%100 == 7 }
func recordGone(i int) bool { return i%100 == 13 }

// loginOf is how long ago a user logged in: nobody at the same millisecond as another.
func (o *oldSystem) loginOf(i int) time.Duration {
	if expired(i) {
		return 25*time.Hour + time.Duration(i)*time.Millisecond
	}
	return time.Minute + time.Duration(i)*(20*time.Hour/time.Duration(o.n))
}

// onlineList is a sorted set of sessions, with the set of each user's and their records.
func onlineList() *handBuilt {
	login := func(o *oldSystem, user, session, score string) {
		o.add("ZADD", "online:user", score, user+":"+session)
		o.add("SADD", "online:user:"+user, session)
		o.add("SET", "login:"+user+":"+session, `{"user":{"name":"N`+user+`"},"ip":"10.1.2.3","device":"`+session+`","subsystem":"shop"}`)
	}
	return &handBuilt{
		layout: takeover.OnlineZset, users: 3000, long: million,
		names:   []string{"--records", "login:{user}", "--sets", "online:user:{user}"},
		back:    []string{"--unit", "ms"},
		entries: func(users int) int { return users },
		faults:  []string{"expired", "record_gone", "dead", "short_pages"},
		fill: func(o *oldSystem) {
			for i := range o.n {
				user := o.user(i)
				login(o, user, "a", o.ago(o.loginOf(i), time.Millisecond))
				if i%10 == 0 {
					login(o, user, "b", o.ago(o.loginOf(i)-5*time.Millisecond, time.Millisecond))
				}
				if recordGone(i) {
					o.add("DEL", "login:"+user+":a")
				}
			}
		},
		change: func(o *oldSystem, i int) {
			user := o.user(i * 7919 % o.n)
			switch i % 3 {
			case 0:
				login(o, "new-"+strconv.Itoa(i), "a", score(time.Millisecond))
			case 1:
				login(o, user, "a", score(time.Millisecond))
			default:
				o.add("ZREM", "online:user", user+":a")
				o.add("SREM", "online:user:"+user, "a")
				o.add("DEL", "login:"+user+":a")
			}
		},
		use:   useSessions,
		equal: func(o *oldSystem) { o.equalSessions("online:user", "login:", true) },
	}
}

// onlinePages is a list of users with a token record each, by login time, and beside it one by
// last access.
func onlinePages() *handBuilt {
	return &handBuilt{
		layout: takeover.OnlineZset, users: 3000, long: million,
		names:   []string{"--key", "page:login", "--records", "token:{user}"},
		back:    []string{"--unit", "ms"},
		entries: func(users int) int { return users },
		faults:  []string{"expired", "record_gone", "dead", "short_pages"},
		fill: func(o *oldSystem) {
			for i := range o.n {
				user := o.user(i)
				o.add("ZADD", "page:login", o.ago(o.loginOf(i), time.Millisecond), user)
				o.add("ZADD", "page:access", o.ago(min(o.loginOf(i), 10*time.Minute), time.Millisecond), user)
				if !recordGone(i) {
					o.add("SET", "token:"+user, `{"token":"t`+user+`","user":{"name":"N`+user+`"},"login_ip":"10.1.2.3","subsystem":"office"}`)
				}
			}
		},
		change: func(o *oldSystem, i int) {
			user := o.user(i * 7919 % o.n)
			if i%3 == 0 {
				o.add("ZREM", "page:login", user)
				o.add("DEL", "token:"+user)
				return
			}
			o.add("ZADD", "page:login", score(time.Millisecond), user)
			o.add("SET", "token:"+user, `{"login_ip":"10.1.2.4"}`)
		},
		use:   useSessions,
		equal: func(o *oldSystem) { o.equalSessions("page:login", "token:", false) },
	}
}

// useSessions kicks some users, and logs some in who are known and some who are not.
func useSessions(o *oldSystem) {
	ctx, t := o.t.Context(), o.t
	for i := range 50 {
		_, err := o.here.Kick(ctx, rollcall.Kick{User: o.user(1001 + i), Reason: "enough"})
		if rollcall.CodeOf(err) != rollcall.CodeNotFound {
			require.NoError(t, err)
		}
		_, err = o.here.Login(ctx, rollcall.Login{User: "here-" + strconv.Itoa(i), Device: "ios"})
		require.NoError(t, err)
	}
}

// equalSessions compares the list, its pages and the sessions of users.
func (o *oldSystem) equalSessions(key, record string, sets bool) {
	t, ctx := o.t, o.t.Context()
	alive := func(entries []string) []string {
		return slices.DeleteFunc(entries, func(entry string) bool {
			n, _ := o.number("EXISTS", record+entry)
			return n == 0
		})
	}
	name := func(s rollcall.Session) string {
		switch origin := s.Attrs["origin"]; {
		case origin != "":
			return origin
		case sets:
			return s.User + ":" + s.ID.String()
		default:
			return s.User
		}
	}

	// How many are logged in: those of the list that live and have a record.
	var live int64
	for cursor := "0"; ; {
		m, err := o.redis.Do(ctx, o.redis.B().Arbitrary("ZSCAN", key, cursor, "COUNT", "5000").Build()).AsScanEntry()
		require.NoError(t, err)
		var names []string
		for i := 0; i+1 < len(m.Elements); i += 2 {
			if at, _ := strconv.ParseFloat(m.Elements[i+1], 64); int64(at) > time.Now().Add(-24*time.Hour).UnixMilli() {
				names = append(names, record+m.Elements[i])
			}
		}
		if len(names) > 0 {
			n, _ := o.number(append([]string{"EXISTS"}, names...)...)
			live += n
		}
		if cursor = strconv.FormatUint(m.Cursor, 10); cursor == "0" {
			break
		}
	}
	all, err := o.here.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
	require.NoError(t, err)
	require.EqualValues(t, live, all.Total, "sessions in all")

	// A page of those who logged in five to six hours ago, newest first. (What began while it
	// was followed has the time of the look.)
	until := o.began.Add(-5 * time.Hour).Truncate(time.Second)
	entries := alive(o.list("ZREVRANGEBYSCORE", key, "("+strconv.FormatInt(until.UnixMilli(), 10), strconv.FormatInt(until.Add(-time.Hour).UnixMilli(), 10), "LIMIT", "0", "150"))
	page, err := o.here.Sessions(ctx, rollcall.SessionQuery{
		Filter: rollcall.SessionFilter{LoginAfter: until.Add(-time.Hour), LoginBefore: until}, Page: rollcall.PageRequest{Limit: 100},
	})
	require.NoError(t, err)
	var shown []string
	for _, s := range page.Items {
		shown = append(shown, name(s))
	}
	require.Equal(t, entries[:min(len(entries), len(page.Items))], shown)
	require.Len(t, shown, 100, "a full page")

	// The sessions of users.
	for _, user := range append(o.sample(), "here-7", o.user(1003)) {
		entries := []string{user}
		if sets {
			entries = nil
			for _, session := range o.list("SMEMBERS", "online:user:"+user) {
				entries = append(entries, user+":"+session)
			}
		}
		entries = slices.DeleteFunc(alive(entries), func(entry string) bool {
			at, found := o.number("ZSCORE", key, entry)
			return !found || at <= time.Now().Add(-24*time.Hour).UnixMilli()
		})
		page, err := o.here.Sessions(ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{user}}, Page: rollcall.PageRequest{Limit: 100}})
		require.NoError(t, err)
		var here []string
		for _, s := range page.Items {
			here = append(here, name(s))
		}
		require.ElementsMatch(t, entries, here, user)
	}
}

// equalSeen compares counts of windows and last-seen times.
func (o *oldSystem) equalSeen(key string, unit time.Duration) {
	t, ctx := o.t, o.t.Context()
	for _, window := range []time.Duration{5 * time.Minute, time.Hour} {
		o.between(fmt.Sprint("online within ", window), func(slack time.Duration) int64 {
			// Times ahead are times of the import here.
			most := "+inf"
			if slack < 0 {
				most = score(unit)
			}
			n, _ := o.number("ZCOUNT", key, strconv.FormatInt(time.Now().Add(-window-slack).UnixNano()/int64(unit), 10), most)
			return n
		}, func() (int, error) { return o.here.OnlineCount(ctx, window) })
	}
	users := append(o.sample(), "here-7")
	status, err := o.here.Status(ctx, users...)
	require.NoError(t, err)
	for i, user := range users {
		at, found := o.number("ZSCORE", key, user)
		here := status[i].LastSeen
		if !found || at*int64(unit) < time.Now().Add(-90*24*time.Hour).UnixNano() || at*int64(unit) > time.Now().UnixNano() {
			continue // rightly not here, or as of the import
		}
		if unit == time.Millisecond && at < 1e11 {
			at *= 1000 // one of those that count seconds
		}
		old := time.Unix(0, at*int64(unit)).Truncate(time.Second)
		require.WithinRange(t, here, old.Add(-time.Second), old.Add(time.Minute), "%s: %s there, %s here", user, old, here)
	}
}

// useBeats lets some users give a sign of life: known ones, and new ones.
func useBeats(o *oldSystem) {
	var users []string
	for i := range 200 {
		users = append(users, "here-"+strconv.Itoa(i), o.user(i))
	}
	require.NoError(o.t, o.here.Beat(o.t.Context(), users...))
}

// heartbeats is a sorted set of users by the milliseconds of their last heartbeat.
func heartbeats() *handBuilt {
	return &handBuilt{
		layout: takeover.HeartbeatZset, users: 3000, long: million, back: []string{"--unit", "ms"},
		entries: func(users int) int { return users },
		faults:  []string{"stale", "ahead", "mixed_units"},
		fill: func(o *oldSystem) {
			for i := range o.n {
				at := o.ago(time.Duration(i)*(24*time.Hour/time.Duration(o.n)), time.Millisecond)
				switch {
				case i%100 == 7:
					at = o.ago(100*24*time.Hour+time.Duration(i)*time.Millisecond, time.Millisecond)
				case i%1000 == 13:
					at = o.ago(-2*time.Hour, time.Millisecond)
				case i%1000 == 17:
					at = o.ago(5*time.Hour, time.Second)
				}
				o.add("ZADD", "users", at, o.user(i))
			}
		},
		change: func(o *oldSystem, i int) {
			o.add("ZADD", "users", score(time.Millisecond), o.user(i*7919%o.n), score(time.Millisecond), "new-"+strconv.Itoa(i))
		},
		use:   useBeats,
		equal: func(o *oldSystem) { o.equalSeen("users", time.Millisecond) },
	}
}

// seenWithFriends is a sorted set of users by the second of their last request, with lists of
// friends, some of which say since when.
func seenWithFriends() *handBuilt {
	const most = 50
	return &handBuilt{
		layout: takeover.LastSeenZset, users: 3000, long: million,
		names: []string{"--friends", "user:{user}:friends"}, back: []string{"--unit", "s"},
		entries: func(users int) int { return users },
		faults:  []string{"stale", "no_time"},
		fill: func(o *oldSystem) {
			for i := range o.n {
				ago := time.Duration(i) * (24 * time.Hour / time.Duration(o.n))
				if i%100 == 7 {
					ago += 100 * 24 * time.Hour
				}
				o.add("ZADD", "last.seen", o.ago(ago, time.Second), o.user(i))
				if i%50 != 0 {
					continue
				}
				words := []string{"SADD", "user:" + o.user(i) + ":friends"}
				if i%100 == 0 {
					words[0] = "ZADD"
				}
				for k := range most {
					if i%100 == 0 {
						words = append(words, o.ago(time.Duration(k)*time.Hour, time.Second))
					}
					words = append(words, o.user((i+1+k*k)%o.n))
				}
				o.add(words...)
			}
		},
		change: func(o *oldSystem, i int) {
			o.add("ZADD", "last.seen", score(time.Second), o.user(i*7919%o.n), score(time.Second), "new-"+strconv.Itoa(i))
			o.add("SADD", "user:new-"+strconv.Itoa(i)+":friends", o.user(i%o.n))
		},
		use: useBeats,
		equal: func(o *oldSystem) {
			o.equalSeen("last.seen", time.Second)
			o.equalFriends()
		},
	}
}

// equalFriends asks which friends are online, as the article does: cut the set of those seen,
// and meet it with the list.
func (o *oldSystem) equalFriends() {
	t := o.t
	for range 30 {
		user := o.user(o.rng.IntN(o.n/50) * 50)
		online := func(slack time.Duration) []string {
			from := strconv.FormatInt(time.Now().Add(-time.Hour-slack).Unix(), 10)
			seen := o.list("ZRANGEBYSCORE", "last.seen", from, "+inf")
			o.add("DEL", "tmp:online", "tmp:friends")
			for some := range slices.Chunk(seen, 1000) {
				o.add(append([]string{"SADD", "tmp:online"}, some...)...)
			}
			o.flush()
			_, _ = o.number("ZINTERSTORE", "tmp:friends", "2", "tmp:online", "user:"+user+":friends")
			return o.list("ZRANGE", "tmp:friends", "0", "-1")
		}
		least := online(-slack)
		page, err := o.here.OnlineFriends(t.Context(), rollcall.FriendQuery{User: user, Window: time.Hour, Page: rollcall.PageRequest{Limit: 1000}})
		require.NoError(t, err)
		most := online(slack + time.Minute)
		var here []string
		for _, f := range page.Items {
			here = append(here, f.User)
		}
		require.Subset(t, here, least, user)
		require.Subset(t, most, here, user)
	}
	o.add("DEL", "tmp:online", "tmp:friends")
	o.flush()
}

// minuteSets is a set of users for each of the last ten minutes.
func minuteSets() *handBuilt {
	key := func(at time.Time) string { return fmt.Sprintf("active.users:%02d", at.UTC().Minute()) }
	see := func(o *oldSystem, at time.Time, users ...string) {
		o.add(append([]string{"SADD", key(at)}, users...)...)
		o.add("EXPIRE", key(at), "660")
	}
	return &handBuilt{
		layout: takeover.MinuteSets, users: 3000, long: million,
		entries: func(users int) int { return users / 2 }, // by the time of the comparison some minutes are over
		faults:  []string{"no_expiry"},
		fill: func(o *oldSystem) {
			o.add("SADD", key(o.began.Add(-25*time.Minute)), "old", "older")
			for i := range o.n {
				see(o, o.began.Add(-time.Duration(i%10)*time.Minute), o.user(i))
			}
		},
		change: func(o *oldSystem, i int) { see(o, time.Now(), o.user(i*7919%o.n), "new-"+strconv.Itoa(i)) },
		use:    useBeats,
		equal: func(o *oldSystem) {
			o.between("online within ten minutes", func(slack time.Duration) int64 {
				now := time.Now()
				newest, oldest := now.Add(-slack), now.Add(-slack-9*time.Minute)
				if slack > 0 {
					// All that may count: the first minute also if only its end is in the ten.
					newest, oldest = now, now.Add(-slack-10*time.Minute)
				}
				sets := []string{"SUNIONSTORE", "tmp:union"}
				for at := newest.Truncate(time.Minute); !at.Before(oldest.Truncate(time.Minute)); at = at.Add(-time.Minute) {
					sets = append(sets, key(at))
				}
				n, _ := o.number(sets...)
				return n
			}, func() (int, error) { return o.here.OnlineCount(o.t.Context(), 10*time.Minute) })
		},
	}
}

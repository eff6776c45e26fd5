package respapi_test

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/respapi"
)

// speaking is options with a dialect.
func speaking(t *testing.T, lines ...string) respapi.Options {
	t.Helper()
	d, err := respapi.ParseDialect(lines)
	require.NoError(t, err)
	return respapi.Options{NoKeys: true, Dialect: d}
}

// texts are the words of a list.
func texts(words string) []any {
	out := []any{}
	for _, word := range strings.Fields(words) {
		out = append(out, word)
	}
	return out
}

func sorted(v any) []string {
	out := []string{}
	items, _ := v.([]any)
	for _, x := range items {
		out = append(out, fmt.Sprint(x))
	}
	sort.Strings(out)
	return out
}

// expect sends commands, one a line, and compares what is behind the arrow.
func (c *redisClient) expect(script string, want ...any) {
	c.Helper()
	n := 0
	for _, line := range strings.Split(script, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		require.Less(c, n, len(want), "no answer is expected to %s", line)
		require.Equal(c, want[n], c.line(line), line)
		n++
	}
	require.Len(c, want, n)
}

func TestO1TheOnlineListByItsOwnCommands(t *testing.T) {
	onBothEngines(t, speaking(t, "online:user = sessions"), func(w *world) {
		c := w.dial()
		now := noon.Unix()
		for i, user := range []string{"alice", "bob", "carol"} {
			w.clock.advance(time.Duration(min(i, 1)) * time.Second)
			require.Equal(w, 1, c.do("ZADD", "online:user", now+int64(i), user))
		}
		c.expect(`
			ZREVRANGEBYSCORE online:user +inf -inf
			ZREVRANGEBYSCORE online:user +inf -inf WITHSCORES LIMIT 0 2
			ZREVRANGE online:user 0 0
			ZRANGE online:user 0 -1
			ZCARD online:user
			ZSCORE online:user bob
			ZSCORE online:user nobody
			ZREM online:user bob nobody
			ZREM online:user bob
			ZRANGEBYSCORE online:user -inf +inf
			TYPE online:user
			EXISTS online:user`,
			texts("carol bob alice"), list("carol", fmt.Sprint(now+2), "bob", fmt.Sprint(now+1)), texts("carol"), texts("alice bob carol"),
			3, fmt.Sprint(now+1), nil, 1, 0, texts("alice carol"), "zset", 1)

		// A kick is one everywhere: the service says the same.
		page, err := w.roll.Sessions(w.Context(), rollcall.SessionQuery{})
		require.NoError(w, err)
		require.Equal(w, 2, page.Total)

		// Logging in again replaces the session, as a member stands once.
		w.clock.advance(10 * time.Second)
		require.Equal(w, 0, c.do("ZADD", "online:user", now+12, "alice"))
		require.Equal(w, texts("alice carol"), c.do("ZREVRANGE", "online:user", 0, -1))

		// The job of every few seconds ends those that logged in long ago.
		require.Equal(w, 1, c.do("ZREMRANGEBYSCORE", "online:user", 0, now+5))
		require.Equal(w, texts("alice"), c.do("ZRANGE", "online:user", 0, -1))

		// Nobody waits for a job: who is silent for the idle time is not listed.
		w.clock.advance(31 * time.Minute)
		require.Equal(w, list(), c.do("ZREVRANGEBYSCORE", "online:user", "+inf", "-inf"))
		require.Contains(w, c.do("ZADD", "online:user", now, "late"), "ERR invalid_argument score")
	})
}

func TestO1ManySessionsOfAUserHaveANameEach(t *testing.T) {
	onBothEngines(t, speaking(t, "online:user = sessions many ms"), func(w *world) {
		c := w.dial()
		now := noon.UnixMilli()
		require.Equal(w, 2, c.do("ZADD", "online:user", now, "alice:phone", now, "alice:web"))
		require.Equal(w, []string{"alice:phone", "alice:web"}, sorted(c.do("ZRANGE", "online:user", 0, -1)))
		require.Equal(w, fmt.Sprint(now), c.do("ZSCORE", "online:user", "alice:web"))
		require.Equal(w, 1, c.do("ZREM", "online:user", "alice:phone"))
		require.Equal(w, texts("alice:web"), c.do("ZRANGE", "online:user", 0, -1))
		require.Contains(w, c.do("ZADD", "online:user", now, "alice"), "ERR invalid_argument member")

		// A session that was logged in over HTTP is in the list by its id.
		s, err := w.roll.Login(w.Context(), rollcall.Login{User: "bob"})
		require.NoError(w, err)
		require.Equal(w, 2, c.do("ZCARD", "online:user"))
		require.Equal(w, 1, c.do("ZREM", "online:user", "bob:"+s.Session.ID.String()))
		require.Equal(w, 1, c.do("ZREMRANGEBYSCORE", "online:user", "-inf", "+inf"))
		require.Equal(w, 0, c.do("ZCARD", "online:user"))
	})
}

func TestO2PagesOfTheListHaveNoHoles(t *testing.T) {
	onBothEngines(t, speaking(t, "online:user = sessions"), func(w *world) {
		c := w.dial()
		for i := range 25 {
			require.Equal(w, 1, c.do("ZADD", "online:user", w.clock.Now().Unix(), fmt.Sprintf("u%02d", i)))
			w.clock.advance(time.Second)
		}
		require.Equal(w, 1, c.do("ZREM", "online:user", "u20"))
		require.Equal(w, texts("u24 u23 u22 u21 u19 u18 u17 u16 u15 u14"), c.do("ZREVRANGE", "online:user", 0, 9))
		require.Equal(w, texts("u13 u12 u11 u10 u09 u08 u07 u06 u05 u04"), c.do("ZREVRANGE", "online:user", 10, 19))
		require.Equal(w, texts("u03 u02 u01 u00"), c.do("ZREVRANGE", "online:user", 20, 29))
		require.Equal(w, texts("u10 u09 u08"), c.do("ZREVRANGE", "online:user", 13, 15), "a page that begins anywhere")
		require.Equal(w, texts("u23 u24"), c.do("ZRANGE", "online:user", -2, -1))
	})
}

func TestO3TheCountByHeartbeats(t *testing.T) {
	onBothEngines(t, speaking(t, "users = presence ms"), func(w *world) {
		c := w.dial()
		now := noon.UnixMilli()
		require.Equal(w, 1, c.do("ZADD", "users", now, "1"))
		require.Equal(w, 0, c.do("ZADD", "users", now+700, "1"))
		require.Equal(w, 2, c.do("ZADD", "users", now, "2", now, "3"))
		w.clock.advance(4 * time.Minute)
		later := now + 240_000
		require.Equal(w, 0, c.do("ZADD", "users", later, "1"))
		require.Equal(w, 0, c.do("ZADD", "users", "CH", later, "1"))
		require.Equal(w, 1, c.do("ZADD", "users", "CH", later, "2"))
		w.clock.advance(2 * time.Minute)
		end := later + 120_000

		require.Equal(w, 2, c.do("ZCOUNT", "users", end-300_000, end))
		require.Equal(w, 3, c.do("ZCOUNT", "users", "-inf", "+inf"))
		require.Equal(w, 1, c.do("ZCOUNT", "users", now, now+1000))
		require.Equal(w, 3, c.do("ZCARD", "users"))
		require.Equal(w, fmt.Sprint(later), c.do("ZSCORE", "users", "1"))
		require.Nil(w, c.do("ZSCORE", "users", "4"))
		require.Equal(w, texts("2 1 3"), c.do("ZREVRANGE", "users", 0, -1))
		require.Equal(w, list("3", fmt.Sprint(now)), c.do("ZRANGE", "users", 0, 0, "WITHSCORES"))
		require.Equal(w, texts("1 2"), c.do("ZRANGEBYSCORE", "users", fmt.Sprintf("(%d", now+999), "+inf"))
		require.Equal(w, texts("3"), c.do("ZRANGE", "users", now+1000, 0, "BYSCORE", "REV", "LIMIT", 0, 5))

		require.Equal(w, 1, c.do("ZREMRANGEBYSCORE", "users", 0, end-300_000))
		require.Equal(w, 2, c.do("ZCARD", "users"))
		count, err := w.roll.OnlineCount(w.Context(), 5*time.Minute)
		require.NoError(w, err)
		require.Equal(w, 2, count)

		require.Contains(w, c.do("ZADD", "users", end/1000, "1"), "bind it without the option ms")
		require.Contains(w, c.do("ZADD", "users", end-61_000, "1"), "more than 60 s")
		require.NotContains(w, c.do("ZADD", "users", end-61_000, "1"), "bind it", "it is of the right unit")
		require.Contains(w, c.do("ZADD", "users", "NX", end, "1"), "ERR invalid_argument")
		require.Contains(w, c.do("SADD", "users", "1"), "WRONGTYPE")
		require.Contains(w, c.do("ZADD", "other", end, "1"), "ERR not_found ZADD")
	})
}

func TestO4LoginDaysByBitmap(t *testing.T) {
	onBothEngines(t, speaking(t, "loginLog_{month}_{kind}_{user} = attendance from-1"), func(w *world) {
		c := w.dial()
		c.expect(`
			SETBIT loginLog_2017-10_office_1001 1 1
			SETBIT loginLog_2017-10_office_1001 1 1
			SETBIT loginLog_2017-10_office_1001 20 1
			SETBIT loginLog_2017-09_office_1001 30 1
			SETBIT loginLog_2017-10_client_1001 5 1
			GETBIT loginLog_2017-10_office_1001 1
			GETBIT loginLog_2017-10_office_1001 2
			BITCOUNT loginLog_2017-10_office_1001
			BITCOUNT loginLog_2017-10_office_1001 0 0
			BITCOUNT loginLog_2017-10_office_1001 2 -1 BIT
			BITOP OR all loginLog_2017-09_office_1001 loginLog_2017-10_office_1001
			BITCOUNT all
			GETBIT all 30
			DEL all
			EXISTS all loginLog_2017-09_office_1001 loginLog_2017-08_office_1001
			TYPE loginLog_2017-10_office_1001
			EXPIRE loginLog_2017-10_office_1001 100
			TTL loginLog_2017-10_office_1001
			SETBIT loginLog_2017-10_office_1001 20 0
			GETBIT loginLog_2017-10_office_1001 20
			DEL loginLog_2017-10_client_1001`,
			0, 1, 0, 0, 0, 1, 0, 2, 1, 1, 4, 3, 1, 1, 1, "string", 1, -1, 1, 0, 1)
		require.Equal(w, "\x40", c.do("GET", "loginLog_2017-10_office_1001"))
		require.Equal(w, []string{"loginLog_2017-09_office_1001", "loginLog_2017-10_office_1001"}, sorted(c.do("KEYS", "loginLog_*")))
		require.Equal(w, []string{"loginLog_2017-09_office_1001"}, sorted(c.do("KEYS", "loginLog_2017-09_*")))

		var scanned []string
		for cursor := "0"; ; {
			answer, ok := c.do("SCAN", cursor, "MATCH", "loginLog_*", "COUNT", 100).([]any)
			require.True(w, ok)
			scanned = append(scanned, sorted(answer[1])...)
			if cursor, _ = answer[0].(string); cursor == "0" {
				break
			}
		}
		sort.Strings(scanned)
		require.Equal(w, []string{"loginLog_2017-09_office_1001", "loginLog_2017-10_office_1001"}, scanned)

		days, err := w.roll.Attended(w.Context(), "1001", "office", rollcall.Month(201710).Range())
		require.NoError(w, err)
		require.Equal(w, []rollcall.Day{rollcall.Month(201710).Day(1)}, days.Days)
		require.Contains(w, c.do("SETBIT", "loginLog_2017-10_office_1001", 32, 1), "ERR invalid_argument offset")
		require.Contains(w, c.do("SETBIT", "loginLog_2017-10_office_1001", 21, 1), "future")
		require.Contains(w, c.do("SETBIT", "loginLog_2017-13_office_1001", 1, 1), "ERR invalid_argument month")
		require.Contains(w, c.do("ZADD", "loginLog_2017-10_office_1001", 1, "x"), "WRONGTYPE")
	})
}

func TestO5OnlineByMinutes(t *testing.T) {
	onBothEngines(t, speaking(t, "active.users:{minute} = minute-set"), func(w *world) {
		c := w.dial()
		require.Equal(w, 2, c.do("SADD", "active.users:00", "a", "b"))
		require.Equal(w, 1, c.do("SADD", "active.users:00", "a", "c"))
		require.Equal(w, 1, c.do("EXPIRE", "active.users:00", 600))
		w.clock.advance(4 * time.Minute)
		require.Equal(w, 1, c.do("SADD", "active.users:04", "a"))
		w.clock.advance(10 * time.Second)
		require.Equal(w, []string{"a", "b", "c"}, sorted(c.do("SUNION", "active.users:04", "active.users:03", "active.users:02", "active.users:01", "active.users:00")))
		require.Equal(w, []string{"a"}, sorted(c.do("SUNION", "active.users:04", "active.users:03")))
		require.Equal(w, []string{"a"}, sorted(c.do("SMEMBERS", "active.users:04")))
		require.Equal(w, 1, c.do("SCARD", "active.users:04"))
		require.Equal(w, 1, c.do("SISMEMBER", "active.users:04", "a"))
		require.Equal(w, 0, c.do("SISMEMBER", "active.users:04", "b"))
		require.Contains(w, c.do("SUNION", "active.users:04", "active.users:00"), "gap")
		require.Contains(w, c.do("SMEMBERS", "active.users:01"), "ERR invalid_argument")
		require.Contains(w, c.do("SADD", "active.users:01", "x"), "not the present one")
		require.Contains(w, c.do("SADD", "active.users:61", "x"), "no minute")
		require.Equal(w, []string{"active.users:04"}, sorted(c.do("KEYS", "active.users:0?")))
	})
}

func TestO5OnlineFriendsInOneTransaction(t *testing.T) {
	onBothEngines(t, speaking(t, "last.seen = presence", "user:{user}:friends = friends"), func(w *world) {
		c := w.dial()
		require.Equal(w, 3, c.do("SADD", "user:42:friends", "1", "2", "3"))
		require.Equal(w, 0, c.do("SADD", "user:42:friends", "1"))
		require.Equal(w, 2, c.do("ZADD", "last.seen", noon.Unix(), "1", noon.Unix(), "9"))
		w.clock.advance(20 * time.Minute)
		now := w.clock.Now().Unix()
		require.Equal(w, 2, c.do("ZADD", "last.seen", now, "2", now, "8"))
		for range 2 { // a copy of the first leaves nothing for the second
			c.expect(fmt.Sprintf(`
				MULTI
				ZUNIONSTORE copy 1 last.seen
				ZREMRANGEBYSCORE copy -inf %d
				ZINTERSTORE online 2 copy user:42:friends
				ZRANGE online 0 -1 WITHSCORES
				ZCARD online
				DEL copy online
				EXEC`, now-600),
				"OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED", "QUEUED", "QUEUED",
				list(4, 2, 1, list("2", fmt.Sprint(now+1)), 1, 2))
		}
		c.expect(fmt.Sprintf(`
			MULTI
			ZUNIONSTORE copy 1 last.seen
			ZREMRANGEBYSCORE copy 0 %d
			ZINTERSTORE online 2 user:42:friends copy WEIGHTS 0 1
			ZREVRANGE online 0 -1 WITHSCORES
			EXPIRE online 10
			EXEC`, noon.Unix()-1),
			"OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED", "QUEUED",
			list(4, 0, 2, list("2", fmt.Sprint(now), "1", fmt.Sprint(noon.Unix())), 1))
		require.Contains(w, c.do("ZUNIONSTORE", "copy", 1, "last.seen"), "inside MULTI")

		c.expect(`
			SISMEMBER user:42:friends 2
			SISMEMBER user:42:friends 7
			SCARD user:42:friends
			SREM user:42:friends 2 7
			SCARD user:42:friends
			DEL user:42:friends
			EXISTS user:42:friends`, 1, 0, 3, 1, 2, 1, 0)
	})
}

func TestO5FriendsByTheTimeOfFriendship(t *testing.T) {
	onBothEngines(t, speaking(t, "friends:{user} = friends zset"), func(w *world) {
		c := w.dial()
		c.expect(`
			ZADD friends:42 1000 a 2000 b 3000 c
			ZADD friends:42 1500 a 4000 d
			ZRANGE friends:42 0 -1 WITHSCORES
			ZREVRANGEBYSCORE friends:42 +inf (1500 LIMIT 1 1
			ZSCORE friends:42 b
			ZCARD friends:42
			ZCOUNT friends:42 1500 3000
			ZREM friends:42 a x
			ZCARD friends:42`,
			3, 1, texts("a 1500 b 2000 c 3000 d 4000"), texts("c"), "2000", 4, 3, 1, 3)
		require.Contains(w, c.do("SADD", "friends:42", "x"), "WRONGTYPE")
	})
}

func TestADialectThatCannotBeSaysWhy(t *testing.T) {
	for line, why := range map[string]string{
		"users":                       "PATTERN = MEANING",
		"users = people":              "there are presence",
		"users = presence many":       "does not have",
		"friends = friends":           "needs {user}",
		"x:{user}:{user} = friends":   "twice",
		"x:{month}{user} = friends":   "between two placeholders",
		"x:{user = friends":           "placeholders are",
		"users:{user} = presence":     "has no use for {user}",
		"log_{month} = attendance":    "needs {user}",
		"m:{minute}:{x} = minute-set": "placeholders are",
	} {
		_, err := respapi.ParseDialect([]string{line})
		require.ErrorContains(t, err, why, line)
	}
	_, err := respapi.ParseDialect([]string{"users = presence", "users = sessions"})
	require.ErrorContains(t, err, "twice")
}

package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// consoleZone is the zone of the servers that the console is shown of.
const consoleZone = "Asia/Shanghai"

// consoleStore is a store before its server starts: a crowd of sessions, all
// different, and half an hour in which three users came and went.
type consoleStore struct {
	t     *testing.T
	dir   string // of the server's data
	flags []string

	onRedis  bool
	sessions int
	first    time.Time // the first login of the crowd
	then     time.Time // a whole minute at which "early" and "steady" were online
	silent   time.Time // after it nobody could be heard for two minutes
}

// loginsApart is the time between two logins of the crowd.
const loginsApart = 70 * time.Millisecond

// fillConsoleStore makes the store on an engine.
func fillConsoleStore(t *testing.T, on backend, sessions int) *consoleStore {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Minute)
	c := &consoleStore{
		t: t, dir: t.TempDir(), onRedis: on.url != "", sessions: sessions,
		flags: []string{"--secret", sharedSecret, "--timezone", consoleZone, "--log-level", "error"},
		first: now.Add(-23 * time.Hour), then: now.Add(-13 * time.Minute),
	}
	var engine rollcall.Engine
	if on.url == "" {
		var err error
		engine, err = local.Open(filepath.Join(c.dir, "store"), local.Options{Durability: local.Interval})
		require.NoError(t, err)
	} else {
		store := on.store()
		c.flags = append(c.flags, on.flags(store)...)
		engine = on.join(t, store)
	}
	zone, err := time.LoadLocation(consoleZone)
	require.NoError(t, err)
	clock := rollcall.NewManualClock(now.Add(-20 * time.Minute))
	roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Secret: secretOf(t, sharedSecret), Timezone: zone})
	require.NoError(t, err)
	c.past(roll, clock, now)
	c.crowd(roll, now)
	require.NoError(t, roll.Close())
	require.NoError(t, engine.Close())
	require.NoError(t, os.Chmod(c.dir, 0o700)) //nolint:gosec // a directory
	return c
}

// past lets "early" be online at first, "late" in the end, and "steady" all the time, but
// for an outage near the end.
func (c *consoleStore) past(roll *rollcall.Roll, clock *rollcall.ManualClock, now time.Time) {
	c.t.Helper()
	begin := clock.Now()
	c.silent = begin.Add(15 * time.Minute)
	for at := begin; !at.After(now); at = at.Add(4 * time.Second) {
		if at.After(c.silent) && at.Before(c.silent.Add(2*time.Minute)) {
			continue
		}
		clock.Set(at)
		require.NoError(c.t, roll.Tick(c.t.Context()))
		if at.Sub(begin)%time.Minute != 0 {
			continue
		}
		users := []string{"steady"}
		if at.Before(begin.Add(4 * time.Minute)) {
			users = append(users, "early")
		}
		if at.After(begin.Add(12 * time.Minute)) {
			users = append(users, "late")
		}
		require.NoError(c.t, roll.Beat(c.t.Context(), users...))
	}
}

// crowd enters the sessions as an import does.
func (c *consoleStore) crowd(roll *rollcall.Roll, now time.Time) {
	c.t.Helper()
	var some []rollcall.UserSnapshot
	for i := 0; i < c.sessions; i += 2 {
		d := rollcall.UserSnapshot{User: c.user(i), Kind: c.kind(i), Name: c.name(i)}
		for k := i; k < min(i+2, c.sessions); k++ {
			d.Sessions = append(d.Sessions, c.session(k, now))
		}
		some = append(some, d)
		if len(some) == rollcall.MaxSnapshots || i+2 >= c.sessions {
			require.NoError(c.t, roll.Import(c.t.Context(), some...))
			some = nil
		}
	}
}

// What the crowd's sessions are, by their number in the order of login.

func (c *consoleStore) user(i int) string       { return fmt.Sprintf("u%05d", i/2) }
func (c *consoleStore) kind(i int) string       { return []string{"user", "user", "vip"}[i/2%3] }
func (c *consoleStore) name(i int) string       { return fmt.Sprintf("Name %03d", i/2%700) }
func (c *consoleStore) loginAt(i int) time.Time { return c.first.Add(time.Duration(i) * loginsApart) }
func (c *consoleStore) app(i int) string        { return fmt.Sprint("app", i%8) }
func (c *consoleStore) ip(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i % 4), byte(i / 4 % 200), 7})
}
func (c *consoleStore) isRecent(i int) bool { return i%5 == 0 } // active in the last two hours
func (c *consoleStore) attrs(i int) map[string]string {
	return map[string]string{"region": []string{"eu", "us", "cn"}[i%3]}
}

func (c *consoleStore) device(i int) string {
	if i%200 == 199 {
		return "tv"
	}
	return []string{"web", "ios", "android"}[i%3]
}

func (c *consoleStore) session(i int, now time.Time) rollcall.SessionSnapshot {
	const idle = 7 * 24 * time.Hour
	at, seen := c.loginAt(i), c.loginAt(i)
	if c.isRecent(i) {
		seen = now.Add(-10 * time.Minute)
	}
	return rollcall.SessionSnapshot{
		Session: rollcall.Session{
			ID: rollcall.NewSessionID(at, c.user(i), uint64(i)+1), User: c.user(i), Kind: c.kind(i), Name: c.name(i), //nolint:gosec // a small number
			App: c.app(i), Device: c.device(i), IP: c.ip(i), UserAgent: "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/140.0.0.0 Safari/537.36",
			Attrs: c.attrs(i), LoginAt: at, SeenAt: seen, ExpiresAt: seen.Add(idle),
		},
		Token: rollcall.TokenKey{byte(i), byte(i >> 8), byte(i >> 16), 1}, Idle: idle, //nolint:gosec // a part of it
	}
}

// count says how many sessions of the crowd have something.
func (c *consoleStore) count(has func(i int) bool) int {
	n := 0
	for i := range c.sessions {
		if has(i) {
			n++
		}
	}
	return n
}

// commas writes a number as readers of English do.
func commas(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", commas(n/1000), n%1000)
}

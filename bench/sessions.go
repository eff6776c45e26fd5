package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

// bareLogin is the i-th login: one a user, with six attributes of which four
// repeat among at most 1,000 values and two are 8 bytes of their own.
func bareLogin(rng *rand.Rand, i int) rollcall.Login {
	return rollcall.Login{
		User: strconv.Itoa(i),
		Attrs: map[string]string{
			"city": fmt.Sprintf("city-%d", rng.IntN(1000)), "plan": fmt.Sprintf("plan-%d", rng.IntN(10)),
			"ref": fmt.Sprintf("campaign-%d", rng.IntN(1000)), "ver": fmt.Sprintf("2.%d", rng.IntN(100)),
			"req": fmt.Sprintf("%08x", rng.Uint32()), "trace": fmt.Sprintf("%08x", rng.Uint32()),
		},
	}
}

// makeLogin is a bare login with all that an application may say besides; most
// addresses are nobody else's.
func makeLogin(rng *rand.Rand, i int) rollcall.Login {
	l := bareLogin(rng, i)
	l.Name = fmt.Sprintf("Name %d", rng.IntN(1000))
	l.App = fmt.Sprintf("app%d", rng.IntN(10))
	l.Device = []string{"web", "ios", "android", "desktop"}[rng.IntN(4)]
	l.IP = netip.AddrFrom4([4]byte{10, byte(rng.IntN(16)), byte(rng.IntN(256)), byte(rng.IntN(256))})
	l.UserAgent = fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) Browser/%d", rng.IntN(200))
	return l
}

type loginMaker func(rng *rand.Rand, i int) rollcall.Login

func fillSessions(ctx context.Context, b *bench, n int) error {
	return fillLogins(ctx, b, n, makeLogin)
}

func fillBare(ctx context.Context, b *bench, n int) error { return fillLogins(ctx, b, n, bareLogin) }

// fillLogins logs n users in from a few goroutines.
func fillLogins(ctx context.Context, b *bench, n int, login loginMaker) error {
	const callers = 4
	var all sync.WaitGroup
	failed := make([]error, callers)
	for c := range callers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 2)) //nolint:gosec // load, not secrets
			for i := c; i < n && failed[c] == nil; i += callers {
				_, failed[c] = b.Login(ctx, login(rng, i))
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// measureSessions measures what a session costs.
func measureSessions(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Memory of one session",
		about: "One session a user. Rollcall: resident memory of the whole process (VmRSS), less that of one with an empty engine, and the engine's own account of sessions, and of all that a login leaves (id, last-seen time and day besides). " +
			"Redis: `used_memory` of the hand-made list: a sorted set by login time, a set of each user's sessions, and the login's record as JSON.",
	}
	for _, c := range []struct {
		what, child string
		login       loginMaker
	}{
		{"Six attributes, of which four repeat among at most 1,000 values and two are 8 bytes of their own.", "bare sessions", bareLogin},
		{"The same, with name, app, device, user agent and an address besides.", "sessions", makeLogin},
	} {
		t, err := sessionTable(ctx, sizes, c.child, c.login)
		if err != nil {
			return s, err
		}
		t.note = c.what + t.note
		s.tables = append(s.tables, t)
	}
	return s, nil
}

func sessionTable(ctx context.Context, sizes []int, child string, login loginMaker) (table, error) {
	t := table{head: []string{"sessions", "process", "less empty", "a session", "engine: session", "engine: all", "Redis", "a session", "ratio"}}
	empty, err := inChild(ctx, child, 0)
	if err != nil {
		return t, err
	}
	for _, n := range sizes {
		f, err := inChild(ctx, child, n)
		if err != nil {
			return t, err
		}
		redis, err := redisSessions(ctx, n, login)
		if err != nil {
			return t, err
		}
		per := func(bytes int64) string { return fmt.Sprintf("%.0f B", float64(bytes)/float64(n)) }
		own := f.RSS - empty.RSS
		t.add(count(float64(n)), mib(f.RSS), mib(own), per(own), per(f.of("sessions")),
			per(f.of("sessions", "ids", "presence", "attendance", "users")), mib(redis), per(redis), times(float64(redis)/float64(own)))
	}
	t.note = fmt.Sprintf(" The process with an empty engine: %s; caches and buffers grow to a fixed size.", mib(empty.RSS))
	return t, nil
}

// redisSessions keeps the same logins as the hand-made list does, three writes
// each.
func redisSessions(ctx context.Context, n int, login loginMaker) (int64, error) {
	p, err := startPeer(ctx)
	if err != nil {
		return 0, err
	}
	before, err := p.memory()
	err = errors.Join(err, p.fillList(n, login))
	after, err2 := p.memory()
	return after - before, errors.Join(err, err2, p.stop())
}

// fillList keeps n logins as the hand-made list does, three writes each.
func (p *peer) fillList(n int, login loginMaker) error {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // load, not secrets
	now := time.Now().UnixMilli()
	var l rollcall.Login
	var sid string
	return p.fill(3*n, func(i int) []string {
		switch i % 3 {
		case 0:
			l, sid = login(rng, i/3), fmt.Sprintf("%016x", rng.Uint64())
			return []string{"ZADD", "online:user", strconv.FormatInt(now+int64(i), 10), l.User + ":" + sid}
		case 1:
			return []string{"SADD", "online:user:" + l.User, sid}
		default:
			return []string{"SET", "login:" + l.User + ":" + sid, record(l, now)}
		}
	})
}

// record is a login as the hand-made list keeps it.
func record(l rollcall.Login, at int64) string {
	text, err := json.Marshal(map[string]any{
		"user": l.User, "name": l.Name, "app": l.App, "device": l.Device, "ip": l.IP,
		"user_agent": l.UserAgent, "attrs": l.Attrs, "login_at": at, "seen_at": at,
	})
	if err != nil { // strings and numbers only
		return ""
	}
	return string(text)
}

package transfer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// now is when the tests happen: on a Wednesday, at noon.
var now = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// crowd makes up snapshots like those of a site: of ten users all have been
// seen, five have a session, two have friends, all have days.
type crowd struct {
	rnd   *rand.Rand
	n     int
	order []int // grouped by hash, as an export is
}

func newCrowd(n int) *crowd {
	c := &crowd{n: n}
	var groups [64][]int
	for i := range n {
		h := rollcall.HashUser(userName(i)) % 64
		groups[h] = append(groups[h], i)
	}
	c.order = slices.Concat(groups[:]...)
	return c
}

func userName(i int) string {
	if i%2 == 0 {
		return fmt.Sprint(1_000_000 + i)
	}
	return fmt.Sprintf("user-%07d", i)
}

// next returns up to limit more snapshots.
func (c *crowd) next(limit int) []rollcall.UserSnapshot {
	out := make([]rollcall.UserSnapshot, 0, limit)
	for ; len(out) < limit && len(c.order) > 0; c.order = c.order[1:] {
		c.rnd = rand.New(rand.NewPCG(7, uint64(c.order[0]))) //nolint:gosec // to be the same every time
		out = append(out, c.snapshot(c.order[0]))
	}
	return out
}

func (c *crowd) snapshot(i int) rollcall.UserSnapshot {
	ago := func(most time.Duration) time.Time {
		return now.Add(-time.Duration(c.rnd.Int64N(int64(most)))).Truncate(time.Millisecond)
	}
	d := rollcall.UserSnapshot{User: userName(i), LastSeen: ago(80 * 24 * time.Hour).Truncate(time.Second), Days: map[string][]rollcall.Day{}}
	if i%10 == 0 {
		d.Kind, d.Name, d.Invisible, d.Frozen = "staff", fmt.Sprintf("Nº %d", i), i%100 == 0, time.Time{}
	}
	if i%10 < 5 {
		d.Sessions = append(d.Sessions, c.session(d.User, ago(10*time.Hour), i))
	}
	if i%10 < 2 {
		for j := range 3 {
			d.Friends = append(d.Friends, rollcall.Friend{User: fmt.Sprintf("user-%07d", (i+2*j+1)%c.n|1), Since: ago(1000 * time.Hour)})
		}
		d.Friends = sorted(d.Friends, d.User)
	}
	day := rollcall.DayOf(now, time.UTC)
	for at := day - 30 + rollcall.Day(c.rnd.IntN(10)); at <= day; at += 1 + rollcall.Day(c.rnd.IntN(6)) {
		d.Days["user"] = append(d.Days["user"], at)
	}
	return d
}

// sorted orders friends by user, each once, without the user.
func sorted(friends []rollcall.Friend, user string) []rollcall.Friend {
	byUser := map[string]rollcall.Friend{}
	for _, f := range friends {
		byUser[f.User] = f
	}
	delete(byUser, user)
	return inOrder(byUser)
}

func (c *crowd) session(user string, login time.Time, i int) rollcall.SessionSnapshot {
	s := rollcall.SessionSnapshot{Idle: 24 * time.Hour}
	sum := sha256.Sum256([]byte(user))
	copy(s.Token[:], sum[:])
	s.Session = rollcall.Session{
		ID: rollcall.NewSessionID(login, user, c.rnd.Uint64()), User: user, Kind: "user", App: []string{"shop", "chat"}[i%2],
		Device: []string{"web", "ios", "android"}[i%3], IP: netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}),
		UserAgent: "Browser/1.0", LoginAt: login, SeenAt: login.Add(now.Sub(login) / 2).Truncate(time.Millisecond),
	}
	if i%3 == 0 {
		s.Lifetime, s.EndsAt = 48*time.Hour, login.Add(48*time.Hour)
	}
	if i%4 == 0 {
		s.Attrs = map[string]string{"id": hex.EncodeToString(sum[:4])}
	}
	s.ExpiresAt = s.SeenAt.Add(s.Idle)
	return s
}

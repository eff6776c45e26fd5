package local

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// hotPath is what an application does all the time.
type hotPath struct {
	name        string
	allocations float64 // at most, of one call
	call        func() error
}

// hotPaths are those of an engine in memory with so many users, each with a session.
func hotPaths(tb testing.TB, n int) []hotPath {
	tb.Helper()
	eng, err := Open("", Options{InMemory: true})
	require.NoError(tb, err)
	roll, err := rollcall.New(eng, rollcall.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, errors.Join(roll.Close(), eng.Close())) })

	users, refs := make([]string, n), make([]rollcall.SessionRef, n)
	for i := range users {
		users[i] = strconv.Itoa(i)
		in, err := roll.Login(tb.Context(), rollcall.Login{User: users[i], App: fmt.Sprint("app", i%10), Device: "ios"})
		require.NoError(tb, err)
		refs[i].Token = in.Token
	}
	const friends = 500
	var list []rollcall.Friend
	for _, u := range users[:friends] {
		list = append(list, rollcall.Friend{User: u})
	}
	require.NoError(tb, roll.ReplaceFriends(tb.Context(), users[n-1], list))

	calls := 0
	turn := func() int { calls++; return calls * 7919 % n }
	ctx := tb.Context()
	return []hotPath{
		{"beat of 1,000 users", 2, func() error {
			from := turn() % (n - 1000)
			return roll.Beat(ctx, users[from:from+1000]...)
		}},
		{"verify", 8, func() error { _, err := roll.Verify(ctx, refs[turn()]); return err }},
		{"touch", 20, func() error { _, err := roll.Touch(ctx, refs[turn()]); return err }},
		{"count of users online", 2, func() error { _, err := roll.OnlineCount(ctx, 5*time.Minute); return err }},
		{"status of one user", 6, func() error { _, err := roll.Status(ctx, users[turn()]); return err }},
		{"friends online, a page of 20 of 500", 20, func() error {
			_, err := roll.OnlineFriends(ctx, rollcall.FriendQuery{User: users[n-1], Page: rollcall.PageRequest{Limit: 20}})
			return err
		}},
		{"a page of 20 sessions", 750, func() error { // more or less, by where random ids lie
			_, err := roll.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 20, Number: 1 + turn()/20}})
			return err
		}},
		{"login and kick", 70, func() error {
			in, err := roll.Login(ctx, rollcall.Login{User: users[turn()], App: "app1", Device: "web"})
			if err != nil {
				return err
			}
			_, err = roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID})
			return err
		}},
	}
}

func BenchmarkHotPaths(b *testing.B) {
	for _, p := range hotPaths(b, 20_000) {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := p.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWhatIsDoneAllTheTimeAllocatesLittle(t *testing.T) {
	for _, p := range hotPaths(t, 2_000) {
		allocations := testing.AllocsPerRun(200, func() { require.NoError(t, p.call()) })
		t.Logf("%s: %.0f allocations", p.name, allocations)
		require.LessOrEqual(t, allocations, p.allocations, p.name)
	}
}

package rollcall_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
)

// exampleRoll opens a Roll in memory, on a clock that stands on a Monday
// morning until it is told otherwise.
func exampleRoll(o rollcall.Options) (*rollcall.Roll, *rollcall.ManualClock) {
	clock := rollcall.NewManualClock(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	engine, err := local.Open("", local.Options{InMemory: true})
	if err != nil {
		panic(err)
	}
	o.Clock = clock
	roll, err := rollcall.New(engine, o)
	if err != nil {
		panic(err)
	}
	return roll, clock
}

// The first lines of an application: an engine in the process, its data in a folder.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rollcall-data")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	firstLines := func() error {
		engine, err := local.Open(dir, local.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = engine.Close() }()
		roll, err := rollcall.New(engine, rollcall.Options{})
		if err != nil {
			return err
		}
		defer func() { _ = roll.Close() }()

		in, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
		if err != nil {
			return err
		}
		s, err := roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
		fmt.Println(s.User, s.Device, err)
		n, err := roll.OnlineCount(ctx, 5*time.Minute)
		fmt.Println(n, "online", err)
		ended, err := roll.Kick(ctx, rollcall.Kick{User: "alice", Reason: "new password"})
		fmt.Println(ended.Ended, "ended", err)
		return err
	}
	if err := firstLines(); err != nil {
		panic(err)
	}
	// Output:
	// alice ios <nil>
	// 1 online <nil>
	// 1 ended <nil>
}

// The same on Redis: any number of servers with these lines share what they know. It
// needs a Redis, so it is compiled here and not run.
func Example_redis() {
	ctx := context.Background()
	engine, err := redis.Open(ctx, redis.Options{URL: "redis://10.0.0.5:6379"})
	if err != nil {
		panic(err)
	}
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		panic(err)
	}
	in, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
	if err != nil {
		panic(err)
	}
	fmt.Println(in.Session.ID, in.Token)
}

// A token is good until its session is ended; then its holder learns why.
func ExampleRoll_Kick() {
	ctx := context.Background()
	roll, _ := exampleRoll(rollcall.Options{})

	in, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
	if err != nil {
		panic(err)
	}
	s, err := roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	fmt.Println(s.User, s.Device, err)

	ended, err := roll.Kick(ctx, rollcall.Kick{User: "alice", Reason: "password changed"})
	fmt.Println(ended.Ended, err)

	_, err = roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	var e *rollcall.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Cause, e.Reason)
	}
	// Output:
	// alice ios <nil>
	// 1 <nil>
	// session_ended kicked password changed
}

// A policy of one session each makes the new login replace the old one.
func ExampleRoll_Login() {
	ctx := context.Background()
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: time.Hour, MaxSessions: 1})
	if err != nil {
		panic(err)
	}
	roll, clock := exampleRoll(rollcall.Options{Policies: policies})

	first, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "web"})
	if err != nil {
		panic(err)
	}
	clock.Advance(time.Minute)
	second, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
	if err != nil {
		panic(err)
	}
	for _, e := range second.Ended {
		fmt.Println(e.ID == first.Session.ID, e.Cause)
	}
	fmt.Println(second.Session.ExpiresAt.Sub(second.Session.LoginAt))
	// Output:
	// true replaced
	// 1h0m0s
}

// A policy may reject logins past its limit. The refusal names the sessions in
// the way, so that the user can choose which one to sign out.
func ExampleRoll_Login_evict() {
	ctx := context.Background()
	policies, err := rollcall.NewPolicies(rollcall.Policy{MaxSessions: 1, Overflow: rollcall.Reject})
	if err != nil {
		panic(err)
	}
	roll, _ := exampleRoll(rollcall.Options{Policies: policies})
	if _, err := roll.Login(ctx, rollcall.Login{User: "alice", Device: "tv"}); err != nil {
		panic(err)
	}

	login := rollcall.Login{User: "alice", Device: "web"}
	_, err = roll.Login(ctx, login)
	var refused *rollcall.Error
	if errors.As(err, &refused) && refused.Code == rollcall.CodeSessionLimit {
		for _, s := range refused.Conflicts {
			fmt.Println("in the way:", s.Device)
			login.Evict = append(login.Evict, s.ID) // the user's choice
		}
	}
	in, err := roll.Login(ctx, login)
	fmt.Println(in.Session.Device, len(in.Ended), in.Ended[0].Cause, err)
	// Output:
	// in the way: tv
	// web 1 replaced <nil>
}

// Who was seen within the window is online, to the second.
func ExampleRoll_OnlineCount() {
	ctx := context.Background()
	roll, clock := exampleRoll(rollcall.Options{})

	if err := roll.Beat(ctx, "alice", "bob", "carol"); err != nil {
		panic(err)
	}
	clock.Advance(4 * time.Minute)
	if err := roll.Beat(ctx, "bob"); err != nil {
		panic(err)
	}
	for _, window := range []time.Duration{time.Minute, 5 * time.Minute} {
		n, err := roll.OnlineCount(ctx, window)
		fmt.Println(window, n, err)
	}
	clock.Advance(time.Minute + time.Second)
	n, err := roll.OnlineCount(ctx, 0) // the default window, 5 minutes
	fmt.Println(n, err)
	seen, age, err := roll.LastSeen(ctx, "alice")
	fmt.Println(seen.Format(time.TimeOnly), age, err)
	// Output:
	// 1m0s 1 <nil>
	// 5m0s 3 <nil>
	// 1 <nil>
	// 09:00:00 5m1s <nil>
}

// Of a user's friends, those online are listed, last seen first.
func ExampleRoll_OnlineFriends() {
	ctx := context.Background()
	roll, clock := exampleRoll(rollcall.Options{})

	err := roll.AddFriends(ctx, "alice", true,
		rollcall.Friend{User: "bob"}, rollcall.Friend{User: "carol"}, rollcall.Friend{User: "dave"})
	if err != nil {
		panic(err)
	}
	for _, user := range []string{"carol", "bob", "mallory"} {
		if err := roll.Beat(ctx, user); err != nil {
			panic(err)
		}
		clock.Advance(time.Second)
	}
	page, err := roll.OnlineFriends(ctx, rollcall.FriendQuery{User: "alice", Page: rollcall.PageRequest{Limit: 20}})
	for _, f := range page.Items {
		fmt.Println(f.User, f.LastSeen.Format(time.TimeOnly))
	}
	fmt.Println(page.Total, err)
	// Output:
	// bob 09:00:01
	// carol 09:00:00
	// 2 <nil>
}

// A login marks the day; streaks run over consecutive days.
func ExampleRoll_Attended() {
	ctx := context.Background()
	roll, clock := exampleRoll(rollcall.Options{})

	for _, pause := range []int{0, 1, 2, 1, 1} { // days since the login before
		clock.Advance(time.Duration(pause) * 24 * time.Hour)
		if _, err := roll.Login(ctx, rollcall.Login{User: "alice"}); err != nil {
			panic(err)
		}
	}
	march := rollcall.DayRange{From: rollcall.DateOf(2026, time.March, 1), To: rollcall.DateOf(2026, time.March, 31)}
	a, err := roll.Attended(ctx, "alice", "", march)
	fmt.Println(a.Days, err)
	fmt.Println("longest", a.Streak.Longest, "current", a.Streak.Current)

	clock.Advance(24 * time.Hour)
	a, err = roll.Attended(ctx, "alice", "", march)
	fmt.Println("at risk", a.Streak.AtRisk, err)
	// Output:
	// [2026-03-02 2026-03-03 2026-03-05 2026-03-06 2026-03-07] <nil>
	// longest 3 current 3
	// at risk true <nil>
}

// Active users by day, week and month.
func ExampleRoll_Series() {
	ctx := context.Background()
	roll, _ := exampleRoll(rollcall.Options{})

	today := roll.Today()
	_, _, err := roll.Mark(ctx,
		rollcall.Mark{User: "alice", Day: today}, rollcall.Mark{User: "bob", Day: today},
		rollcall.Mark{User: "bob", Day: today - 1}, rollcall.Mark{User: "carol", Day: today - 8})
	if err != nil {
		panic(err)
	}
	days, err := roll.Series(ctx, rollcall.SeriesQuery{Range: rollcall.DayRange{From: today - 1, To: today}})
	for _, d := range days {
		fmt.Println(d.Day, d.DAU, d.WAU, d.MAU)
	}
	fmt.Println(err)
	// Output:
	// 2026-03-01 1 1 2
	// 2026-03-02 2 2 3
	// <nil>
}

// A cursor walk meets every session that lives throughout exactly once, while
// others come and go.
func ExampleRoll_Sessions() {
	ctx := context.Background()
	roll, clock := exampleRoll(rollcall.Options{})

	login := func(user string) {
		if _, err := roll.Login(ctx, rollcall.Login{User: user, App: "shop"}); err != nil {
			panic(err)
		}
		clock.Advance(time.Second)
	}
	for _, user := range []string{"alice", "bob", "carol", "dave", "erin"} {
		login(user)
	}
	q := rollcall.SessionQuery{
		Filter: rollcall.SessionFilter{App: "shop"},
		Sort:   rollcall.NewestLogin,
		Page:   rollcall.PageRequest{Limit: 2},
	}
	for {
		page, err := roll.Sessions(ctx, q)
		if err != nil {
			panic(err)
		}
		for _, s := range page.Items {
			fmt.Print(s.User, " ")
		}
		fmt.Println("of", page.Total)
		if page.Next == "" {
			return
		}
		q.Page.Cursor = page.Next
		login("frank") // newer than the walk: it shows in the total alone
	}
	// Output:
	// erin dave of 5
	// carol bob of 6
	// alice of 7
}

// Every change is an event; a tail returns those that follow a place.
func ExampleRoll_Tail() {
	ctx := context.Background()
	roll, _ := exampleRoll(rollcall.Options{NoPresenceEvents: true})

	in, err := roll.Login(ctx, rollcall.Login{User: "alice"})
	if err != nil {
		panic(err)
	}
	if _, err := roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID, Reason: "test over"}); err != nil {
		panic(err)
	}
	events, err := roll.Tail(ctx, "", 10)
	for _, e := range events {
		fmt.Printf("%s of %s: %q, %q\n", e.Type, e.User, e.Cause, e.Reason)
	}
	fmt.Println(err)
	// Output:
	// session.started of alice: "", ""
	// session.ended of alice: "kicked", "test over"
	// <nil>
}

// What was online is kept by minute, for 8 days, and by hour.
func ExampleRoll_Samples() {
	ctx := context.Background()
	roll, clock := exampleRoll(rollcall.Options{})

	for _, user := range []string{"alice", "bob"} {
		fmt.Println(roll.Tick(ctx)) // a Roll on the system's clock does this by itself
		_, err := roll.Login(ctx, rollcall.Login{User: user})
		fmt.Println(err)
		clock.Advance(time.Minute)
	}
	fmt.Println(roll.Tick(ctx))

	samples, err := roll.Samples(ctx, rollcall.SampleQuery{})
	for _, s := range samples {
		fmt.Println(s.At.Format("15:04"), s.Online, "online,", s.Logins, "logins")
	}
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// <nil>
	// 09:00 0 online, 1 logins
	// 09:01 1 online, 1 logins
	// <nil>
}

// Visitors of a page are counted without keeping who they are.
func ExampleRoll_Visitors() {
	ctx := context.Background()
	roll, clock := exampleRoll(rollcall.Options{})

	err := roll.Visit(ctx, "/pricing", "cookie-1", "cookie-2")
	fmt.Println(err)
	clock.Advance(24 * time.Hour)
	err = roll.Visit(ctx, "/pricing", "cookie-2", "cookie-3")
	fmt.Println(err)

	today := roll.Today()
	f, err := roll.Visitors(ctx, rollcall.VisitQuery{
		Name: "/pricing", From: roll.DayStart(today - 1), To: roll.DayStart(today + 1),
	})
	fmt.Println(f.Total, f.Items[0].Visitors, f.Items[1].Visitors, err)
	// Output:
	// <nil>
	// <nil>
	// 3 2 2 <nil>
}

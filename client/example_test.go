package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

// serve runs a server for an example, and returns a client of it.
func serve() (*client.Client, func()) {
	dir, err := os.MkdirTemp("", "rollcall")
	must(err)
	engine, err := local.Open(dir, local.Options{})
	must(err)
	policies, err := rollcall.NewPolicies(rollcall.Policy{App: "bank", MaxSessions: 1, Overflow: rollcall.Reject})
	must(err)
	roll, err := rollcall.New(engine, rollcall.Options{Policies: policies})
	must(err)
	_, key, err := roll.CreateKey(context.Background(), rollcall.NewKey{Name: "example", Role: rollcall.RoleAdmin})
	must(err)
	handler, err := httpapi.New(roll, httpapi.Options{})
	must(err)
	server := httptest.NewServer(handler)
	c, err := client.New(server.URL, client.Options{Key: key})
	must(err)
	return c, func() {
		server.Close()
		must(errors.Join(c.Close(), roll.Close(), engine.Close(), os.RemoveAll(dir)))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleNew() {
	address, key := os.Getenv("ROLLCALL_SERVER"), os.Getenv("ROLLCALL_KEY")
	if address == "" {
		address = "http://127.0.0.1:8080"
	}
	c, err := client.New(address, client.Options{Key: key, Timeout: 5 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println("nothing has been sent yet")
	// Output: nothing has been sent yet
}

func ExampleClient_Login() {
	c, stop := serve()
	defer stop()
	ctx := context.Background()

	in, err := c.Login(ctx, rollcall.Login{User: "alice", Device: "ios"})
	must(err)
	live, err := c.Touch(ctx, rollcall.SessionRef{Token: in.Token})
	must(err)
	n, err := c.OnlineCount(ctx, 5*time.Minute)
	must(err)
	fmt.Println(live.User, "is online, as one of", n)
	// Output: alice is online, as one of 1
}

// A policy may reject a login. The error names the sessions in the way, and the
// application may ask its user which one to end.
func ExampleClient_Login_sessionLimit() {
	c, stop := serve()
	defer stop()
	ctx := context.Background()

	login := rollcall.Login{User: "alice", App: "bank", Device: "web"}
	_, err := c.Login(ctx, login)
	must(err)
	login.Device = "ios"
	_, err = c.Login(ctx, login)
	var refused *rollcall.Error
	if errors.As(err, &refused) && refused.Code == rollcall.CodeSessionLimit {
		fmt.Println("in the way:", refused.Conflicts[0].Device)
		login.Evict = []rollcall.SessionID{refused.Conflicts[0].ID}
	}
	in, err := c.Login(ctx, login)
	must(err)
	fmt.Println("ended:", len(in.Ended))
	// Output:
	// in the way: web
	// ended: 1
}

func ExampleClient_Kick() {
	c, stop := serve()
	defer stop()
	ctx := context.Background()

	in, err := c.Login(ctx, rollcall.Login{User: "alice"})
	must(err)
	out, err := c.Kick(ctx, rollcall.Kick{User: "alice", Reason: "house rules"})
	must(err)
	fmt.Println("ended:", out.Ended)

	_, err = c.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	var ended *rollcall.Error
	if errors.As(err, &ended) && errors.Is(err, rollcall.ErrSessionEnded) {
		fmt.Println(ended.Cause, "because of", ended.Reason)
	}
	// Output:
	// ended: 1
	// kicked because of house rules
}

func ExampleClient_AllSessions() {
	c, stop := serve()
	defer stop()
	ctx := context.Background()

	for _, user := range []string{"alice", "bob", "carol"} {
		_, err := c.Login(ctx, rollcall.Login{User: user, Device: "web"})
		must(err)
	}
	onTheWeb := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Device: "web"}}
	for s, err := range c.AllSessions(ctx, onTheWeb) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.User)
	}
	// Unordered output:
	// alice
	// bob
	// carol
}

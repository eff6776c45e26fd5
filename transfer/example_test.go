package transfer_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/transfer"
)

// Both sides need the same secret: with it tokens stay valid, and bans are found.
func Example() {
	ctx := context.Background()
	secret := []byte("32 bytes that only servers know.")
	open := func(dir string) (*rollcall.Roll, func()) {
		engine, err := local.Open(dir, local.Options{InMemory: true})
		if err != nil {
			panic(err)
		}
		roll, err := rollcall.New(engine, rollcall.Options{Secret: secret})
		if err != nil {
			panic(err)
		}
		return roll, func() { _, _ = roll.Close(), engine.Close() }
	}
	from, closeFrom := open("from")
	defer closeFrom()
	to, closeTo := open("to")
	defer closeTo()

	alice, err := from.Login(ctx, rollcall.Login{User: "alice", Device: "web"})
	if err != nil {
		panic(err)
	}
	var everything bytes.Buffer
	if _, err := transfer.Export(ctx, from, &everything, nil); err != nil {
		panic(err)
	}
	stream, err := transfer.Open(&everything)
	if err != nil {
		panic(err)
	}
	defer stream.Close()
	summary, err := stream.Import(ctx, to, transfer.Options{})
	if err != nil {
		panic(err)
	}
	session, err := to.Verify(ctx, rollcall.SessionRef{Token: alice.Token})
	if err != nil {
		panic(err)
	}
	fmt.Println(summary.Snapshots, "user moved:", session.User, "is still logged in")
	// Output: 1 user moved: alice is still logged in
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

// serveVar names the variable that makes this test binary a server over the
// data directory it holds, instead of running tests.
const serveVar = "ROLLCALL_E2E_SERVE"

const (
	adminKey = "rck_0123456789abcdefghijklmnopqrstuv"
	secret   = "an e2e server's secret, 32 bytes "
)

func TestMain(m *testing.M) {
	dir := os.Getenv(serveVar)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := serve(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves the API over a data directory on a free port, which it prints,
// until the process is killed.
func serve(ctx context.Context, dir string) error {
	engine, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte(secret)})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	_, _, err = roll.CreateKey(ctx, rollcall.NewKey{Name: "e2e", Role: rollcall.RoleAdmin, Text: adminKey})
	if err != nil {
		return errors.Join(err, roll.Close(), engine.Close())
	}
	off := httpapi.Limit{Rate: -1}
	api, err := httpapi.New(roll, httpapi.Options{RateLimits: httpapi.RateLimits{Key: off, Address: off, Failures: off}})
	if err != nil {
		return errors.Join(err, roll.Close(), engine.Close())
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, roll.Close(), engine.Close())
	}
	fmt.Printf("serving at http://%s\n", listener.Addr())
	return errors.Join(http.Serve(listener, api), roll.Close(), engine.Close()) //nolint:gosec // killed, never timed out
}

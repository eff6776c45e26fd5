package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

type healthCmd struct {
	Context string `name:"context" placeholder:"NAME" group:"server" help:"Ask the server of this context (or ROLLCALL_CONTEXT)."`
	Server  string `placeholder:"URL" group:"server" help:"Ask this server (or ROLLCALL_SERVER)."`
	Timeout string `placeholder:"5s" help:"How long to wait for the answer (default: 5s)."`
	JSON    bool   `help:"As JSON."`
}

// healthWait is how long health waits for the answer unless told otherwise. It is
// more than a server on Redis needs to give up on Redis.
const healthWait = 5 * time.Second

// Help is the verb's own part of its help.
func (healthCmd) Help() string {
	return `Asks whether the server can read and write, and takes new requests. Exit
status 0: ready. 1: not, and why. It needs no key, so a health check of a
container can run it. Without --server it asks the server that the ROLLCALL_…
variables and rollcall.yaml of this place describe.`
}

// Run asks the server once.
func (c *healthCmd) Run(a *app) error {
	wait, err := durationFlag("--timeout", c.Timeout)
	if err != nil {
		return err
	}
	if wait == 0 {
		wait = healthWait
	}
	at, own, err := c.find(a)
	if err != nil {
		return err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if own {
		// The certificate names what others call this server, not the address that it
		// listens on. The question and its answer hold no secret.
		transport.Proxy, transport.TLSClientConfig = nil, &tls.Config{InsecureSkipVerify: true} //nolint:gosec // see above
	}
	defer transport.CloseIdleConnections()
	asked, err := client.New(at, client.Options{HTTPClient: &http.Client{Transport: transport}, Timeout: wait})
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := context.WithTimeout(a.ctx, wait)
	defer cancel()
	return c.report(a, at, asked.Ready(ctx))
}

// find returns the address to ask, and whether it is that of this place's own server.
func (c *healthCmd) find(a *app) (server string, own bool, err error) {
	named := target{Context: c.Context, Server: c.Server, Key: "none"} // so that none is looked for
	at, err := named.find(a)
	if err != nil {
		return "", false, err
	}
	conf, err := (&settings{}).load(a)
	own = err == nil && strings.HasSuffix(at.server, "://"+conf.listen)
	return at.server, own, nil
}

// report says what was found out.
func (c *healthCmd) report(a *app, server string, err error) error {
	if c.JSON {
		said := map[string]any{"server": server, "ready": err == nil}
		if err != nil {
			said["reason"] = message(err)
		}
		if err := printJSON(a.stdout, said); err != nil {
			return err
		}
	} else if err == nil {
		fmt.Fprintf(a.stdout, "The server at %s is ready.\n", server)
	}
	var failed *rollcall.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && failed.Err != nil:
		return fmt.Errorf("no server answers at %s (%w)", server, failed.Err)
	}
	return fmt.Errorf("the server at %s is not ready: %s", server, message(err))
}

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/loadgen"
	"github.com/rollcall/rollcall/local"
)

// The values of --target that are not the library.
const (
	targetHTTP = "http"
	targetUDP  = "udp"
	targetRESP = "resp"
)

// bench is what is put under load, open.
type bench struct {
	loadgen.Target
	place place // of a server; zero for the library
	// arrived tells what became of beats by UDP; nil for another target.
	arrived func(a *app) (*loadgen.Arrived, error)
	stays   bool // the users are still there afterwards
	closers []func() error
}

func (b *bench) close() error {
	var errs []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		errs = append(errs, b.closers[i]())
	}
	return errors.Join(errs...)
}

// explain words why a server could not be asked.
func (b *bench) explain(err error) error {
	if b.place.server == "" {
		return err
	}
	return b.place.explain(err)
}

// leave says which users stay behind, and how they go.
func (b *bench) leave(a *app) {
	if b.stays {
		fmt.Fprintf(a.stderr, "The users of the run are still there. To erase them:\n  rollcall bench --target http --clean --server %s\n", b.place.server)
	}
}

// open opens the target.
func (c *benchCmd) open(a *app) (*bench, error) {
	b := &bench{Target: loadgen.Target{Name: c.Against}}
	var err error
	switch c.Against {
	case targetHTTP:
		err = b.openServer(a, c)
	case targetUDP:
		if err = b.openServer(a, c); err == nil && !c.Clean {
			err = b.openUDP(a, c.UDP)
		}
	case targetRESP:
		if err = b.openServer(a, c); err == nil && !c.Clean {
			err = b.openRESP(a, c.RESP)
		}
	default:
		err = b.openLibrary(c)
	}
	if err != nil {
		return nil, errors.Join(b.explain(err), b.close())
	}
	return b, nil
}

// openLibrary opens an engine in a directory of its own.
func (b *bench) openLibrary(c *benchCmd) error {
	if c.Clean || c.Server != "" || c.Context != "" {
		return usageError{errors.New("--clean, --server and --context are for --target http")}
	}
	dir, err := b.libraryDir(c.DataDir)
	if err != nil {
		return err
	}
	engine, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, engine.Close)
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		return err
	}
	b.closers = append(b.closers, roll.Close)
	b.Service, b.Setup = roll, roll
	return nil
}

// libraryDir returns a directory without data: one that goes afterwards, or one that
// was named and stays.
func (b *bench) libraryDir(named string) (string, error) {
	if named == "" {
		dir, err := os.MkdirTemp("", "rollcall-bench-")
		b.closers = append(b.closers, func() error { return os.RemoveAll(dir) })
		return dir, err
	}
	inside, err := os.ReadDir(named)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if len(inside) > 0 {
		return "", usageError{fmt.Errorf("--data-dir: %s is not empty: a run makes users, so it takes no data that is there", named)}
	}
	b.Where = named
	return named, nil
}

// openServer opens a server over HTTP.
func (b *bench) openServer(a *app, c *benchCmd) error {
	var err error
	if b.place, err = c.find(a); err != nil {
		return err
	}
	for _, address := range []string{b.place.server, "udp://" + c.UDP, "redis://" + c.RESP} {
		if u, err := url.Parse(address); !c.AllowRemote && (err != nil || u.Host != "" && !onThisMachine(u.Hostname())) {
			return usageError{fmt.Errorf("%s is not on this machine: a run makes users there and may slow it down. Say --allow-remote if that is meant", address)}
		}
	}
	transport, err := transportFor(c.Connections)
	if err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { transport.CloseIdleConnections(); return nil })
	open := func(attempts int) (*client.Client, error) {
		return client.New(b.place.server, client.Options{Key: b.place.key, Attempts: attempts, HTTPClient: &http.Client{Transport: transport}})
	}
	once, err := open(1) // a retry would hide what is measured
	if err != nil {
		return usageError{err}
	}
	again, err := open(0)
	if err != nil {
		return err
	}
	b.Service, b.Setup, b.Where, b.stays = once, again, b.place.server, !c.Clean
	if c.Clean || c.Yes {
		return nil
	}
	return b.confirmOthers(a, c, again)
}

// confirmOthers asks before a load comes to a server that is in use: its users or its
// webhooks tell. An address on this machine does not tell, as a proxy may stand there.
func (b *bench) confirmOthers(a *app, c *benchCmd, asked *client.Client) error {
	used, err := loadgen.HasOthers(a.ctx, asked)
	if err != nil {
		return err
	}
	has := "users of its own"
	if !used {
		hooks, err := asked.Webhooks(a.ctx)
		if err != nil && !errors.Is(err, rollcall.ErrForbidden) { // else the key may not ask
			return err
		}
		if len(hooks) == 0 {
			return nil
		}
		has = "webhooks"
	}
	return a.confirm(fmt.Sprintf("%s has %s. This makes %s there who count in online and in days until --clean erases them, and their events go to all readers and webhooks.",
		b.place.server, has, counted(int64(c.Users), "user")))
}

func onThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && addr.IsLoopback())
}

// transportFor keeps so many connections open. HTTP/2 would put all requests on one.
func transportFor(connections int) (*http.Transport, error) {
	common, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport is not net/http's")
	}
	t := common.Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = connections, connections, connections
	t.IdleConnTimeout = 5 * time.Minute
	t.ForceAttemptHTTP2, t.Protocols = false, new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	return t, nil
}

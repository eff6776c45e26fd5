package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/httpapi"
)

// target are the flags of every verb that asks a server: which one, and as whom.
type target struct {
	Context string `name:"context" placeholder:"NAME" group:"server" help:"Ask the server of this context (or ROLLCALL_CONTEXT)."`
	Server  string `placeholder:"URL" group:"server" help:"Ask this server (or ROLLCALL_SERVER)."`
	Key     string `placeholder:"KEY" group:"server" help:"API key (better: ROLLCALL_KEY, as others see flags)."`
	DataDir string `name:"data-dir" placeholder:"DIR" group:"server" help:"Data directory of a server of this machine, which has its first key."`
}

// place is the server that a verb asks, and the key that it asks with.
type place struct {
	server, key string
	keyFrom     string // where the key was found; "" without one
}

// find decides which server is asked. In this order: the flags, the variables, the
// context in use, and at last the server of this machine, whose address and data
// directory the configuration names.
func (t *target) find(a *app) (place, error) {
	saved, err := readContexts()
	if err != nil {
		return place{}, err
	}
	key, from := t.Key, "--key"
	if key == "" {
		key, from = a.variable("ROLLCALL_KEY"), "ROLLCALL_KEY"
	}
	if key == "" {
		from = ""
	}

	server, name := t.Server, t.Context
	if server == "" && name == "" && t.DataDir == "" {
		if server, name = a.variable("ROLLCALL_SERVER"), a.variable("ROLLCALL_CONTEXT"); server != "" {
			name = ""
		}
		if server == "" && name == "" {
			name = saved.Current
		}
	}
	switch {
	case t.Server != "" && t.Context != "":
		return place{}, usageError{errors.New("--server and --context: give one of them")}
	case server != "" && t.DataDir != "" && key == "":
		at, err := t.ofThisMachine(a, key, from) // whoever names both wants the key of one sent to the other
		at.server = server
		return at, err
	case server != "":
		return place{server: server, key: key, keyFrom: from}, nil
	case name != "":
		c, err := saved.find(name)
		if key == "" && c.Key != "" {
			key, from = c.Key, fmt.Sprintf("the context %q", name)
		}
		return place{server: c.Server, key: key, keyFrom: from}, err
	}
	return t.ofThisMachine(a, key, from)
}

// ofThisMachine is the server that the configuration describes. Its first key is in
// its data directory, where its owner can read it.
func (t *target) ofThisMachine(a *app, key, from string) (place, error) {
	conf, err := (&settings{DataDir: t.DataDir}).load(a)
	if err != nil {
		return place{}, err
	}
	at := place{server: "http://" + conf.listen, key: key, keyFrom: from}
	if conf.tlsCert != "" {
		at.server = "https://" + conf.listen
	}
	if key != "" || conf.http.Auth == httpapi.AuthOff {
		return at, nil
	}
	path := filepath.Join(conf.dataDir, keyFile)
	text, err := os.ReadFile(path)
	switch {
	case err == nil:
		at.key, at.keyFrom = strings.TrimSpace(string(text)), path
	case conf.adminKey != "":
		at.key, at.keyFrom = conf.adminKey, "admin_key"
	case errors.Is(err, os.ErrPermission):
		return at, fmt.Errorf("%s belongs to whoever started the server: put a key of your own into ROLLCALL_KEY, or into a context", path)
	}
	return at, nil
}

// variable returns an environment variable.
func (a *app) variable(name string) string {
	found := ""
	for _, e := range a.environ {
		if text, ok := strings.CutPrefix(e, name+"="); ok {
			found = text
		}
	}
	return found
}

// ask finds the server and runs a verb's questions.
func (t *target) ask(a *app, run func(*client.Client) error) error {
	at, err := t.find(a)
	if err != nil {
		return err
	}
	c, err := client.New(at.server, client.Options{Key: at.key})
	if err != nil {
		return usageError{err}
	}
	err = run(c)
	return errors.Join(at.explain(err), c.Close())
}

// explain words why a server could not be asked, and what to do about it.
func (at *place) explain(err error) error {
	var e *rollcall.Error
	if !errors.As(err, &e) {
		return err
	}
	asWhom := "no key"
	if at.keyFrom != "" {
		asWhom = "the key from " + at.keyFrom
	}
	switch {
	case e.Code == rollcall.CodeUnavailable && e.Err != nil:
		return fmt.Errorf("no server answers at %s (%w)\nIs it running? Start one with \"rollcall serve\", or name another with --server or --context", at.server, e.Err)
	case e.Code == rollcall.CodeUnauthenticated && at.key == "":
		return fmt.Errorf("the server at %s wants an API key: put one into ROLLCALL_KEY, or keep it with \"rollcall context add\"", at.server)
	case e.Code == rollcall.CodeUnauthenticated:
		return fmt.Errorf("the server at %s does not take %s: %s", at.server, asWhom, cmp.Or(e.Detail, string(e.Code)))
	case e.Code == rollcall.CodeForbidden:
		return fmt.Errorf("%s\nThe server at %s was asked with %s", e.Detail, at.server, asWhom)
	}
	return err
}

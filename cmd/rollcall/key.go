package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key and show it, once."`
	List   keyListCmd   `cmd:"" help:"List the keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key."`
}

// Help is the verb's own part of its help.
func (keyCmd) Help() string {
	return `The key verbs work on the data directory. While a server has it open they ask
that server, at --server or else the address of --listen, with --key, the key
in ROLLCALL_KEY, or the one in admin.key of the data directory.`
}

// keyRecord is an API key without its text, as the HTTP API shows it.
type keyRecord struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Role      rollcall.Role `json:"role"`
	CreatedAt instant       `json:"created_at"`
	ExpiresAt instant       `json:"expires_at,omitempty"`
	Key       string        `json:"key,omitempty"`
	BeatKey   string        `json:"beat_key,omitempty"`
}

func recordOf(k rollcall.APIKey) keyRecord {
	return keyRecord{ID: k.ID, Name: k.Name, Role: k.Role, CreatedAt: instantOf(k.CreatedAt), ExpiresAt: instantOf(k.ExpiresAt)}
}

// keys is where the key verbs work: a data directory, or a running server.
type keys interface {
	create(role rollcall.Role, name string, ttl time.Duration) (keyRecord, error)
	list() ([]keyRecord, error)
	revoke(id string) error
	close() error
}

// keyholder says which server to ask, and as whom.
type keyholder struct {
	settings
	Server string `placeholder:"URL" help:"Ask this server and not the data directory."`
	Key    string `placeholder:"KEY" help:"Admin key to ask with (better: the variable ROLLCALL_KEY)."`
}

// openKeys opens the data directory, or finds the server that has it open.
// Only where create says so it makes new data.
func (h *keyholder) openKeys(a *app, create bool) (keys, error) {
	conf, err := h.load(a)
	if err != nil {
		return nil, err
	}
	conf.create = create
	if h.Server != "" {
		return h.remote(a, conf)
	}
	engine, err := conf.openEngine(a)
	if errors.Is(err, local.ErrInUse) {
		return h.remote(a, conf)
	}
	if err != nil {
		return nil, err
	}
	roll, err := conf.openRoll(engine)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return &localKeys{a, engine, roll}, nil
}

// localKeys are the keys of a data directory.
type localKeys struct {
	app    *app
	engine rollcall.Engine
	roll   *rollcall.Roll
}

func (k *localKeys) create(role rollcall.Role, name string, ttl time.Duration) (keyRecord, error) {
	key, text, err := k.roll.CreateKey(k.app.ctx, rollcall.NewKey{Name: name, Role: role, TTL: ttl})
	out := recordOf(key)
	out.Key = text
	if err == nil && key.Role.Allows(rollcall.RoleWriter) {
		beatKey := k.roll.KeyBeatKey([8]byte(key.Hash[:8]))
		out.BeatKey = hex.EncodeToString(beatKey[:])
	}
	return out, err
}

func (k *localKeys) list() ([]keyRecord, error) {
	all, err := k.roll.Keys(k.app.ctx)
	out := make([]keyRecord, len(all))
	for i, key := range all {
		out[i] = recordOf(key)
	}
	return out, err
}

func (k *localKeys) revoke(id string) error { return k.roll.RevokeKey(k.app.ctx, id) }

func (k *localKeys) close() error { return errors.Join(k.roll.Close(), k.engine.Close()) }

type keyCreateCmd struct {
	keyholder
	Role string `required:"" enum:"reader,writer,admin" help:"reader, writer or admin."`
	Name string `help:"What the key is for."`
	TTL  string `name:"ttl" default:"0" help:"Time after which it expires, such as 90d; 0 for never."`
	JSON bool   `help:"As JSON."`

	Create bool `help:"Make new data if there is none in the data directory."`
}

// Run makes a key.
func (c *keyCreateCmd) Run(a *app) error {
	ttl, err := rollcall.ParseDuration(c.TTL)
	if err != nil || ttl < 0 {
		return usageError{fmt.Errorf("--ttl: must be a duration such as 12h or 90d, is %q", c.TTL)}
	}
	k, err := c.openKeys(a, c.Create)
	if err != nil {
		return err
	}
	key, err := k.create(rollcall.Role(c.Role), c.Name, ttl)
	if err := errors.Join(err, k.close()); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(key)
	}
	fmt.Fprintln(a.stdout, key.Key)
	fmt.Fprintf(a.stderr, "Key %s, role %s. It is shown this once: keep it safe.\n", key.ID, key.Role)
	if key.BeatKey != "" {
		fmt.Fprintf(a.stderr, "Beat key, for UDP beats of a gateway: %s\n", key.BeatKey)
	}
	return nil
}

type keyListCmd struct {
	keyholder
	JSON bool `help:"As JSON."`
}

// Run lists the keys.
func (c *keyListCmd) Run(a *app) error {
	k, err := c.openKeys(a, false)
	if err != nil {
		return err
	}
	all, err := k.list()
	if err := errors.Join(err, k.close()); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(a.stdout).Encode(all)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tROLE\tNAME\tCREATED\tEXPIRES")
	for _, k := range all {
		expires := "never"
		if k.ExpiresAt != "" {
			expires = k.ExpiresAt.time().Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.ID, k.Role, k.Name, k.CreatedAt.time().Format(time.DateTime), expires)
	}
	return w.Flush()
}

type keyRevokeCmd struct {
	keyholder
	ID string `arg:"" help:"The key's id, as listed."`
}

// Run revokes a key.
func (c *keyRevokeCmd) Run(a *app) error {
	k, err := c.openKeys(a, false)
	if err != nil {
		return err
	}
	if err := errors.Join(k.revoke(c.ID), k.close()); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "Key %s is revoked.\n", c.ID)
	return nil
}

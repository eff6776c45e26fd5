package transfer

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// Version is that of the stream's form. A reader knows only its own.
const Version = 3

// line is a line of the stream: one of its fields is set.
type line struct {
	Export   *Header       `json:"export"`
	Snapshot *snapshotLine `json:"snapshot"`
	APIKey   *apiKey       `json:"api_key"`
	Webhook  *webhook      `json:"webhook"`
	End      *trailer      `json:"end"`
}

// Header begins a stream. Users and Sessions are what there was when the export
// began; the trailer counts what was written.
type Header struct {
	Version   int       `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	Engine    string    `json:"engine"` // it comes from
	Timezone  string    `json:"timezone"`
	SecretID  string    `json:"secret_id"`
	Users     int       `json:"users"`
	Sessions  int       `json:"sessions"`
}

// Counts are how much a stream holds.
type Counts struct {
	Snapshots int `json:"snapshots"`
	Sessions  int `json:"sessions"` // live
	Ended     int `json:"ended"`
	Friends   int `json:"friends"`
	Days      int `json:"days"`
	Bans      int `json:"bans"`
	APIKeys   int `json:"api_keys"`
	Webhooks  int `json:"webhooks"`
}

func (c *Counts) add(d *rollcall.UserSnapshot) {
	c.Snapshots++
	c.Sessions += len(d.Sessions)
	c.Ended += len(d.Ended)
	c.Friends += len(d.Friends)
	c.Bans += len(d.Bans)
	for _, days := range d.Days {
		c.Days += len(days)
	}
}

// trailer ends a stream.
type trailer struct {
	Counts
	SHA256 string `json:"sha256"` // of all lines before, their ends included
}

// snapshotLine is a [rollcall.UserSnapshot] as it is written.
type snapshotLine struct {
	User      string              `json:"user"`
	Kind      string              `json:"kind"`
	Name      string              `json:"name"`
	Invisible bool                `json:"invisible"`
	Frozen    time.Time           `json:"frozen"`
	LastSeen  time.Time           `json:"last_seen"`
	Gone      bool                `json:"gone"`
	Friends   list[friend]        `json:"friends"`
	Days      map[string][]string `json:"days"`
	Sessions  list[session]       `json:"sessions"`
	Ended     list[session]       `json:"ended"`
	Bans      list[ban]           `json:"bans"`
}

type friend struct {
	User  string    `json:"user"`
	Since time.Time `json:"since"`
}

type session struct {
	ID         rollcall.SessionID `json:"id"`
	Token      string             `json:"token"`
	Kind       string             `json:"kind"`
	Name       string             `json:"name"`
	App        string             `json:"app"`
	Device     string             `json:"device"`
	DeviceID   string             `json:"device_id"`
	IP         netip.Addr         `json:"ip"`
	UserAgent  string             `json:"user_agent"`
	Attrs      map[string]string  `json:"attrs"`
	LoginAt    time.Time          `json:"login_at"` // as the id says
	SeenAt     time.Time          `json:"seen_at"`
	ExpiresAt  time.Time          `json:"expires_at"`
	EndsAt     time.Time          `json:"ends_at"`
	IdleMS     int64              `json:"idle_ms"`
	LifetimeMS int64              `json:"lifetime_ms"`
	End        *end               `json:"end"`
}

type end struct {
	At     time.Time      `json:"at"`
	Cause  rollcall.Cause `json:"cause"`
	Reason string         `json:"reason"`
	Actor  string         `json:"actor"`
}

type ban struct {
	Key    string    `json:"key"`
	Home   uint16    `json:"home"`
	Bits   uint8     `json:"home_bits"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
	Actor  string    `json:"actor"`
}

type apiKey struct {
	ID        string        `json:"id"`
	Hash      string        `json:"hash"`
	Name      string        `json:"name"`
	Role      rollcall.Role `json:"role"`
	CreatedAt time.Time     `json:"created_at"`
	ExpiresAt time.Time     `json:"expires_at"`
}

// webhook is a [rollcall.Webhook] as it is written: without what holds in its own store
// alone, such as its place in the log of events.
type webhook struct {
	ID          string               `json:"id"`
	URL         string               `json:"url"`
	Description string               `json:"description,omitempty"`
	Types       []rollcall.EventType `json:"types,omitempty"`
	User        string               `json:"user,omitempty"`
	Cause       rollcall.Cause       `json:"cause,omitempty"`
	Invisible   bool                 `json:"invisible,omitempty"`
	Batch       bool                 `json:"batch,omitempty"`
	CreatedAt   time.Time            `json:"created_at"`
	Generation  uint64               `json:"generation"`
	RotatedAt   time.Time            `json:"rotated_at,omitzero"`
	Rotated     []time.Time          `json:"rotated_before,omitempty"`
	Disabled    rollcall.WebhookStop `json:"disabled,omitempty"`
	DisabledAt  time.Time            `json:"disabled_at,omitzero"`
}

// list is an array of objects that each say what they are of. An empty one would
// cost an import a hundred times the memory that it has bytes.
type list[T interface{ whole() bool }] []T

func (f friend) whole() bool  { return f.User != "" }
func (s session) whole() bool { return s.ID != rollcall.SessionID{} && s.Token != "" }
func (b ban) whole() bool     { return b.Key != "" }

// UnmarshalJSON implements [json.Unmarshaler].
func (l *list[T]) UnmarshalJSON(b []byte) error {
	d := strict(b)
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return errors.Join(errors.New("not an array"), err)
	}
	for d.More() {
		var item T
		if err := d.Decode(&item); err != nil {
			return err
		}
		if !item.whole() {
			return fmt.Errorf("item %d of an array is empty", len(*l)+1)
		}
		*l = append(*l, item)
	}
	return nil
}

// unhex reads exactly as many bytes as there is room for.
func unhex(into []byte, text, what string) error {
	if hex.DecodedLen(len(text)) != len(into) || len(text)%2 != 0 {
		return fmt.Errorf("%s has %d characters, not %d", what, len(text), hex.EncodedLen(len(into)))
	}
	if _, err := hex.Decode(into, []byte(text)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// snapshot returns what the line stands for.
func (in *snapshotLine) snapshot() (rollcall.UserSnapshot, error) {
	d := rollcall.UserSnapshot{
		User: in.User, Kind: in.Kind, Name: in.Name, Invisible: in.Invisible, Frozen: in.Frozen, LastSeen: in.LastSeen, Gone: in.Gone,
	}
	if len(in.Friends) > 0 {
		d.Friends = make([]rollcall.Friend, len(in.Friends))
	}
	for i, f := range in.Friends {
		d.Friends[i] = rollcall.Friend{User: f.User, Since: f.Since}
	}
	var err error
	if d.Days, err = parseDays(in.Days); err != nil {
		return d, err
	}
	if d.Sessions, err = sessionsOf(in.User, in.Sessions); err != nil {
		return d, err
	}
	if d.Ended, err = sessionsOf(in.User, in.Ended); err != nil {
		return d, err
	}
	for _, b := range in.Bans {
		kept := rollcall.BanSnapshot{Home: b.Home, Bits: b.Bits, Ban: rollcall.Ban{User: in.User, At: b.At, Until: b.Until, Reason: b.Reason, Actor: b.Actor}}
		if err := unhex(kept.Key[:], b.Key, "the key of a ban"); err != nil {
			return d, err
		}
		d.Bans = append(d.Bans, kept)
	}
	return d, nil
}

// parseDays reads days, and spans of days as two joined by a slash. They ascend, so
// that no more can be written than there are.
func parseDays(in map[string][]string) (map[string][]rollcall.Day, error) {
	if len(in) == 0 {
		return nil, nil
	}
	if len(in) > rollcall.MaxKinds {
		return nil, fmt.Errorf("days of %d kinds, over the limit of %d", len(in), rollcall.MaxKinds)
	}
	out, total := make(map[string][]rollcall.Day, len(in)), 0
	for kind, list := range in {
		days := make([]rollcall.Day, 0, len(list))
		for _, text := range list {
			first, last, span := strings.Cut(text, "/")
			from, err := rollcall.ParseDay(first)
			if err != nil {
				return nil, err
			}
			to := from
			if span {
				if to, err = rollcall.ParseDay(last); err != nil {
					return nil, err
				}
			}
			n := int(to) - int(from) + 1
			if total += n; n < 1 || total > maxDays {
				return nil, fmt.Errorf("%q is no span of days, or goes over the limit of %d days", text, maxDays)
			}
			if n := len(days); n > 0 && from <= days[n-1] {
				return nil, fmt.Errorf("%q does not come after the days before it", text)
			}
			for ; from <= to; from++ {
				days = append(days, from)
			}
		}
		out[kind] = days
	}
	return out, nil
}

// maxDays bounds the days of one user: 270 years.
const maxDays = 100_000

func sessionsOf(user string, in list[session]) ([]rollcall.SessionSnapshot, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]rollcall.SessionSnapshot, len(in))
	for i := range in {
		s, to := &in[i], &out[i]
		to.Session = rollcall.Session{
			ID: s.ID, User: user, Kind: s.Kind, Name: s.Name, App: s.App, Device: s.Device, DeviceID: s.DeviceID, IP: s.IP,
			UserAgent: s.UserAgent, Attrs: s.Attrs, LoginAt: s.LoginAt, SeenAt: s.SeenAt, ExpiresAt: s.ExpiresAt, EndsAt: s.EndsAt,
		}
		to.Idle, to.Lifetime = time.Duration(s.IdleMS)*time.Millisecond, time.Duration(s.LifetimeMS)*time.Millisecond
		if s.End != nil {
			to.End = &rollcall.End{At: s.End.At, Cause: s.End.Cause, Reason: s.End.Reason, Actor: s.End.Actor}
		}
		if err := unhex(to.Token[:], s.Token, "the hash of a token"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (in *apiKey) key() (rollcall.APIKey, error) {
	k := rollcall.APIKey{ID: in.ID, Name: in.Name, Role: in.Role, CreatedAt: in.CreatedAt, ExpiresAt: in.ExpiresAt}
	return k, unhex(k.Hash[:], in.Hash, "the hash of an API key")
}

// utc is nil for no times.
func utc(times []time.Time) []time.Time {
	var out []time.Time
	for _, t := range times {
		out = append(out, t.UTC())
	}
	return out
}

func webhookLine(w *rollcall.Webhook) webhook {
	return webhook{
		ID: w.ID, URL: w.URL, Description: w.Description, Types: w.Filter.Types, User: w.Filter.User, Cause: w.Filter.Cause,
		Invisible: w.Invisible, Batch: w.Batch, CreatedAt: w.CreatedAt.UTC(), Generation: w.Generation, RotatedAt: w.RotatedAt.UTC(), Rotated: utc(w.RotatedBefore),
		Disabled: w.Disabled, DisabledAt: w.DisabledAt.UTC(),
	}
}

func (in *webhook) webhook() rollcall.Webhook {
	return rollcall.Webhook{
		ID: in.ID, URL: in.URL, Description: in.Description, Invisible: in.Invisible, Batch: in.Batch,
		Filter:    rollcall.EventFilter{Types: in.Types, User: in.User, Cause: in.Cause},
		CreatedAt: in.CreatedAt, Generation: in.Generation, RotatedAt: in.RotatedAt, RotatedBefore: in.Rotated,
		Disabled: in.Disabled, DisabledAt: in.DisabledAt,
	}
}

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// conditions choose sessions.
type conditions struct {
	User        []string          `placeholder:"USER" help:"Of this user; more than once for several." sep:"none"`
	Kind        string            `placeholder:"KIND" help:"Of users of this kind."`
	App         string            `placeholder:"APP" help:"Of this application."`
	Device      string            `placeholder:"CLASS" help:"Of this class of device."`
	IP          string            `name:"ip" placeholder:"ADDRESS" help:"From this address or network, such as 10.0.0.0/8."`
	Name        string            `placeholder:"PREFIX" help:"Whose name begins so."`
	Attr        map[string]string `placeholder:"KEY=VALUE" help:"With this attribute."`
	LoginAfter  string            `placeholder:"TIME" help:"Logged in then or after: 2h for two hours ago, or 2026-02-03T04:05:06Z."`
	LoginBefore string            `placeholder:"TIME" help:"Logged in before then."`
	SeenWithin  string            `placeholder:"5m" help:"Seen at most so long ago."`
}

// filter reads the conditions, as they were given by flags.
func (c *conditions) filter(now time.Time) (rollcall.SessionFilter, error) {
	return c.read(now, func(name string) string { return "--" + name })
}

// read reads the conditions; named is how their names were written.
func (c *conditions) read(now time.Time, named func(string) string) (rollcall.SessionFilter, error) {
	f := rollcall.SessionFilter{Users: c.User, Kind: c.Kind, App: c.App, Device: c.Device, Name: c.Name}
	if len(c.Attr) > 0 {
		f.Attrs = c.Attr
	}
	if c.IP != "" {
		var err error
		if f.IP, err = prefixOf(c.IP); err != nil {
			return f, usageError{fmt.Errorf("%s: must be an address or a network such as 10.0.0.0/8, is %.60q", named("ip"), c.IP)}
		}
	}
	var errs [3]error
	f.LoginAfter, errs[0] = instantFlag(named("login-after"), c.LoginAfter, now)
	f.LoginBefore, errs[1] = instantFlag(named("login-before"), c.LoginBefore, now)
	f.SeenWithin, errs[2] = durationFlag(named("seen-within"), c.SeenWithin)
	return f, errors.Join(errs[:]...)
}

func prefixOf(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	addr, err := netip.ParseAddr(text)
	return netip.PrefixFrom(addr, addr.BitLen()), err
}

// instantFlag reads a flag that is an instant, or how long ago.
func instantFlag(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := durationFlag(flag, text)
	if err != nil {
		return time.Time{}, usageError{fmt.Errorf("%s: must be how long ago, such as 2h, or an instant such as 2026-02-03T04:05:06Z, is %.40q", flag, text)}
	}
	return now.Add(-ago), nil
}

type sessionsCmd struct {
	target
	ID string `arg:"" optional:"" name:"session" help:"All about this session."`
	conditions
	Sort string `enum:"login,-login,seen" default:"login" placeholder:"login" help:"login for the newest first, -login for the oldest, seen for the most recently seen."`
	some
}

// Help is the verb's own part of its help.
func (sessionsCmd) Help() string {
	return "Lists the live sessions that meet all conditions, or shows one, also if it\nended within the last 24 hours."
}

type sessionJSON struct {
	ID        string            `json:"id"`
	User      string            `json:"user"`
	Kind      string            `json:"kind"`
	Name      string            `json:"name"`
	App       string            `json:"app"`
	Device    string            `json:"device"`
	IP        string            `json:"ip"`
	UserAgent string            `json:"user_agent"`
	Attrs     map[string]string `json:"attrs"`
	LoginAt   instant           `json:"login_at"`
	SeenAt    instant           `json:"seen_at"`
	ExpiresAt instant           `json:"expires_at"`
	EndsAt    instant           `json:"ends_at,omitempty"`
	EndedAt   instant           `json:"ended_at,omitempty"`
	Cause     rollcall.Cause    `json:"cause,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

func sessionJSONOf(s rollcall.Session) sessionJSON {
	out := sessionJSON{
		ID: s.ID.String(), User: s.User, Kind: s.Kind, Name: s.Name, App: s.App, Device: s.Device, IP: addressText(s.IP),
		UserAgent: s.UserAgent, Attrs: s.Attrs, LoginAt: instantOf(s.LoginAt), SeenAt: instantOf(s.SeenAt),
		ExpiresAt: instantOf(s.ExpiresAt), EndsAt: instantOf(s.EndsAt),
	}
	if out.Attrs == nil {
		out.Attrs = map[string]string{}
	}
	if s.End != nil {
		out.EndedAt, out.Cause, out.Reason = instantOf(s.End.At), s.End.Cause, s.End.Reason
	}
	return out
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// Run lists sessions, or shows one.
func (c *sessionsCmd) Run(a *app) error {
	if c.ID != "" {
		id, err := sessionArg(c.ID)
		if err != nil {
			return err
		}
		return c.ask(a, func(asked *client.Client) error { return c.show(a, asked, id) })
	}
	now := time.Now()
	f, err := c.filter(now)
	if err != nil {
		return err
	}
	q := rollcall.SessionQuery{Filter: f, Sort: map[string]rollcall.SessionSort{
		"login": rollcall.NewestLogin, "-login": rollcall.OldestLogin, "seen": rollcall.NewestSeen,
	}[c.Sort]}
	return c.ask(a, func(asked *client.Client) error {
		out := newTable("user", "device", "app", "ip", "login", "seen", "id")
		page := func(p rollcall.PageRequest) (rollcall.Page[rollcall.Session], error) {
			q := q
			q.Page = p
			return asked.Sessions(a.ctx, q)
		}
		total, err := gather(&c.some, page, asked.AllSessions(a.ctx, q), func(s rollcall.Session) {
			out.add(sessionJSONOf(s), s.User, s.Device, s.App, addressText(s.IP), age(now, s.LoginAt), age(now, s.SeenAt), s.ID.String())
		})
		if err != nil {
			return err
		}
		out.ofAll(total, "session")
		return out.print(a, c.JSON, "There are no such sessions.")
	})
}

// sessionArg reads a session's id.
func sessionArg(text string) (rollcall.SessionID, error) {
	id, err := rollcall.ParseSessionID(text)
	if err != nil {
		return id, usageError{fmt.Errorf("%.40q is not a session's id: one has 26 characters", text)}
	}
	return id, nil
}

// show writes all about a session, a line for each thing.
func (c *sessionsCmd) show(a *app, asked *client.Client, id rollcall.SessionID) error {
	s, err := asked.Session(a.ctx, id)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, sessionJSONOf(s))
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(a.stdout, "%-11s %s\n", name, printable(value))
		}
	}
	line("id", s.ID.String())
	line("user", s.User)
	line("kind", s.Kind)
	line("name", s.Name)
	line("app", s.App)
	line("device", s.Device)
	line("ip", addressText(s.IP))
	line("user agent", s.UserAgent)
	for _, key := range sortedKeys(s.Attrs) {
		line("attr", key+"="+s.Attrs[key])
	}
	line("logged in", moment(s.LoginAt))
	line("last seen", moment(s.SeenAt))
	if s.End == nil {
		line("expires", moment(s.ExpiresAt))
		line("ends", moment(s.EndsAt))
		return nil
	}
	line("ended", moment(s.End.At))
	line("cause", string(s.End.Cause))
	line("reason", s.End.Reason)
	return nil
}

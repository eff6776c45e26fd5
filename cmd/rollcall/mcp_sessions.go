package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

type mcpSessions struct {
	User        string            `json:"user,omitempty" jsonschema:"of this user"`
	Kind        string            `json:"kind,omitempty" jsonschema:"of users of this kind"`
	App         string            `json:"app,omitempty" jsonschema:"of this application"`
	Device      string            `json:"device,omitempty" jsonschema:"of this class of device, such as ios"`
	IP          string            `json:"ip,omitempty" jsonschema:"from this address or network, such as 10.0.0.0/8"`
	Name        string            `json:"name,omitempty" jsonschema:"whose name begins so"`
	Attrs       map[string]string `json:"attrs,omitempty" jsonschema:"with these attributes"`
	LoginAfter  string            `json:"login_after,omitempty" jsonschema:"logged in then or after: 2h for two hours ago, or an instant"`
	LoginBefore string            `json:"login_before,omitempty" jsonschema:"logged in before then"`
	SeenWithin  string            `json:"seen_within,omitempty" jsonschema:"seen at most so long ago, such as 5m"`
	Sort        string            `json:"sort,omitempty" jsonschema:"newest (by login, unless given), oldest or seen (most recently)"`
	mcpPage
}

type mcpSession struct {
	Session string `json:"session" jsonschema:"id of a session, 26 characters"`
}

type mcpUser struct {
	User string `json:"user"`
}

// mcpOverview is what there is to say about a user.
type mcpOverview struct {
	User              string        `json:"user"`
	Kind              string        `json:"kind"`
	Name              string        `json:"name,omitempty"`
	Invisible         bool          `json:"invisible,omitempty"`
	Online            bool          `json:"online"`
	LastSeen          instant       `json:"last_seen,omitempty"`
	SessionCount      int           `json:"session_count"`
	Sessions          []sessionJSON `json:"sessions" jsonschema:"the newest"`
	Friends           int           `json:"friends"`
	Streak            *streakJSON   `json:"streak,omitempty" jsonschema:"days in a row; none if the archive does not answer"`
	StreakUnavailable bool          `json:"streak_unavailable,omitempty"`
	Ban               *banJSON      `json:"ban,omitempty"`
}

// offerSessions adds the tools about sessions and users.
func (m *mcpServer) offerSessions() {
	offer(m, mcpTool{name: "sessions", title: "Live sessions", about: "The live sessions (logins) that meet all conditions, and how many they are."}, m.sessions)
	offer(m, mcpTool{name: "session", title: "One session", about: "All about one session, also if it ended within the last 24 hours: how and why."}, m.session)
	offer(m, mcpTool{name: "user", title: "A user", about: "What is known of a user: presence, live sessions, friends, streak of days, ban."}, m.user)
}

// filter reads the conditions.
func (in *mcpSessions) filter(now time.Time) (rollcall.SessionFilter, error) {
	c := conditions{
		Kind: in.Kind, App: in.App, Device: in.Device, IP: in.IP, Name: in.Name, Attr: in.Attrs,
		LoginAfter: in.LoginAfter, LoginBefore: in.LoginBefore, SeenWithin: in.SeenWithin,
	}
	if in.User != "" {
		c.User = []string{in.User}
	}
	return c.read(now, func(name string) string { return strings.ReplaceAll(name, "-", "_") })
}

func (m *mcpServer) sessions(ctx context.Context, in mcpSessions) (said string, out mcpList[sessionJSON], err error) {
	order, ok := map[string]rollcall.SessionSort{
		"": rollcall.NewestLogin, "newest": rollcall.NewestLogin, "oldest": rollcall.OldestLogin, "seen": rollcall.NewestSeen,
	}[in.Sort]
	if !ok {
		return "", out, usageError{fmt.Errorf("sort must be newest, oldest or seen, is %.40q", in.Sort)}
	}
	q := rollcall.SessionQuery{Sort: order}
	if q.Filter, err = in.filter(time.Now()); err != nil {
		return "", out, err
	}
	if q.Page, err = in.request(); err != nil {
		return "", out, err
	}
	page, err := m.asked.Sessions(ctx, q)
	said, out = listed(page, "live session", sessionJSONOf)
	return said, out, err
}

func (m *mcpServer) session(ctx context.Context, in mcpSession) (string, sessionJSON, error) {
	id, err := sessionArg(in.Session)
	if err != nil {
		return "", sessionJSON{}, err
	}
	s, err := m.asked.Session(ctx, id)
	said := fmt.Sprintf("A live session of %s.", inQuotes(s.User))
	if s.End != nil {
		said = fmt.Sprintf("It has ended: %s.", s.End.Cause)
	}
	return said, sessionJSONOf(s), err
}

func (m *mcpServer) user(ctx context.Context, in mcpUser) (string, mcpOverview, error) {
	u, err := m.asked.User(ctx, in.User)
	if err != nil {
		return "", mcpOverview{}, err
	}
	page, err := m.asked.Sessions(ctx, rollcall.SessionQuery{
		Filter: rollcall.SessionFilter{Users: []string{in.User}}, Page: rollcall.PageRequest{Limit: mcpLimit},
	})
	if err != nil {
		return "", mcpOverview{}, err
	}
	said, sessions := listed(page, "live session", sessionJSONOf)
	out := mcpOverview{
		User: in.User, Kind: u.Kind, Name: u.Name, Invisible: u.Invisible,
		Online: u.Status.Online, LastSeen: instantOf(u.Status.LastSeen), SessionCount: page.Total, Sessions: sessions.Items,
		Friends: u.Friends, StreakUnavailable: u.StreakUnavailable,
	}
	if !u.StreakUnavailable {
		s := streakJSON(u.Streak)
		out.Streak = &s
	}
	if u.Ban != nil {
		b := banJSONOf(u.Ban)
		out.Ban = &b
	}
	is := "offline"
	switch {
	case out.Online:
		is = "online"
	case out.LastSeen == "":
		is = "offline, with no last-seen time"
	}
	return fmt.Sprintf("%s is %s. %s", inQuotes(in.User), is, said), out, nil
}

package main

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
)

// topLook is what top knows of a server. Every look asks anew; what is kept besides
// is bounded.
type topLook struct {
	asked  *client.Client
	server string
	fault  error // why the last look failed

	now      time.Time // the server's
	online   int
	sessions int
	logins   int // in the last minute, of sessions that are still there
	ends     int // since top began, at most a minute
	newest   []rollcall.Session
	apps     shares
	devices  shares
	totals   []topTotal // of the last minute, oldest first
	history  []int      // users online at the last looks
}

// topTotal is how many sessions there were at a time.
type topTotal struct {
	at       time.Time
	sessions int
}

const (
	topSample  = 100 // sessions in which names of apps and devices are looked for
	topNames   = 6   // of each that are shown
	topHistory = 120 // looks whose number of users is kept
)

func newTopLook(asked *client.Client, server string) *topLook {
	return &topLook{
		asked: asked, server: server,
		apps: shares{of: func(f *rollcall.SessionFilter) *string { return &f.App }}, devices: shares{of: func(f *rollcall.SessionFilter) *string { return &f.Device }},
	}
}

// take looks once.
func (l *topLook) take(ctx context.Context) error {
	server, err := l.asked.Server(ctx)
	if err != nil {
		return err
	}
	online, err := l.asked.OnlineCount(ctx, 0)
	if err != nil {
		return err
	}
	newest, err := l.asked.Sessions(ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: topSample}})
	if err != nil {
		return err
	}
	l.now, l.online, l.sessions, l.newest = server.Now, online, newest.Total, newest.Items
	l.history = append(l.history, online)
	l.history = l.history[max(0, len(l.history)-topHistory):]
	if err := l.countMinute(ctx); err != nil {
		return err
	}
	if err := l.apps.count(ctx, l.asked, newest.Items, func(s rollcall.Session) string { return s.App }); err != nil {
		return err
	}
	return l.devices.count(ctx, l.asked, newest.Items, func(s rollcall.Session) string { return s.Device })
}

// countMinute counts logins and ends. Sessions that are gone are those that were
// there, and those that came since, without those that are there now.
func (l *topLook) countMinute(ctx context.Context) error {
	minuteAgo := l.now.Add(-time.Minute)
	var err error
	if l.logins, err = l.since(ctx, minuteAgo); err != nil {
		return err
	}
	l.totals = append(l.totals, topTotal{l.now, l.sessions})
	for len(l.totals) > 1 && !l.totals[1].at.After(minuteAgo) {
		l.totals = l.totals[1:]
	}
	first := l.totals[0]
	came, err := l.since(ctx, first.at)
	l.ends = max(0, first.sessions+came-l.sessions)
	return err
}

// since counts the sessions that began at an instant or later, and are there.
func (l *topLook) since(ctx context.Context, at time.Time) (int, error) {
	p, err := l.asked.Sessions(ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{LoginAfter: at}})
	return p.Total, err
}

// shares are the sessions by a name that they have, such as that of their app.
type shares struct {
	of     func(*rollcall.SessionFilter) *string // the condition on that name
	counts []share
}

type share struct {
	name     string
	sessions int
}

// count finds the names that most of the newest sessions have, besides those it
// knows, and asks how many sessions have each.
func (s *shares) count(ctx context.Context, asked *client.Client, newest []rollcall.Session, name func(rollcall.Session) string) error {
	seen := map[string]int{}
	for _, one := range newest {
		if n := name(one); n != "" {
			seen[n]++
		}
	}
	for _, known := range s.counts {
		seen[known.name] += 0
	}
	var all []share
	for n, times := range seen {
		all = append(all, share{n, times})
	}
	bySize := func(a, b share) int {
		return cmp.Or(cmp.Compare(b.sessions, a.sessions), strings.Compare(a.name, b.name))
	}
	slices.SortFunc(all, bySize)
	all = all[:min(len(all), 2*topNames)]
	for i := range all {
		var q rollcall.SessionQuery
		*s.of(&q.Filter) = all[i].name
		p, err := asked.Sessions(ctx, q)
		if err != nil {
			return err
		}
		all[i].sessions = p.Total
	}
	slices.SortFunc(all, bySize)
	all = slices.DeleteFunc(all, func(one share) bool { return one.sessions == 0 })
	s.counts = all[:min(len(all), topNames)]
	return nil
}

type topJSON struct {
	Now      instant        `json:"now"`
	Online   int            `json:"online"`
	Sessions int            `json:"sessions"`
	Logins   int            `json:"logins_last_minute"`
	ByApp    map[string]int `json:"by_app"`
	ByDevice map[string]int `json:"by_device"`
}

// figures are a look as JSON.
func (l *topLook) figures() topJSON {
	return topJSON{instantOf(l.now), l.online, l.sessions, l.logins, l.apps.byName(), l.devices.byName()}
}

func (s *shares) byName() map[string]int {
	out := map[string]int{}
	for _, one := range s.counts {
		out[one.name] = one.sessions
	}
	return out
}

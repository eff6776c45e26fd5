package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rollcall/rollcall"
)

type mcpKick struct {
	User    string `json:"user,omitempty" jsonschema:"end the sessions of this user"`
	Device  string `json:"device,omitempty" jsonschema:"with user: only those of this class of device"`
	Session string `json:"session,omitempty" jsonschema:"end this session alone"`
	Reason  string `json:"reason,omitempty" jsonschema:"why; it is shown to the user"`
	Confirm string `json:"confirm,omitempty" jsonschema:"confirm of the answer before. Without it sessions are only counted."`
}

type mcpKickAnswer struct {
	Ended    int    `json:"ended" jsonschema:"how many sessions have ended"`
	WouldEnd int    `json:"would_end,omitempty" jsonschema:"how many sessions would end"`
	Confirm  string `json:"confirm,omitempty" jsonschema:"what to call again with, to end them"`
}

// kicksAsked are the kicks that were counted and not confirmed yet.
type kicksAsked struct {
	mu    sync.Mutex
	asked map[string]kickAsked // by what confirms it
	order []string             // what confirmed one or still does, oldest first
}

type kickAsked struct {
	kick    mcpKick
	counted sessionsCounted
	until   time.Time
}

// sessionsCounted are the sessions that a kick would have ended.
type sessionsCounted struct {
	n      int
	newest []rollcall.Session // as many of them as a page has
}

// holds reports whether all sessions that would end now were counted then: one that
// came instead of another was not meant.
func (then sessionsCounted) holds(now sessionsCounted) bool {
	if now.n > then.n {
		return false
	}
	ids := make(map[rollcall.SessionID]bool, len(then.newest))
	for _, s := range then.newest {
		ids[s.ID] = true
	}
	for _, s := range now.newest {
		older := then.n > len(then.newest) && len(then.newest) > 0 && s.LoginAt.Before(then.newest[len(then.newest)-1].LoginAt)
		if !ids[s.ID] && !older {
			return false
		}
	}
	return true
}

const (
	mcpConfirmWithin = 10 * time.Minute
	mcpKicksAsked    = 16
)

// add remembers a kick that was counted, and returns what confirms it.
func (k *kicksAsked) add(kick mcpKick, counted sessionsCounted, now time.Time) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.order) == mcpKicksAsked { // the oldest gives way, confirmed or not
		delete(k.asked, k.order[0])
		k.order = k.order[1:]
	}
	confirm := rand.Text()[:10]
	kick.Confirm = ""
	k.asked[confirm] = kickAsked{kick: kick, counted: counted, until: now.Add(mcpConfirmWithin)}
	k.order = append(k.order, confirm)
	return confirm
}

// take returns which sessions a kick was confirmed for. It can be confirmed once.
func (k *kicksAsked) take(kick mcpKick, now time.Time) (sessionsCounted, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	confirm := kick.Confirm
	kick.Confirm = ""
	found, ok := k.asked[confirm]
	switch {
	case !ok || now.After(found.until):
		return sessionsCounted{}, usageError{errors.New("confirm is not known, was used, or is older than 10 minutes: call without confirm, and then with the one of that answer")}
	case found.kick != kick:
		return sessionsCounted{}, usageError{errors.New("confirm is that of another kick: call with the same user, device, session and reason as before")}
	}
	delete(k.asked, confirm)
	return found.counted, nil
}

// offerKick adds the tool that ends sessions.
func (m *mcpServer) offerKick() {
	kicks := &kicksAsked{asked: make(map[string]kickAsked)}
	offer(m, mcpTool{
		name: "kick", title: "Show a user out", ends: true,
		about: "Ends the sessions of one user, or one session. The first call only counts them and answers confirm; show the count to whoever you work for, and call again with confirm to end them.",
	}, func(ctx context.Context, in mcpKick) (string, mcpKickAnswer, error) { return m.kick(ctx, kicks, in) })
}

// kick counts, and ends what was counted before.
func (m *mcpServer) kick(ctx context.Context, kicks *kicksAsked, in mcpKick) (string, mcpKickAnswer, error) {
	k := rollcall.Kick{User: in.User, Device: in.Device, Reason: in.Reason, DryRun: true}
	if (in.User == "") == (in.Session == "") {
		return "", mcpKickAnswer{}, usageError{errors.New("give user or session, one of them")}
	}
	if in.Session != "" {
		var err error
		if k.Session, err = sessionArg(in.Session); err != nil {
			return "", mcpKickAnswer{}, err
		}
	}
	var confirmed *sessionsCounted
	if in.Confirm != "" {
		before, err := kicks.take(in, time.Now())
		if err != nil {
			return "", mcpKickAnswer{}, err
		}
		confirmed = &before
	}

	// What has come since it was confirmed was not meant.
	now, err := m.count(ctx, k)
	if err != nil {
		return "", mcpKickAnswer{}, err
	}
	if confirmed == nil || !confirmed.holds(now) {
		return m.askAgain(kicks, in, now, confirmed)
	}
	k.DryRun = false
	done, err := m.asked.Kick(ctx, k)
	return sessionsEnded(done.Ended), mcpKickAnswer{Ended: done.Ended}, err
}

// count returns which sessions a kick would end. One of a single session can end no
// other: the number is enough.
func (m *mcpServer) count(ctx context.Context, k rollcall.Kick) (sessionsCounted, error) {
	res, err := m.asked.Kick(ctx, k)
	if err != nil || k.User == "" {
		return sessionsCounted{n: res.Ended}, err
	}
	q := rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{k.User}, Device: k.Device}, Page: rollcall.PageRequest{Limit: rollcall.MaxLimit}}
	page, err := m.asked.Sessions(ctx, q) // newest first
	return sessionsCounted{n: res.Ended, newest: page.Items}, err
}

// askAgain answers how many sessions a kick would end, and what confirms it.
func (m *mcpServer) askAgain(kicks *kicksAsked, in mcpKick, now sessionsCounted, confirmed *sessionsCounted) (string, mcpKickAnswer, error) {
	out := mcpKickAnswer{WouldEnd: now.n}
	said := fmt.Sprintf("Nothing was ended. This would end %s", counted(int64(now.n), "session"))
	switch {
	case confirmed != nil && now.n > confirmed.n:
		said += fmt.Sprintf(", and %d were confirmed", confirmed.n)
	case confirmed != nil:
		said += ", and not only those that were confirmed"
	}
	if now.n == 0 {
		return said + ".", out, nil
	}
	out.Confirm = kicks.add(in, now, time.Now())
	return said + fmt.Sprintf(": call again with the same arguments and confirm %q to end them.", out.Confirm), out, nil
}

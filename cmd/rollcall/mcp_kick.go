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
	kick  mcpKick
	ended int // how many it would have ended
	until time.Time
}

const (
	mcpConfirmWithin = 10 * time.Minute
	mcpKicksAsked    = 16
)

// add remembers a kick that was counted, and returns what confirms it.
func (k *kicksAsked) add(kick mcpKick, ended int, now time.Time) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.order) == mcpKicksAsked { // the oldest gives way, confirmed or not
		delete(k.asked, k.order[0])
		k.order = k.order[1:]
	}
	confirm := rand.Text()[:10]
	kick.Confirm = ""
	k.asked[confirm] = kickAsked{kick: kick, ended: ended, until: now.Add(mcpConfirmWithin)}
	k.order = append(k.order, confirm)
	return confirm
}

// take returns how many sessions a kick was confirmed for. It can be confirmed once.
func (k *kicksAsked) take(kick mcpKick, now time.Time) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	confirm := kick.Confirm
	kick.Confirm = ""
	found, ok := k.asked[confirm]
	switch {
	case !ok || now.After(found.until):
		return 0, usageError{errors.New("confirm is not known, was used, or is older than 10 minutes: call without confirm, and then with the one of that answer")}
	case found.kick != kick:
		return 0, usageError{errors.New("confirm is that of another kick: call with the same user, device, session and reason as before")}
	}
	delete(k.asked, confirm)
	return found.ended, nil
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
	confirmed := -1
	if in.Confirm != "" {
		var err error
		if confirmed, err = kicks.take(in, time.Now()); err != nil {
			return "", mcpKickAnswer{}, err
		}
	}

	// What has come since it was confirmed was not meant.
	now, err := m.asked.Kick(ctx, k)
	if err != nil {
		return "", mcpKickAnswer{}, err
	}
	if now.Ended > confirmed {
		return m.askAgain(kicks, in, now.Ended, confirmed)
	}
	k.DryRun = false
	done, err := m.asked.Kick(ctx, k)
	return sessionsEnded(done.Ended), mcpKickAnswer{Ended: done.Ended}, err
}

// askAgain answers how many sessions a kick would end, and what confirms it.
func (m *mcpServer) askAgain(kicks *kicksAsked, in mcpKick, n, confirmed int) (string, mcpKickAnswer, error) {
	out := mcpKickAnswer{WouldEnd: n}
	said := fmt.Sprintf("Nothing was ended. This would end %s", counted(int64(n), "session"))
	if confirmed >= 0 {
		said += fmt.Sprintf(", and %d were confirmed", confirmed)
	}
	if n == 0 {
		return said + ".", out, nil
	}
	out.Confirm = kicks.add(in, n, time.Now())
	return said + fmt.Sprintf(": call again with the same arguments and confirm %q to end them.", out.Confirm), out, nil
}

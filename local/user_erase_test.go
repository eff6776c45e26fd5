package local

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// filesWith returns the files below a directory that hold some bytes.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			found = append(found, filepath.Base(path))
		}
		return err
	})
	require.NoError(t, err)
	return found
}

func TestAnErasedIDIsInNoFileAfterCompact(t *testing.T) {
	const victim = "remember-me-not-9f2c4b7a1d"
	dir := t.TempDir()
	e, err := Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	clock := rollcall.NewManualClock(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	ctx := context.Background()
	in, err := roll.Login(ctx, rollcall.Login{User: victim, Name: victim, Attrs: map[string]string{"x": victim}})
	require.NoError(t, err)
	_, err = roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID, Reason: "about " + victim})
	require.NoError(t, err)
	_, err = roll.Login(ctx, rollcall.Login{User: victim, RetryKey: "k"})
	require.NoError(t, err)
	require.NoError(t, roll.AddFriends(ctx, "bob", true, rollcall.Friend{User: victim}))
	require.NoError(t, roll.Beat(ctx, victim, "bob"))
	_, err = roll.Ban(ctx, victim, time.Hour, "because of "+victim, "me")
	require.NoError(t, err)
	hook, _, err := roll.CreateWebhook(ctx, rollcall.NewWebhook{URL: "https://example.com", Filter: rollcall.EventFilter{User: victim}})
	require.NoError(t, err)
	deliver(t, e, hook.ID, clock.Now())
	require.NoError(t, roll.Tick(ctx))
	require.NotEmpty(t, filesWith(t, dir, victim))

	require.NoError(t, roll.Erase(ctx, victim))
	require.NoError(t, roll.Compact(ctx))
	require.Eventually(t, func() bool { return len(filesWith(t, dir, victim)) == 0 }, 2*time.Minute, 20*time.Millisecond,
		"files that are no longer in use are removed in the background")
	copied := t.TempDir()
	require.NoError(t, roll.Backup(ctx, func(f rollcall.BackupFile) error {
		content, err := io.ReadAll(f.Content)
		require.NoError(t, err)
		return os.WriteFile(filepath.Join(copied, filepath.Base(f.Name)), content, 0o600)
	}))
	require.Empty(t, filesWith(t, copied, victim), "a later backup does not have it either")
	hooks, err := roll.Webhooks(ctx)
	require.NoError(t, err)
	require.Empty(t, hooks)
	_, err = roll.Login(ctx, rollcall.Login{User: victim})
	require.ErrorIs(t, err, rollcall.ErrUserBanned, "the ban outlives the erasure")
}

// deliver has all events be on their way to a webhook, and one attempt have failed.
func deliver(t *testing.T, e *Engine, hook string, now time.Time) {
	t.Helper()
	ctx := context.Background()
	ok, err := e.LeaseWebhook(ctx, now, hook, "holder", now.Add(time.Minute))
	require.NoError(t, err)
	require.True(t, ok)
	part, err := e.EventsAfter(ctx, rollcall.EventQuery{Limit: 1000, Viewer: rollcall.ViewerAdmin})
	require.NoError(t, err)
	require.NotEmpty(t, part.Events)
	s := rollcall.WebhookState{Position: part.Next, Begun: true}
	for _, event := range part.Events {
		s.Parked = append(s.Parked, rollcall.WebhookMessage{ID: string(event.ID), Events: []rollcall.EventID{event.ID}, Attempts: 1, ParkedAt: now})
		s.Deliveries = append(s.Deliveries, rollcall.WebhookDelivery{Message: string(event.ID), Type: string(event.Type), Events: 1, Attempt: 1, At: now, Result: rollcall.WebhookFailed})
	}
	require.NoError(t, e.SaveWebhookState(ctx, now, hook, "holder", s))
}

func TestALoginInTheSecondOfAnErasureIsASignOfLifeAcrossACrash(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Tick(r.ctx))
	r.login("alice")
	r.NoError(r.roll.Tick(r.ctx))
	r.NoError(r.roll.Erase(r.ctx, "alice"))
	r.login("alice")
	r.crash()
	got, err := r.roll.Status(r.ctx, "alice")
	r.NoError(err)
	r.True(got[0].Online)
	r.Equal(r.clock.Now(), got[0].LastSeen)
}

func TestALoginEndsThatAUserIsGoneAcrossACrash(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Tick(r.ctx))
	r.logout(r.login("alice"))
	r.NoError(r.roll.Tick(r.ctx))
	r.NoError(r.roll.Beat(r.ctx, "alice")) // takes the mark away, in memory
	r.login("alice")
	r.crash()
	got, err := r.roll.Status(r.ctx, "alice")
	r.NoError(err)
	r.True(got[0].Online)
	for range 12 { // the grace of the logout passes
		r.second()
		r.NoError(r.roll.Tick(r.ctx))
	}
	for _, e := range r.presenceEvents() {
		r.NotEqual(rollcall.UserOffline, e.Type)
	}
}

func TestWhoCameBackIsToldOnceAcrossACrash(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Tick(r.ctx))
	r.login("alice")
	_, err := r.roll.Kick(r.ctx, rollcall.Kick{User: "alice"})
	r.NoError(err)
	r.NoError(r.roll.Tick(r.ctx))
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	_, err = r.roll.Ban(r.ctx, "alice", time.Hour, "", "") // takes the event along
	r.NoError(err)
	r.crash()
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	var types []rollcall.EventType
	for _, e := range r.presenceEvents() {
		types = append(types, e.Type)
	}
	r.Equal([]rollcall.EventType{rollcall.UserOnline, rollcall.UserOffline, rollcall.UserOnline}, types)
}

func TestThatAUserWentIsToldOnceAcrossACrash(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Tick(r.ctx))
	r.logout(r.login("alice"))
	r.clock.Advance(rollcall.DefaultLeaveGrace + time.Millisecond)
	_, err := r.roll.Ban(r.ctx, "alice", time.Hour, "", "") // tells what is overdue of her
	r.NoError(err)
	r.crash()
	r.NoError(r.roll.Tick(r.ctx))
	var types []rollcall.EventType
	for _, e := range r.presenceEvents() {
		types = append(types, e.Type)
	}
	r.Equal([]rollcall.EventType{rollcall.UserOnline, rollcall.UserOffline}, types)
}

func TestThatALeavingUserIsTurnedAwayIsToldOnceAcrossACrash(t *testing.T) {
	for name, turnAway := range map[string]func(*rollcall.Roll) error{
		"ban": func(roll *rollcall.Roll) error {
			_, err := roll.Ban(t.Context(), "alice", time.Hour, "", "")
			return err
		},
		"kick": func(roll *rollcall.Roll) error {
			_, err := roll.Kick(t.Context(), rollcall.Kick{User: "alice"})
			return err
		},
	} {
		r := newRig(t, 0)
		r.NoError(r.roll.Tick(r.ctx))
		r.logout(r.login("alice"))
		r.clock.Advance(time.Second)
		r.NoError(turnAway(r.roll))
		r.crash()
		r.clock.Advance(rollcall.DefaultLeaveGrace)
		r.NoError(r.roll.Tick(r.ctx))
		var types []rollcall.EventType
		for _, e := range r.presenceEvents() {
			types = append(types, e.Type)
		}
		r.Equal([]rollcall.EventType{rollcall.UserOnline, rollcall.UserOffline}, types, name)
		r.NoError(r.roll.Beat(r.ctx, "alice"))
		r.NoError(r.eng.Flush(r.ctx))
		r.Len(r.presenceEvents(), 3, "%s: who is heard again comes back", name)
	}
}

func TestAnErasureRemovesEndedSessionsAFixedNumberAtATime(t *testing.T) {
	r := newRig(t, 0)
	const ended = 2*eraseStep + 10
	for range ended {
		r.logout(r.login("victim"))
	}
	kept := r.login("other")
	r.logout(kept)
	p := r.eng.partitionOf("victim")
	left := func(table byte) (n int) {
		r.NoError(r.eng.store.scan(r.ctx, newKey(table, 1), func(_, _ []byte) error { n++; return nil }))
		return n
	}
	steps := 0
	x := erasure{part: p.index, user: "victim", lastEvent: r.eng.events.newestSeq(), at: r.clock.Now().UnixMilli()}
	for from := newKey(tabEnded, 2).u8(p.index); from != nil; steps++ {
		before := left(tabEnded)
		var err error
		from, err = r.eng.eraseSomeEnded(x, from)
		r.NoError(err)
		r.LessOrEqual(before-left(tabEnded), eraseStep)
	}
	r.Equal(3, steps)
	for _, table := range [...]byte{tabEnded, tabEndedTok, tabEndedDue} {
		r.Equal(1, left(table), "of the other, in table %c", table)
	}
	r.tokenEnded(kept)
}

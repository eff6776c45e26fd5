package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/archive"
)

// outages: each that is on record is listed, the last one first, and said in words.
func (d *consoleDrive) outages() {
	d.t.Helper()
	var stats struct {
		Outages int
		Latest  []struct{ From, Until time.Time } `json:"latest_outages"`
	}
	d.s.get(&stats, request{method: http.MethodGet, path: "/v1/stats"}, http.StatusOK)
	require.NotEmpty(d.t, stats.Latest)
	silent := stats.Latest[0]
	require.Less(d.t, silent.From.Sub(d.c.silent).Abs(), 10*time.Second, "the one that the store was filled with comes first")

	d.goes("system")
	d.waits(fmt.Sprintf(`%s.length === %d`, allNamed("outage"), len(stats.Latest)), "the list of outages")
	rows := d.texts("outage")
	zone, err := time.LoadLocation(consoleZone)
	require.NoError(d.t, err)
	for _, at := range []time.Time{silent.From, silent.Until} {
		require.Contains(d.t, rows[len(rows)-1], at.In(zone).Format("15:04:05"))
	}
	require.Contains(d.t, rows[len(rows)-1], fmt.Sprintf("%d min", int(silent.Until.Sub(silent.From).Minutes())))
	require.Contains(d.t, d.text(named("outages-said")+`.textContent`), "on record")
}

// consoleArchive sees a run of another process as it goes on, and asks for one.
func consoleArchive(t *testing.T, b browser, s *server, dir string) {
	t.Helper()
	ctx := t.Context()
	db, err := archive.Open(ctx, "sqlite:"+filepath.Join(dir, "archive.db"), archive.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	p.loads("system?show=archive")
	p.waits(named("archive-run")+`?.disabled === false`, "a run may be asked for")

	// What another process does is seen here.
	lease, err := db.Acquire(ctx, "runner elsewhere", time.Hour)
	require.NoError(t, err)
	run, err := lease.BeginRun(ctx)
	require.NoError(t, err)
	for i, at := range []string{"2026-03", "2026-04"} {
		rows := 1234 * (i + 1)
		require.NoError(t, lease.Progress(ctx, run.ID, at, int64(rows)))
		p.waits(fmt.Sprintf(`(text => text.includes("%s user-months") && text.includes(%q))(%s.textContent)`, commas(rows), at, named("archive-progress")), "how far it is")
	}
	require.Equal(t, "true", p.text(named("archive-run")+`.disabled`), "one run at a time")
	require.NoError(t, lease.FinishRun(ctx, run.ID, ""))
	require.NoError(t, lease.Release(ctx))
	p.waits(named("archive-progress")+` === null && !`+named("archive-run")+`.disabled`, "it is over")

	// One that is asked for here.
	completed := named("archive-runs") + `.querySelectorAll(".tag.here").length`
	require.Equal(t, "1", p.text(completed))
	p.click("archive-run")
	p.waits(completed+` === 2`, "the run is completed")
	p.requireNoFaults()
}

// consoleResend sends a message of a webhook once more.
func consoleResend(t *testing.T, b browser, s *server) {
	t.Helper()
	const started = "session.started"
	got := make(chan hookMessage, 100)
	receiver := newHookReceiver(t, func(m hookMessage) int { got <- m; return http.StatusNoContent })
	next := func() hookMessage {
		t.Helper()
		select {
		case m := <-got:
			return m
		case <-time.After(patience):
			require.Fail(t, "no message came")
			return hookMessage{}
		}
	}
	const user = "told twice"
	id, _ := receiver.make(s, map[string]any{"user": user, "types": []string{started}})
	s.get(nil, request{method: http.MethodPost, path: "/v1/webhooks", body: map[string]any{"url": "http://10.0.0.1/", "user": user, "types": []string{started}}}, http.StatusCreated)
	s.loginAs(user)
	first := next()
	require.NotContains(t, first.Body, `"replay"`)

	// All of a range, from the menu of the webhook.
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	p.loads("system?show=webhooks")
	mine := fmt.Sprintf(`%s.find(e => e.textContent.includes(%q))`, allNamed("webhook"), receiver.address)
	p.waits(mine+`.querySelectorAll('[data-test="delivery"]').length === 1`, "the attempt is listed")
	require.Contains(t, p.text(mine+`.querySelector('[data-test="delivery"]').textContent`), "delivered · 204")
	p.run(mine + `.querySelector("[popovertarget]").click()`)
	p.click("webhook-resend")
	p.click("webhook-confirm")
	again := next()
	require.Equal(t, first.Headers["webhook-id"], again.Headers["webhook-id"])
	require.Contains(t, again.Body, `"replay"`)
	p.waits(mine+`.querySelectorAll('[data-test="delivery"]').length === 2`, "the second attempt is listed")
	require.Contains(t, p.text(mine+`.querySelector('[data-test="delivery"]').textContent`), "sent again")

	// One message that was given up: the range is that of its event.
	p.waits(named("delivery-resend")+` !== null`, "the other webhook's was refused")
	zone, err := time.LoadLocation(consoleZone)
	require.NoError(t, err)
	var page struct {
		Items []struct {
			EventAt time.Time `json:"event_at"`
		}
	}
	s.get(&page, request{method: http.MethodGet, path: "/v1/webhooks/" + id + "/deliveries"}, http.StatusOK)
	p.click("delivery-resend")
	at := page.Items[0].EventAt.In(zone)
	for name, want := range map[string]time.Time{"resend-from": at, "resend-to": at.Add(time.Minute)} {
		p.waits(named(name)+` !== null`, "the dialogue")
		require.Equal(t, want.Format("2006-01-02T15:04"), p.text(named(name)+`.value`))
	}
	p.requireNoFaults()
}

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/faultproxy"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestConsole drives the pages of the console as an operator does, in one browser. What
// the pages ask the engine is asked of both engines, of the rest there is one server.
func TestConsole(t *testing.T) {
	binary, b := buildBinary(t), newBrowser(t, true)
	sessions := 20_000
	if testbudget.Long() {
		sessions = 100_000
	}
	t.Run("embedded", func(t *testing.T) { driveConsole(t, b, binary, fillConsoleStore(t, embedded(), sessions)) })
	t.Run("redis", func(t *testing.T) { driveConsole(t, b, binary, fillConsoleStore(t, sharedRedis(t), 3000)) })
	dir := t.TempDir()
	s := start(t, binary, dir, "--webhooks-allow", "127.0.0.1", "--timezone", consoleZone, "--trusted-proxies", "127.0.0.1", "--console-header", "X-Forwarded-User", "--console-header-role", "writer", "--log-level", "error")
	for _, c := range []struct {
		name string
		test func(*testing.T, browser, *server)
	}{
		{"retention is that of a public data set", consoleRetention},
		{"who signs in by a key signs out, and the stream ends", consoleKey},
		{"who signs in by the header of a proxy", consoleProxy},
		{"a reader is not offered what a reader may not do", consoleReader},
		{"names, ids and user agents are text", consoleHostile},
		{"a page of another origin can neither change anything nor frame a page", consoleOrigins},
		{"each view fits, in Chinese on a telephone too", consolePhone},
		{"what a first visit loads", consoleTransfer},
		{"a run of the archive as it goes on", func(t *testing.T, b browser, s *server) { t.Helper(); consoleArchive(t, b, s, dir) }},
		{"a message of a webhook is sent again", consoleResend},
		{"axe finds nothing serious in any view, in both themes", consoleAxe},
		{"the console knows the shapes of the API", consoleTypes},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b, s) })
	}
}

// hostileUser would run in a page that took an id for markup.
const hostileUser = `<img src=x onerror="window.hacked=1">`

// driveConsole looks at a store, shows some of it out, and has the server go away.
func driveConsole(t *testing.T, b browser, binary string, c *consoleStore) {
	t.Helper()
	s := start(t, binary, c.dir, c.flags...)
	proxy, err := faultproxy.Listen(strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	p := b.signedInAt(t, s, "http://"+proxy.Addr(), rollcall.RoleAdmin)

	d := &consoleDrive{consolePage: p, s: s, c: c, total: c.sessions}
	d.now()
	d.pages()
	d.filters()
	if c.onRedis { // the rest asks the same in other words
		d.goes("sessions")
	} else {
		d.searches()
		d.exports()
	}
	d.kicks()
	d.timeline()
	d.ban()
	d.days()
	d.outages()
	p.requireNoFaults()
	d.away(proxy, binary)
}

// consoleDrive is what has been done so far.
type consoleDrive struct {
	consolePage
	s     *server
	c     *consoleStore
	total int // live sessions
}

// now: the link is gone from the address, the count follows beats, and a point of the
// curve opens who was online then.
func (d *consoleDrive) now() {
	d.t.Helper()
	require.NotContains(d.t, d.text(`location.href`), "link=")
	d.waits(named("live")+`.dataset.state === "live"`, "the page is told of events")
	d.shows("online-count", "2")
	d.hides()
	d.s.get(nil, request{method: http.MethodPost, path: "/v1/beats", body: map[string]any{"users": []string{"bob", "carol", "dave"}}}, http.StatusOK)
	d.shows("online-count", "5")

	d.loads("?range=hour&at=" + d.c.then.Format(time.RFC3339))
	d.waits(named("people-count")+` !== null`, "those who were online then are found")
	require.Equal(d.t, []string{"early", "steady"}, d.texts("person"))
	d.click("close")
	d.waits(named("people")+` === null && !location.search.includes("at=")`, "the list is closed")
	d.requireCurve()
	d.run(named("curve") + `.focus()`)
	d.presses(kb.End)
	d.waits(named("curve")+`.querySelector(".tip") !== null`, "a point is chosen")
}

// hides: a page that nobody sees holds no stream, as a browser opens few connections to a
// server, and each tab needs one. Seen again, it has all that came meanwhile.
func (d *consoleDrive) hides() {
	d.t.Helper()
	seen := func(state string) {
		d.run(`Object.defineProperty(document, "visibilityState", { value: "` + state + `", configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`)
	}
	seen("hidden")
	require.Eventually(d.t, func() bool { return d.s.streams(d.t) == 0 }, browserWait, 20*time.Millisecond, "the stream of a page that nobody sees ends")
	d.s.get(nil, request{method: http.MethodPost, path: "/v1/beats", body: map[string]any{"users": []string{"bob"}}}, http.StatusOK)
	seen("visible")
	d.shows("online-count", "3")
	require.Eventually(d.t, func() bool { return d.s.streams(d.t) == 1 }, browserWait, 20*time.Millisecond, "the page is told of events again")
	d.run(`delete document.visibilityState`)
}

// requireCurve waits until the curve shows what was counted.
func (d *consoleDrive) requireCurve() {
	d.t.Helper()
	d.waits(named("curve")+`?.querySelector("canvas") != null`, "the curve is drawn of what the store holds")
	require.Contains(d.t, d.text(named("curve")+`.getAttribute("aria-label")`), "highest")
}

// pages: any page of the list is at hand, with the exact total.
func (d *consoleDrive) pages() {
	d.t.Helper()
	d.click("nav-sessions")
	d.shows("total", commas(d.total))
	last := d.total / 50
	for _, number := range []int{last / 2, last} {
		d.types("goto", fmt.Sprint(number))
		d.run(named("goto") + `.form.requestSubmit()`)
		d.shows("range", fmt.Sprintf("%s–%s of %s", commas((number-1)*50+1), commas(number*50), commas(d.total)))
		d.waits(named("sessions")+`.ariaBusy === "false"`, "the page is there")
		require.Len(d.t, d.texts("row"), 50)
		require.Equal(d.t, d.c.user(d.total-1-(number-1)*50), d.user(0), "newest first")
	}
	require.Equal(d.t, d.c.user(0), d.user(49))
	d.click("sort-login_at")
	d.waits(`location.search.includes("sort=login_at")`, "the address says the order")
	d.waits(named("sessions")+`.ariaBusy === "false" && `+d.userOf(0)+` === "`+d.c.user(0)+`"`, "oldest first")
	d.goes("sessions?rows=20")
	d.shows("range", "1–20 of "+commas(d.total))
}

// userOf is an expression of whom a row is about.
func (d *consoleDrive) userOf(row int) string {
	return fmt.Sprintf(`%s[%d]?.querySelector("a.person").textContent`, allNamed("row"), row)
}

func (d *consoleDrive) user(row int) string { d.t.Helper(); return d.text(d.userOf(row)) }

// filters: each by the menu, as a chip, counted exactly. Times are those of the server's zone.
func (d *consoleDrive) filters() {
	d.t.Helper()
	c := d.c
	zone, err := time.LoadLocation(consoleZone)
	require.NoError(d.t, err)
	middle := c.loginAt(c.sessions / 2).Truncate(time.Minute).In(zone)
	const civil, instant = "2006-01-02T15:04", "2006-01-02T15:04:05.000Z"
	for _, f := range []struct {
		name, value, inAddress string
		has                    func(i int) bool
	}{
		{"user", c.user(8), "user=" + c.user(8), func(i int) bool { return c.user(i) == c.user(8) }},
		{"kind", "vip", "kind=vip", func(i int) bool { return c.kind(i) == "vip" }},
		{"app", "app3", "app=app3", func(i int) bool { return c.app(i) == "app3" }},
		{"device", "tv", "device=tv", func(i int) bool { return c.device(i) == "tv" }},
		{"ip", "10.1.0.0/16", "ip=10.1.0.0%2F16", func(i int) bool { return c.ip(i).As4()[1] == 1 }},
		{"name", "name 12", "name=name+12", func(i int) bool { return strings.HasPrefix(c.name(i), "Name 12") }},
		{"login_after", middle.Format(civil), "login_after=" + strings.ReplaceAll(middle.UTC().Format(instant), ":", "%3A"), func(i int) bool { return !c.loginAt(i).Before(middle) }},
		{"login_before", middle.Format(civil), "login_before=" + strings.ReplaceAll(middle.UTC().Format(instant), ":", "%3A"), func(i int) bool { return c.loginAt(i).Before(middle) }},
		{"seen_within", "2h", "seen_within=2h", c.isRecent},
		{"attr", "region=cn", "attr.region=cn", func(i int) bool { return c.attrs(i)["region"] == "cn" }},
	} {
		d.click("add-filter")
		d.chooses("filter-name", f.name)
		if strings.HasPrefix(f.name, "login_") {
			d.waits(named("moment-zone")+`?.textContent.includes("`+consoleZone+`")`, "the field says whose time it is")
		}
		d.types("filter-value", f.value)
		d.click("filter-apply")
		d.shows("total", commas(c.count(f.has)))
		require.Contains(d.t, d.text(`location.search`), f.inAddress)
		d.click("chip")
		d.shows("total", commas(d.total))
	}
	require.NotContains(d.t, d.text(`location.search`), "=cn")

	// An address says all of it.
	d.goes("sessions?app=app3&kind=vip&device=web")
	d.shows("total", commas(c.count(func(i int) bool { return c.app(i) == "app3" && c.kind(i) == "vip" && c.device(i) == "web" })))
	require.Equal(d.t, []string{"app: app3", "kind: vip", "device: web"}, d.texts("chip"))
	d.click("clear-filters")
	d.shows("total", commas(d.total))
}

// searches: what is typed narrows by user, name or address.
func (d *consoleDrive) searches() {
	d.t.Helper()
	c := d.c
	for text, has := range map[string]func(i int) bool{
		c.user(20): func(i int) bool { return c.user(i) == c.user(20) },
		"name 00":  func(i int) bool { return strings.HasPrefix(c.name(i), "Name 00") },
		"10.2.1.":  func(i int) bool { return c.ip(i).As4()[1] == 2 && c.ip(i).As4()[2] == 1 },
	} {
		d.types("search", text)
		d.shows("total", commas(c.count(has)))
	}
	d.types("search", "")
	d.shows("total", commas(d.total))
}

// exports: what is seen, in two forms; no cell is a formula.
func (d *consoleDrive) exports() {
	d.t.Helper()
	for _, user := range []string{`=HYPERLINK("http://x")`, "+1", "-1", "@x"} {
		status, _, err := d.s.login(map[string]any{"user": user, "app": "formula"})
		require.NoError(d.t, err)
		require.Equal(d.t, http.StatusCreated, status)
		d.total++
	}
	d.goes("sessions?app=formula")
	d.shows("total", "4")
	d.run(`{
		window.saved = "";
		const make = URL.createObjectURL;
		URL.createObjectURL = blob => { blob.text().then(text => window.saved = text); return make(blob); };
		HTMLAnchorElement.prototype.click = () => {};
	}`)
	export := func(what string) string {
		d.run(`window.saved = ""`)
		d.click("export")
		d.click(what)
		d.waits(`window.saved !== ""`, "the file is made")
		return d.text(`window.saved`)
	}
	text := export("export-page-csv")
	lines := strings.Split(strings.TrimSpace(text), "\r\n")
	require.Len(d.t, lines, 5)
	for _, cell := range []string{`,"'=HYPERLINK(""http://x"")",`, ",'+1,", ",'-1,", ",'@x,"} {
		require.Contains(d.t, text, cell)
	}
	require.Contains(d.t, export("export-all-json"), `"user": "=HYPERLINK(\"http://x\")"`)
	d.loads("sessions") // with the functions of the browser as they were
}

// kicks: one, some, and all that match, whose count stands still.
func (d *consoleDrive) kicks() {
	d.t.Helper()
	alice := []loginAnswer{d.s.loginAs("alice"), d.s.loginAs("alice"), d.s.loginAs("alice")}
	d.total += 3
	d.goes("sessions?q=alice")
	d.shows("total", "3")
	d.click("row-menu")
	d.click("kick-row")
	d.waits(named("kick-sentence")+`?.textContent.trim() === "End the session of alice."`, "the sentence says whose")
	d.types("kick-reason", "house rules")
	d.confirm("1 session ended.")
	d.shows("total", "2")
	d.click("select-page")
	d.run(named("row") + `.click()`)
	d.waits(named("drawer")+` !== null`, "the row is opened")
	d.click("close")
	d.waits(named("drawer")+` === null`, "it is closed, and what was selected still is")
	d.click("kick-selected")
	d.shows("kick-sentence", "End 2 sessions of 1 user: alice (2).")
	d.confirm("2 sessions ended.")
	for _, in := range alice {
		state, err := d.s.stateOf(in.Token)
		require.NoError(d.t, err)
		require.Contains(d.t, state, "kicked")
	}
	d.total -= 3

	// All that match, but who comes while the dialogue is open.
	match := d.c.count(func(i int) bool { return d.c.device(i) == "tv" })
	d.goes("sessions?device=tv&rows=10")
	d.shows("total", commas(match))
	d.click("select-page")
	d.click("select-all")
	d.click("kick-selected")
	d.shows("kick-count", commas(match)+" sessions")
	status, fresh, err := d.s.login(map[string]any{"user": "late to the film", "device": "tv"})
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusCreated, status)
	d.confirm(commas(match) + " sessions ended.")
	d.shows("total", "1")
	state, err := d.s.stateOf(fresh.Token)
	require.NoError(d.t, err)
	require.Equal(d.t, "live", state)
	d.total += 1 - match
}

// timeline: the page of a user says why they are offline, and what came before, as prose.
func (d *consoleDrive) timeline() {
	d.t.Helper()
	d.goes("users/alice")
	d.waits(allNamed("happened")+`.length >= 6`, "three logins and three ends")
	ends := 0
	for _, text := range d.texts("happened") {
		if strings.Contains(text, "was kicked") && strings.Contains(text, " by ") {
			ends++
		}
	}
	require.Equal(d.t, 3, ends, "%v", d.texts("happened"))
	require.Contains(d.t, strings.Join(d.texts("happened"), "\n"), "house rules")
	d.waits(named("presence")+`.textContent.includes("was kicked")`, "it is said at a glance")
}

// confirm does what the dialogue is about.
func (d *consoleDrive) confirm(result string) {
	d.t.Helper()
	d.click("kick-confirm")
	d.shows("kick-result", result)
	d.click("kick-done")
	d.waits(named("kick-dialog")+` === null`, "the dialogue is closed")
}

// ban: from the page of a user, who is told so there.
func (d *consoleDrive) ban() {
	d.t.Helper()
	user := d.c.user(40)
	d.goes("users/" + user)
	d.waits(allNamed("session")+`.length === 2`, "the sessions of the user")
	d.click("ban")
	d.shows("kick-sentence", "End 2 sessions of "+user+".")
	d.types("kick-reason", "card fraud")
	d.chooses("kick-ban-for", "1h")
	d.confirm("2 sessions ended. 1 user banned.")
	d.total -= 2
	d.waits(named("banned")+` !== null && `+allNamed("session")+`.length === 0`, "the page says so")
	require.Contains(d.t, d.text(named("ban-note")+`.textContent`), "card fraud")
	status, _, err := d.s.login(map[string]any{"user": user})
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusForbidden, status)
	d.click("unban")
	d.waits(named("banned")+` === null`, "the ban is lifted")
}

// days: the calendar has the days of the marks, and each opens who was there.
func (d *consoleDrive) days() {
	d.t.Helper()
	zone, err := time.LoadLocation(consoleZone)
	require.NoError(d.t, err)
	today := rollcall.DayOf(time.Now(), zone)
	var days []string
	marks := []map[string]any{{"user": "walker", "day": (today - 1).String()}}
	for _, back := range []rollcall.Day{30, 3, 2, 1} {
		days = append(days, (today - back).String())
		marks = append(marks, map[string]any{"user": "runner", "day": (today - back).String()})
	}
	d.s.get(nil, request{method: http.MethodPost, path: "/v1/attendance/marks?import=1", body: map[string]any{"marks": marks}}, http.StatusOK)
	d.goes("users/runner")
	d.waits(allNamed("day")+`.length === 4`, "the days of the calendar")
	require.Equal(d.t, strings.Join(days, " "), d.text(allNamed("day")+`.map(e => e.dataset.day).join(" ")`))
	d.shows("streak-longest", "3 days")
	d.run(allNamed("day") + `.at(-1).click()`)
	d.shows("people-count", "2 users")
	require.ElementsMatch(d.t, []string{"runner", "walker"}, d.texts("person"))
}

// away: a page says that the server is away, and goes on by itself when it is back, with
// all that was there.
func (d *consoleDrive) away(proxy *faultproxy.Proxy, binary string) {
	d.t.Helper()
	d.call(func(ctx context.Context, on cdp.Session) error {
		_, err := cdp.Call(ctx, on, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		return err
	})
	d.loads("?range=hour")
	d.waits(named("live")+`?.dataset.state === "live"`, "the page is told of events")
	d.requireCurve()
	proxy.Cut()
	d.s.kill()
	d.waits(named("live")+`.dataset.state === "away"`, "the server is away")
	require.Contains(d.t, d.text(named("live")+`.textContent`), "away since")
	d.goes("attendance")
	d.waits(named("problem")+` !== null`, "the files of a view do not come")
	d.s = start(d.t, binary, d.c.dir, d.c.flags...)
	proxy.SetTarget(strings.TrimPrefix(d.s.url, "http://"))
	proxy.Heal()
	d.waits(named("live")+`?.dataset.state === "live" && `+named("kind")+` !== null`, "the server is back, and so is the view")
	d.loads("?range=hour")
	d.requireCurve()
	d.click("nav-sessions")
	d.shows("total", commas(d.total))
	d.requireNoFaults("net::ERR_")
	d.s.kill()
}

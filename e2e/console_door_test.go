package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// consoleKey signs in by a key, whose text stays nowhere, and out.
func consoleKey(t *testing.T, b browser, s *server) {
	t.Helper()
	p := b.emptyPage(t, s.url)
	p.loads("sessions")
	p.types("key", "rck_00000000000000000000000000000000")
	p.click("sign-in-button")
	p.waits(named("sign-in-problem")+` !== null`, "a wrong key is refused")
	p.types("key", adminKey)
	p.click("sign-in-button")
	p.waits(named("total")+` !== null`, "the page that was asked for is there")

	// Without sessions it says how to make one, and a long command does not widen the page.
	p.waits(`document.querySelector("[data-test=empty] code") !== null`, "a store without sessions says how to make one")
	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1)))
	require.Equal(t, "390 390", p.text(`document.documentElement.scrollWidth + " " + innerWidth`))
	p.do(chromedp.EmulateViewport(1280, 800))

	require.Equal(t, "false", p.text(fmt.Sprintf(`(JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage}) + document.cookie + location.href).includes(%q)`, adminKey[4:])))
	require.Empty(t, p.text(`document.cookie`), "no script sees the cookie")
	p.waits(named("live")+`.dataset.state === "live"`, "the page is told of events")

	// At the sign-out the streams of all its pages end, and what was seen is gone.
	other := p.beside()
	other.loads("")
	other.waits(named("live")+`?.dataset.state === "live"`, "another page of the same browser is told too")
	require.Eventually(t, func() bool { return s.streams(t) == 2 }, browserWait, 20*time.Millisecond, "no other page has a stream")
	p.click("menu")
	p.click("sign-out")
	p.waits(named("sign-in")+` !== null`, "the console asks who it is")
	require.Eventually(t, func() bool { return s.streams(t) == 0 }, browserWait, 20*time.Millisecond, "the stream of events ends")
	require.Equal(t, "null", p.text(named("total")))
	other.waits(named("sign-in")+` !== null`, "the other page asks too")
	require.Equal(t, "401", p.answers(`fetch("/v1/sessions").then(r => r.status)`))
	p.requireNoFaults("/v1/console/session", "/v1/sessions") // the wrong key, and the question afterwards
}

// streams says how many streams of events the server has open.
func (s *server) streams(t *testing.T) float64 {
	t.Helper()
	_, text, err := s.call(request{method: http.MethodGet, path: "/metrics"})
	require.NoError(t, err)
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "rollcall_streams ") || strings.HasPrefix(line, "rollcall_streams{") {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			require.NoError(t, err)
			sum += n
		}
	}
	return sum
}

// consoleProxy signs in whom a trusted proxy names, and asks twice before it ends their
// own session.
func consoleProxy(t *testing.T, b browser, s *server) {
	t.Helper()
	const me = "mary@example.com"
	s.loginAs(me)
	p := b.emptyPage(t, s.url)
	p.headers(network.Headers{"X-Forwarded-User": me})
	p.loads("")
	p.waits(named("live")+` !== null`, "the header signs in")
	p.click("menu")
	p.shows("role", "writer")
	require.Contains(t, p.text(named("menu")+`.nextElementSibling.textContent`), me)
	p.goes("users/" + me)
	p.click("kick")
	p.shows("kick-sentence", "End 1 session of "+me+".")
	p.waits(named("kick-own")+` !== null && `+named("kick-confirm")+`.disabled`, "it is asked a second time")
	p.click("kick-own")
	p.click("kick-confirm")
	p.shows("kick-result", "1 session ended.")
	p.requireNoFaults()
}

// consoleReader looks at each place as a reader.
func consoleReader(t *testing.T, b browser, s *server) {
	t.Helper()
	s.loginAs("zoe")
	p := b.signedIn(t, s, rollcall.RoleReader)
	p.goes("sessions?user=zoe")
	p.shows("total", "1")
	require.Equal(t, "0", p.text(allNamed("select-page")+`.length + `+allNamed("select-row")+`.length`))
	p.click("row-menu")
	p.waits(named("kick-row")+`?.disabled === true && `+named("kick-user")+`?.disabled === true`, "a kick is not offered")
	p.goes("users/zoe")
	p.waits(named("presence")+`?.textContent.includes("Online") && `+named("kick")+`.disabled && `+named("ban")+`.disabled`, "neither kick nor ban is offered")
	p.goes("system?show=keys")
	p.waits(named("not-allowed")+` !== null`, "the page says that it takes another role")
	for _, ask := range []string{
		`fetch("/v1/kicks", { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"user":"zoe"}' })`,
		`fetch("/v1/bans/zoe", { method: "PUT", headers: { "Content-Type": "application/json" }, body: '{"duration":"1h"}' })`,
		`fetch("/v1/keys")`,
	} {
		require.Equal(t, "403", p.answers(ask+`.then(r => r.status)`), ask)
	}
	p.requireNoFaults("/v1/kicks", "/v1/bans/zoe", "/v1/keys")
}

// consoleOrigins asks from a page of another origin on the same site, which the browser
// gives the cookie to.
func consoleOrigins(t *testing.T, b browser, s *server) {
	t.Helper()
	in := s.loginAs("zoe")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><form method="post" enctype="text/plain" action="%s/v1/kicks" target="sink">
			<input name='{"user":"zoe","reason":"' value='"}'></form><iframe name="sink"></iframe><iframe id="frame" src="%s/console/"></iframe>`, s.url, s.url)
	}))
	t.Cleanup(other.Close)
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	p.requireNoFaults()
	p.do(chromedp.Navigate(other.URL))

	// No script reads or changes anything, a form neither, and no page is framed.
	for _, ask := range []string{
		fmt.Sprintf(`fetch("%s/v1/kicks", { method: "POST", credentials: "include", mode: "no-cors", body: '{"user":"zoe"}' })`, s.url),
		fmt.Sprintf(`fetch("%s/v1/kicks", { method: "POST", credentials: "include", headers: { "Content-Type": "application/json", "Rollcall-Console": "1" }, body: '{"user":"zoe"}' })`, s.url),
		fmt.Sprintf(`fetch("%s/v1/sessions", { credentials: "include" })`, s.url),
	} {
		got := p.answers(ask + `.then(r => r.type + r.status, () => "refused")`)
		require.Contains(t, []string{"opaque0", "refused"}, got, ask)
	}
	p.run(`document.forms[0].submit()`)
	p.waits(`(() => { try { return frames.sink.location.href === "about:blank" ? "" : true } catch { return true } })()`, "the form has been answered")
	p.waits(`(() => { try { return document.getElementById("frame").contentDocument === null } catch { return true } })()`, "the frame has loaded something")
	state, err := s.stateOf(in.Token)
	require.NoError(t, err)
	require.Equal(t, "live", state)
	framed := false
	p.faults.mu.Lock()
	for _, text := range p.faults.texts {
		framed = framed || containsAll(text, "frame", s.url)
	}
	p.faults.mu.Unlock()
	require.True(t, framed, "the browser says that it may not frame the console: %v", p.faults.texts)
}

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// fasterBy is how much faster the timers of the pages run, so that a beat a minute
// can be waited for.
const fasterBy = 100

// pages is a site whose pages have the presence script, and which passes what is for
// Rollcall on to it, as a site would behind one address.
type pages struct {
	*httptest.Server
	mu    sync.Mutex
	beats []beat
}

// beat is a touch that a page sent.
type beat struct {
	tab   string // of the page's address
	leave bool
	code  int
}

// newPages serves pages whose script comes from source, "" for the site itself.
func newPages(t *testing.T, rollcall, source, attributes string) *pages {
	t.Helper()
	p := &pages{}
	to, err := url.Parse(rollcall)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		answer := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		proxy.ServeHTTP(answer, r)
		if r.URL.Path == "/v1/touch" && r.Method == http.MethodPost {
			from, _ := url.Parse(r.Referer())
			p.add(beat{tab: from.Query().Get("tab"), leave: r.URL.Query().Get("leave") == "1", code: answer.status})
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Referrer-Policy", "unsafe-url")
		fmt.Fprintf(w, `<!doctype html><title>page</title><script>
			const slow = window.setTimeout;
			window.setTimeout = (run, ms) => slow(run, ms / %d);
			document.addEventListener("rollcall:ended", (e) => window.ended = JSON.stringify(e.detail));
			let hidden = false;
			Object.defineProperty(document, "hidden", { get: () => hidden });
			window.show = (yes) => { hidden = !yes; document.dispatchEvent(new Event("visibilitychange")) };
			</script><script src="%s/v1/presence.js" %s></script>`, fasterBy, source, attributes)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (p *pages) add(b beat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats = append(p.beats, b)
}

// since returns the beats that came after the first n.
func (p *pages) since(n int) []beat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]beat(nil), p.beats[n:]...)
}

func (p *pages) count() int { return len(p.since(0)) }

// eventually waits until the beats after the first n are as wanted.
func (p *pages) eventually(t *testing.T, n int, what string, wanted func([]beat) bool) []beat {
	t.Helper()
	require.Eventually(t, func() bool { return wanted(p.since(n)) }, browserWait, 5*time.Millisecond, "%s; there were %v", what, p.since(n))
	return p.since(n)
}

// from reports whether there are at least so many beats, and the last few come from
// one tab.
func from(tab string, least int) func([]beat) bool {
	return func(all []beat) bool {
		if len(all) < least {
			return false
		}
		for _, b := range all[len(all)-least:] {
			if b.tab != tab || b.leave {
				return false
			}
		}
		return true
	}
}

// signIn gives the browser the cookie of a session.
func (t tab) signIn(token string) {
	t.t.Helper()
	t.run(fmt.Sprintf(`document.cookie = "session=%s; path=/"`, token))
}

func TestPagesAreTheSignsOfLifeOfTheirSession(t *testing.T) {
	s := start(t, buildBinary(t), t.TempDir(), "--verify-cookie", "session", "--presence-leave-grace", "5s")
	in := s.loginAs("alice")
	site := newPages(t, s.url, "", "")
	b := newBrowser(t, false)
	b.open(site.URL + "/empty.ico").signIn(in.Token)
	site.eventually(t, 0, "a page without a session is told once", func(all []beat) bool { return len(all) >= 1 })

	// One page beats at once, and each minute.
	n := site.count()
	first := b.open(site.URL + "/?tab=1")
	site.eventually(t, n, "the first tab beats", from("1", 3))
	require.True(t, s.online("alice"))

	// Of two tabs the one that was shown last beats, alone.
	n = site.count()
	second := b.open(site.URL + "/?tab=2")
	site.eventually(t, n, "the second tab beats alone", from("2", 4))

	// A hidden tab beats half as often, and at once when it is shown again.
	second.run(`window.show(false)`)
	n = site.count()
	site.eventually(t, n, "the hidden tab beats", from("2", 2))
	n = site.count()
	second.run(`window.show(true)`)
	site.eventually(t, n, "the tab that is shown again beats", from("2", 1))

	// A tab that is closed says so, and the other takes over: nobody was away.
	n = site.count()
	second.run(`window.close()`)
	second.close()
	site.eventually(t, n, "the first tab takes over", from("1", 3))
	require.True(t, s.online("alice"))

	// A reload is a page that goes and one that comes.
	n = site.count()
	first.do(chromedp.Reload())
	all := site.eventually(t, n, "the page beats after the reload", from("1", 2))
	require.Contains(t, all, beat{tab: "1", leave: true, code: http.StatusOK})
	require.True(t, s.online("alice"))

	// The page is told of a kick, and falls silent.
	n = site.count()
	s.get(nil, request{method: http.MethodPost, path: "/v1/kicks", body: map[string]any{"user": "alice", "reason": "house rules"}}, http.StatusOK)
	require.Eventually(t, func() bool { return first.text("window.ended") != "undefined" }, browserWait, 5*time.Millisecond, "the page is told")
	require.JSONEq(t, `{"code":"session_ended","cause":"kicked","reason":"house rules"}`, first.text("window.ended"))
	site.eventually(t, n, "the beat that was refused is noted", func(all []beat) bool {
		return slices.ContainsFunc(all, func(b beat) bool { return b.code == http.StatusUnauthorized })
	})
	require.Eventually(t, func() bool { // a beat may have been on its way when the first was refused
		n = site.count()
		first.run(`window.show(true)`)
		return len(site.since(n)) == 0
	}, browserWait, 5*time.Millisecond, "the page that was told falls silent")
}

func (s *server) online(user string) bool {
	s.t.Helper()
	var answer struct{ Items []struct{ Online bool } }
	s.get(&answer, request{method: http.MethodPost, path: "/v1/online/status", body: map[string]any{"users": []string{user}}}, http.StatusOK)
	require.Len(s.t, answer.Items, 1)
	return answer.Items[0].Online
}

func TestTheLastPageThatGoesTakesItsUserOffline(t *testing.T) {
	s := start(t, buildBinary(t), t.TempDir(), "--verify-cookie", "session")
	in := s.loginAs("alice")
	site := newPages(t, s.url, "", fmt.Sprintf("data-token=%q", in.Token))
	b := newBrowser(t, false)
	page := b.open(site.URL + "/?tab=1")
	site.eventually(t, 0, "the page beats with the token it was given", from("1", 2))
	page.do(chromedp.Navigate("about:blank"))
	site.eventually(t, 0, "the page says that it goes", func(all []beat) bool { return all[len(all)-1].leave })
	require.False(t, s.online("alice"))
}

func TestPagesOfAnotherOriginNeedToBeAllowed(t *testing.T) {
	s := start(t, buildBinary(t), t.TempDir())
	in := s.loginAs("alice")
	token := fmt.Sprintf("data-token=%q", in.Token)
	stranger := newPages(t, s.url, s.url, token)
	b := newBrowser(t, false)

	page := b.open(stranger.URL + "/?tab=1")
	require.Equal(t, "complete", page.text("document.readyState"))
	seen := s.session(in.Session.ID)
	require.Eventually(t, func() bool {
		return page.text(`performance.getEntriesByType("resource").filter((e) => e.name.includes("/v1/touch")).length > 0`) == "true"
	}, browserWait, 5*time.Millisecond, "the page tries")
	require.Equal(t, seen, s.session(in.Session.ID), "a page of any origin is heard")

	// The server has to know the origin of the pages, so they are there before it.
	site := newPages(t, s.url, "", token)
	allowed := start(t, buildBinary(t), t.TempDir(), "--cors-origins", site.URL)
	in = allowed.loginAs("alice")
	before := allowed.session(in.Session.ID)
	other := b.open(site.URL + "/empty")
	other.run(fmt.Sprintf(`const tag = document.createElement("script"); tag.src = %q; tag.dataset.token = %q; document.head.append(tag)`,
		allowed.url+"/v1/presence.js", in.Token))
	require.Eventually(t, func() bool { return allowed.session(in.Session.ID) != before }, browserWait, 5*time.Millisecond, "a page of an allowed origin is heard")
}

// session returns when a session was last seen.
func (s *server) session(id string) (seen string) {
	s.t.Helper()
	var answer struct {
		SeenAt string `json:"seen_at"`
	}
	s.get(&answer, request{method: http.MethodGet, path: "/v1/sessions/" + id}, http.StatusOK)
	return answer.SeenAt
}

func TestABrowserThatAProgramDrivesSendsNothing(t *testing.T) {
	s := start(t, buildBinary(t), t.TempDir())
	site := newPages(t, s.url, "", fmt.Sprintf("data-token=%q", s.loginAs("alice").Token))
	page := newBrowser(t, true).open(site.URL + "/?tab=1")
	require.Equal(t, "true", page.text("navigator.webdriver"))
	page.run(`window.show(true)`)
	page.do(chromedp.Navigate("about:blank"))
	require.Zero(t, site.count())
}

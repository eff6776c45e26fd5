package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestTheConsoleShowsWhoIsHereAndShowsThemOut drives the pages as an operator does.
func TestTheConsoleShowsWhoIsHereAndShowsThemOut(t *testing.T) {
	for name, on := range map[string]func(*testing.T) backend{
		"embedded": func(*testing.T) backend { return embedded() },
		"redis":    sharedRedis,
	} {
		t.Run(name, func(t *testing.T) {
			b := on(t)
			var flags []string
			if b.url != "" {
				flags = b.flags(b.store())
			}
			driveConsole(t, start(t, buildBinary(t), t.TempDir(), flags...))
		})
	}
}

// hostileUser would run in a page that took an id for markup.
const hostileUser = `<img src=x onerror="window.hacked=1">`

func driveConsole(t *testing.T, s *server) {
	t.Helper()
	for i := range 25 {
		s.loginAs(fmt.Sprint("guest", i))
	}
	alice := []loginAnswer{s.loginAs("alice"), s.loginAs("alice")}
	s.loginAs(hostileUser)
	page := openConsole(t, s, rollcall.RoleAdmin)

	// Now: the link has signed in and is gone from the address, and counts follow beats.
	require.NotContains(t, page.text(`location.href`), "link=")
	page.shows("online-count", "27")
	page.waits(`document.querySelector('[data-test="live"]').dataset.state === "live"`, "the page is told of events")
	s.get(nil, request{method: http.MethodPost, path: "/v1/beats", body: map[string]any{"users": []string{"bob", "carol", "dave"}}}, http.StatusOK)
	page.shows("online-count", "30")

	// Sessions: a search, and a kick of what it finds.
	page.click("nav-sessions")
	page.shows("total", "28")
	page.types("search", "alice")
	page.shows("total", "2")
	page.click("select-page")
	page.click("kick-selected")
	page.types("kick-reason", "house rules")
	page.click("kick-confirm")
	page.waits(`document.querySelector('[data-test="kick-result"]') !== null`, "the kick is told")
	for _, in := range alice {
		state, err := s.stateOf(in.Token)
		require.NoError(t, err)
		require.Contains(t, state, "kicked")
	}
	page.click("kick-done")

	// A language is chosen and stays.
	page.run(`localStorage.setItem("rollcall.locale", "zh-CN")`)
	page.do(chromedp.Navigate(s.url + "/console/sessions"))
	page.shows("total", "26")
	require.Contains(t, page.text(`document.querySelector("h1").textContent`), "会话")

	// An id is text, wherever it stands.
	require.Contains(t, page.text(`document.body.textContent`), hostileUser)
	require.Equal(t, "undefined", page.text(`window.hacked`))
	page.requireNoFaults()

	// Who may only read is not offered a kick.
	page = openConsole(t, s, rollcall.RoleReader)
	page.shows("online-count", "29")
	page.click("nav-sessions")
	page.shows("total", "26")
	require.Equal(t, "0", page.text(`document.querySelectorAll('[data-test="select-page"], [data-test="select-row"]').length`))
	page.requireNoFaults()
}

// consolePage is a page of the console.
type consolePage struct {
	tab
	mu     *sync.Mutex
	faults *[]string // what the browser's console says is wrong
}

// openConsole opens the console in a browser of its own, by a one-time link.
func openConsole(t *testing.T, s *server, role rollcall.Role) consolePage {
	t.Helper()
	var link struct{ Path string }
	s.get(&link, request{method: http.MethodPost, path: "/v1/console/links", body: map[string]any{"role": role}}, http.StatusCreated)
	p := consolePage{tab: newBrowser(t, true).open("about:blank"), mu: new(sync.Mutex), faults: new([]string)}
	require.NoError(t, chromedp.Listen(p.ctx, func(event any) {
		text := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text = fmt.Sprintf("%+v", e.ExceptionDetails)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" && !strings.HasSuffix(e.Entry.URL, "/v1/console/session") { // that says that nobody is signed in
				text = e.Entry.Text + " " + e.Entry.URL
			}
		}
		if text == "" {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		*p.faults = append(*p.faults, text)
	}))
	p.do(chromedp.Navigate(s.url + link.Path))
	return p
}

func (p consolePage) requireNoFaults() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(p.t, *p.faults)
}

// named is an expression of the first element that has a name for tests.
func named(name string) string { return fmt.Sprintf(`document.querySelector('[data-test=%q]')`, name) }

// waits waits until an expression is true.
func (p consolePage) waits(expression, what string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return p.text(expression) == "true" }, browserWait, 20*time.Millisecond, what)
}

// shows waits until an element has a text.
func (p consolePage) shows(name, text string) {
	p.t.Helper()
	seen := ""
	require.Eventually(p.t, func() bool {
		seen = p.text(named(name) + `?.textContent.trim()`)
		return seen == text
	}, browserWait, 20*time.Millisecond, "%s shows %s", name, text)
	require.Equal(p.t, text, seen)
}

// click clicks an element as soon as it is there and may be clicked.
func (p consolePage) click(name string) {
	p.t.Helper()
	p.waits(named(name)+` !== null && !`+named(name)+`.disabled`, name+" may be clicked")
	p.run(named(name) + `.click()`)
}

// types puts a text into a field.
func (p consolePage) types(name, text string) {
	p.t.Helper()
	p.waits(named(name)+` !== null`, name+" is there")
	p.run(fmt.Sprintf(`{ const field = %s; field.value = %q; field.dispatchEvent(new Event("input", { bubbles: true })) }`, named(name), text))
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// consolePage is a page of the console, in a browser context of its own: it shares no
// cookie with another one.
type consolePage struct {
	tab
	url    string // of the server
	faults *faults
}

// faults are what a browser's console says is wrong.
type faults struct {
	mu    sync.Mutex
	texts []string
}

func (f *faults) add(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, text)
}

// emptyPage opens a page that shows nothing yet. The browser is in another zone of time
// than any server of the tests.
func (b browser) emptyPage(t *testing.T, url string) consolePage {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx)) // makes the tab, which lives as long as this context
	p := consolePage{tab: tab{t: t, ctx: ctx, close: end}, url: url, faults: &faults{}}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			p.faults.add(fmt.Sprintf("%+v", e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" {
				p.faults.add(fmt.Sprintf("%s: %+v", e.Type, e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" {
				p.faults.add(e.Entry.Text + " " + e.Entry.URL)
			}
		}
	}))
	p.media("light")
	p.call(func(ctx context.Context, on cdp.Session) error {
		_, err := cdp.Call(ctx, on, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"})
		return err
	})
	return p
}

// beside opens a second page in the same browser context, which shares the cookies.
func (p consolePage) beside() consolePage {
	p.t.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	p.t.Cleanup(end)
	require.NoError(p.t, chromedp.Do(ctx))
	return consolePage{tab: tab{t: p.t, ctx: ctx, close: end}, url: p.url, faults: &faults{}}
}

// call calls the browser about the page.
func (p consolePage) call(f func(context.Context, cdp.Session) error) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, on *chromedp.Target) error { return f(ctx, on) }))
}

// signedIn opens the console by a one-time link.
func (b browser) signedIn(t *testing.T, s *server, role rollcall.Role) consolePage {
	t.Helper()
	return b.signedInAt(t, s, s.url, role)
}

// signedInAt opens it at another address of the server.
func (b browser) signedInAt(t *testing.T, s *server, url string, role rollcall.Role) consolePage {
	t.Helper()
	var link struct{ Path string }
	s.get(&link, request{method: http.MethodPost, path: "/v1/console/links", body: map[string]any{"role": role}}, http.StatusCreated)
	p := b.emptyPage(t, url)
	p.do(chromedp.Navigate(url + link.Path))
	p.waits(named("live")+` !== null`, "the link signs in")
	return p
}

// headers has the browser send headers with every request.
func (p consolePage) headers(h network.Headers) {
	p.t.Helper()
	p.call(func(ctx context.Context, on cdp.Session) error {
		_, err := cdp.Call(ctx, on, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: h})
		return err
	})
}

// media has the page think that the reader prefers a scheme of colours, and nothing that
// moves, which would cost time.
func (p consolePage) media(scheme string) {
	p.t.Helper()
	p.call(func(ctx context.Context, on cdp.Session) error {
		_, err := cdp.Call(ctx, on, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	})
}

// loads opens a place of the console as a link from elsewhere does.
func (p consolePage) loads(place string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.url + "/console/" + place))
}

// goes goes to a place as a link in the page does, which loads nothing anew.
func (p consolePage) goes(place string) {
	p.t.Helper()
	p.run(fmt.Sprintf(`history.pushState(null, "", %q); dispatchEvent(new PopStateEvent("popstate"))`, "/console/"+place))
}

// requireNoFaults expects that nothing went wrong in the page so far, but for what is
// allowed.
func (p consolePage) requireNoFaults(allowed ...string) {
	p.t.Helper()
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	for _, text := range p.faults.texts {
		known := false
		for _, part := range allowed {
			known = known || strings.Contains(text, part)
		}
		require.True(p.t, known, "the browser's console says: %s", text)
	}
}

// named is an expression of the first element that has a name for tests.
func named(name string) string { return fmt.Sprintf(`document.querySelector('[data-test=%q]')`, name) }

// allNamed is an expression of an array of all elements that have it.
func allNamed(name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('[data-test=%q]')]`, name)
}

// until asks again and again, and reports whether a condition has come to hold.
func until(holds func() bool) bool {
	for end := time.Now().Add(browserWait); !holds(); {
		if time.Now().After(end) {
			return false
		}
		<-time.After(40 * time.Millisecond)
	}
	return true
}

// waits waits until an expression is true. What it looks at may not be there yet, and the
// page may be on its way to another.
func (p consolePage) waits(expression, what string) {
	p.t.Helper()
	holds := `(() => { try { return (` + expression + `) } catch { return false } })()`
	var failed error
	came := until(func() bool {
		held, err := p.ask(holds)
		failed = err
		return held == "true"
	})
	require.True(p.t, came, "%s: %s (%v)", what, expression, failed)
}

// shows waits until an element has a text.
func (p consolePage) shows(name, text string) {
	p.t.Helper()
	seen := ""
	until(func() bool {
		seen = p.text(named(name) + `?.textContent.replace(/\s+/g, " ").trim()`)
		return seen == text
	})
	require.Equal(p.t, text, seen, "what %s shows", name)
}

// answers returns what the promise that an expression gives is kept with, as text.
func (p consolePage) answers(expression string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, browserWait)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[string]("Promise.resolve("+expression+").then(String)", chromedp.EvalAwaitPromise))
	require.NoError(p.t, err)
	return out
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

// chooses chooses an option of a field.
func (p consolePage) chooses(name, value string) {
	p.t.Helper()
	p.waits(named(name)+` !== null`, name+" is there")
	p.run(fmt.Sprintf(`{ const field = %s; field.value = %q; field.dispatchEvent(new Event("change", { bubbles: true })) }`, named(name), value))
}

// presses presses a key.
func (p consolePage) presses(key string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(key))
}

// texts are those of all elements of a name.
func (p consolePage) texts(name string) []string {
	p.t.Helper()
	var out []string
	text := p.text(`JSON.stringify(` + allNamed(name) + `.map(e => e.textContent.replace(/\s+/g, " ").trim()))`)
	require.NoError(p.t, json.Unmarshal([]byte(text), &out))
	return out
}

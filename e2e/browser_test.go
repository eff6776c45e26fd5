package e2e

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is a Chromium of a test's own.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp keeps the browser in it
}

// browserWait bounds how long a test waits for what a page does.
const browserWait = time.Minute

// newBrowser starts Chromium. It says that a program drives it only if it is told
// to: what is written for people sees none otherwise.
func newBrowser(t *testing.T, driven bool) browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			require.Fail(t, "no Chromium: what pages do in a browser cannot be tested")
		}
		t.Skip("NOT TESTED: what pages do in a browser: there is no Chromium")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(browserWait))
	if !driven {
		flags = append(flags, chromedp.Flag("enable-automation", false), chromedp.Flag("disable-blink-features", "AutomationControlled"))
	}
	allocated, free := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(free)
	ctx, end := chromedp.NewContext(allocated)
	t.Cleanup(end)
	require.NoError(t, chromedp.Do(ctx)) // starts it
	return browser{t: t, ctx: ctx}
}

// tab is a page in a tab of its own.
type tab struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // chromedp keeps the tab in it
	close func()
}

// open opens an address in a new tab.
func (b browser) open(url string) tab {
	b.t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	t := tab{t: b.t, ctx: ctx, close: end}
	b.t.Cleanup(end)
	require.NoError(b.t, chromedp.Do(ctx)) // makes the tab, which lives as long as this context
	t.do(chromedp.Navigate(url))
	return t
}

func (t tab) do(steps ...chromedp.Action[chromedp.Void]) {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, browserWait)
	defer cancel()
	require.NoError(t.t, chromedp.Do(ctx, steps...))
}

// run runs a script in the page.
func (t tab) run(script string) { t.t.Helper(); t.do(chromedp.Evaluate[chromedp.Void](script)) }

// text returns what an expression gives in the page, as text.
func (t tab) text(expression string) string {
	t.t.Helper()
	out, err := t.ask(expression)
	require.NoError(t.t, err)
	return out
}

// ask does so too, and fails where the page is just being left.
func (t tab) ask(expression string) (string, error) {
	ctx, cancel := context.WithTimeout(t.ctx, browserWait)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
}

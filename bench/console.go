package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

const (
	consoleLoads  = 7                // of each view
	consoleEvents = 1000             // a second
	consoleBusy   = 20 * time.Second // for which they come
)

// consoleProbe notes when what a view is about stands on the screen, and tasks that
// hold the page up.
const consoleProbe = `
window.longest = 0; window.long = 0;
new PerformanceObserver(list => { for (const e of list.getEntries()) { long += e.duration > 100; longest = Math.max(longest, e.duration) } }).observe({ type: "longtask", buffered: true });
const look = () => {
	const enough = location.pathname.endsWith("/sessions") ? document.querySelectorAll('[data-test="row"]').length >= 10 : /\d/.test(document.querySelector('[data-test="online-count"]')?.textContent ?? "");
	if (enough) requestAnimationFrame(() => setTimeout(() => window.shownAt ??= performance.now()));
	else setTimeout(look, 2);
};
look();`

// measureConsole measures the pages of the console in Chromium.
func measureConsole(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "The console in a browser",
		about: fmt.Sprintf("Chromium without a window, on the machine of the server, with files in its cache from a first visit; medians and worst of %d loads. Measured is from the start of the navigation until ten rows, or the count, are painted. ", consoleLoads) +
			"Keycloak's session page is published to need 40 s for the first ten of 30,000 sessions, and to fail over 20,000 of a client.",
	}
	t := table{head: []string{"live sessions", "Sessions: ten rows", "worst", "Now: the count", "worst", "transferred, packed"}}
	for _, n := range sizes {
		c, err := openConsole(ctx, n)
		if err != nil {
			return s, err
		}
		row, bytes, err := c.loads()
		if err == nil && n == sizes[len(sizes)-1] {
			t.note, err = c.busy(ctx)
		}
		if err := errors.Join(err, c.close()); err != nil {
			return s, err
		}
		t.add(append([]string{count(float64(n))}, row...)...)
		s.atMost("P15", "the console over the wire, packed", bytes, 120e3, func(n float64) string { return fmt.Sprintf("%.0f kB", n/1000) })
	}
	s.tables = append(s.tables, t)
	return s, nil
}

// console is a browser that is signed in to a server.
type console struct {
	*served
	ctx  context.Context //nolint:containedctx // chromedp keeps the tab in it
	end  func()
	data string
}

// openConsole fills a store, starts a server over it, and signs a browser in.
func openConsole(ctx context.Context, sessions int) (*console, error) {
	data, err := os.MkdirTemp("", "rollcall-bench-console")
	if err != nil {
		return nil, err
	}
	secret := strings.Repeat("5e", 32)
	if err := fillStore(ctx, filepath.Join(data, "store"), secret, sessions); err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	s, err := startServed(ctx, "--data-dir", data, "--secret", secret)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	c := &console{served: s, data: data, end: func() {}}
	if err := c.signIn(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func fillStore(ctx context.Context, dir, secret string, sessions int) error {
	engine, err := local.Open(dir, local.Options{Durability: local.Interval})
	if err != nil {
		return err
	}
	key, err := hex.DecodeString(secret)
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	roll, err := rollcall.New(engine, rollcall.Options{Secret: key})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	err = fillSessions(ctx, &bench{Roll: roll, engine: engine, dir: dir}, sessions)
	return errors.Join(err, roll.Close(), engine.Close())
}

func (c *console) close() error {
	c.end()
	return errors.Join(c.stop(), os.RemoveAll(c.data))
}

// signIn starts the browser and opens a one-time link.
func (c *console) signIn(ctx context.Context) error {
	path := ""
	for _, name := range []string{"chromium", "chromium-headless-shell", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return errors.New("there is no Chromium")
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	allocated, free := chromedp.NewExecAllocator(ctx, flags...)
	tab, end := chromedp.NewContext(allocated)
	c.ctx, c.end = tab, func() { end(); free() }

	var link struct{ Path string }
	if err := c.post(ctx, "/v1/console/links", `{}`, &link); err != nil {
		return err
	}
	return chromedp.Do(c.ctx,
		chromedp.Func(func(ctx context.Context, on *chromedp.Target) error {
			_, err := cdp.Call(ctx, on, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: consoleProbe})
			return err
		}),
		chromedp.Navigate("http://"+c.address+link.Path))
}

// post sends a body and reads the answer into v.
func (c *console) post(ctx context.Context, path, body string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+servedKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	return json.NewDecoder(res.Body).Decode(v)
}

// eval returns a number that an expression gives once it is one.
func (c *console) eval(expression string) (float64, error) {
	return chromedp.Run(c.ctx, chromedp.Evaluate[float64](
		`new Promise(done => { const look = () => { const n = `+expression+`; n === undefined || n === null ? setTimeout(look, 5) : done(n) }; look() })`, chromedp.EvalAwaitPromise))
}

// loads opens the views again and again.
func (c *console) loads() (row []string, bytes float64, err error) {
	if _, err := c.eval(`window.shownAt`); err != nil {
		return nil, 0, err
	}
	bytes, err = c.eval(`performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).filter(e => e.name.includes("/console/")).reduce((sum, e) => sum + e.encodedBodySize, 0)`)
	if err != nil {
		return nil, 0, err
	}
	for _, view := range []string{"sessions", ""} {
		var waits []time.Duration
		for i := range consoleLoads + 1 {
			if err := chromedp.Do(c.ctx, chromedp.Navigate("http://"+c.address+"/console/"+view)); err != nil {
				return nil, 0, err
			}
			ms, err := c.eval(`window.shownAt`)
			if err != nil {
				return nil, 0, err
			}
			if i > 0 { // the first loads the files of the view
				waits = append(waits, time.Duration(ms*1e6))
			}
		}
		row = append(row, took(median(waits)), took(percentile(waits, 100)))
	}
	return append(row, fmt.Sprintf("%.0f kB", bytes/1000)), bytes, nil
}

// busy has users come online while Now is seen, and says how long tasks of the page took.
func (c *console) busy(ctx context.Context) (string, error) {
	const rounds = 20 // a second
	if err := chromedp.Do(c.ctx, chromedp.Navigate("http://"+c.address+"/console/")); err != nil {
		return "", err
	}
	if _, err := c.eval(`window.shownAt`); err != nil {
		return "", err
	}
	if _, err := c.eval(`document.querySelector('[data-test="live"]').dataset.state === "live" ? (longest = 0, long = 0, 1) : null`); err != nil {
		return "", err
	}
	clock := time.NewTicker(time.Second / rounds)
	defer clock.Stop()
	sent, began := 0, time.Now()
	for time.Since(began) < consoleBusy {
		users := make([]string, consoleEvents/rounds)
		for i := range users {
			users[i] = fmt.Sprint("new", sent)
			sent++
		}
		body, err := json.Marshal(map[string]any{"users": users})
		if err != nil {
			return "", err
		}
		var answer any
		if err := c.post(ctx, "/v1/beats", string(body), &answer); err != nil {
			return "", err
		}
		<-clock.C
	}
	rate := float64(sent) / time.Since(began).Seconds()
	longest, err := c.eval(`window.longest`)
	if err != nil {
		return "", err
	}
	long, err := c.eval(`window.long`)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("With %s events a second coming in for %v while Now was seen, %.0f tasks of the page took over 100 ms; the longest took %.0f ms (0: none over 50 ms).",
		count(rate), consoleBusy, long, longest), nil
}

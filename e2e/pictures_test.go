//go:build pictures

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestPictures makes the pictures of the README from the demo: docs/images/make.sh runs
// it. It is no test, and built with a tag of its own.
func TestPictures(t *testing.T) {
	b, url, link := newBrowser(t, true), "", ""
	cmd := exec.CommandContext(t.Context(), buildBinary(t), "demo", "--seed", "1", "--no-browser", "--listen", "127.0.0.1:0") //nolint:gosec // our own command
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have failed
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		if text := strings.TrimSpace(lines.Text()); strings.Contains(text, "#link=") {
			link = text
		} else if strings.HasPrefix(text, "curl ") {
			url = strings.TrimSuffix(text[strings.LastIndex(text, "http://"):], "/v1/sessions")
		}
	}
	require.NotEmpty(t, url)

	// The ticker of events and the curve of the newest minute fill up first.
	p := b.emptyPage(t, url)
	p.do(chromedp.EmulateViewport(1280, 860, chromedp.EmulateScale(1.5)), chromedp.Navigate(link))
	p.waits(named("live")+`?.dataset.state === "live"`, "the page is told of events")
	p.settles(time.Minute)
	for _, scheme := range []string{"light", "dark"} {
		p.media(scheme)
		p.loads("?range=day")
		p.waits(named("curve")+`?.querySelector("canvas") != null`, "the curve is drawn")
		p.settles(20 * time.Second)
		p.picture("now", scheme)
		p.loads("sessions")
		p.waits(allNamed("row")+`.length > 9`, "the sessions are listed")
		p.settles(3 * time.Second)
		p.picture("sessions", scheme)
		p.loads("attendance")
		p.waits(named("triangle")+` !== null && document.querySelector(".bone") === null`, "the figures are there")
		p.settles(6 * time.Second)
		p.picture("attendance", scheme)
	}
}

// settles lets a page go on for a time.
func (p consolePage) settles(d time.Duration) {
	p.t.Helper()
	select {
	case <-time.After(d):
	case <-p.t.Context().Done():
	}
}

// picture writes what the page shows to docs/images.
func (p consolePage) picture(view, scheme string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, browserWait)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	img, err := png.Decode(bytes.NewReader(shot))
	require.NoError(p.t, err)
	var small bytes.Buffer
	require.NoError(p.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, fewColours(img)))
	require.NoError(p.t, os.WriteFile(filepath.Join("..", "docs", "images", view+"-"+scheme+".png"), small.Bytes(), 0o644)) //nolint:gosec // it is for all
}

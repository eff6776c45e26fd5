package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// TestTheManual looks at the documentation that the binary serves, in a browser: the
// search finds a word, axe finds nothing serious, and no page is wider than a phone.
func TestTheManual(t *testing.T) {
	t.Parallel()
	b := newBrowser(t, true)
	script, err := os.ReadFile(filepath.Join(string(installNodeTools(t, "axe")), "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	s := start(t, buildBinary(t), t.TempDir())
	defer s.kill()
	p := b.emptyPage(t, s.url)

	answer, err := http.Get(s.url + "/docs")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Equal(t, "/docs/", answer.Request.URL.Path)

	for _, c := range []struct{ folder, word, found string }{
		{"", "evict_idle", "Sessions › Policies"},
		{"zh-CN/", "evict_idle", "会话 › 策略"},
		{"zh-CN/", "踢", "踢"},
		{"zh-CN/", "怎么踢人", "踢人"},
		{"zh-CN/", "storage_full", "故障处理 › 磁盘满了"},
		{"", "presence.window", "Configuration"},
		{"", "secret gone forgotten", "secret"},
	} {
		p.do(chromedp.Navigate(s.url + "/docs/" + c.folder))
		p.run(`const field = document.getElementById("search"); field.value = "` + c.word + `"; field.dispatchEvent(new Event("input"))`)
		p.waits(`document.querySelector("#found a")?.textContent.includes("`+c.found+`")`, "the search finds "+c.word)
		p.run(`document.querySelector("#found a").click()`)
		p.waits(`location.pathname !== "/docs/`+c.folder+`" && document.readyState === "complete"`, "the page that was found")
	}

	pages := []string{"", "sessions", "cli", "languages", "zh-CN/", "zh-CN/sessions"}
	for _, page := range pages {
		p.do(chromedp.Navigate(s.url + "/docs/" + page))
		p.run(string(script))
		p.requireNothingSerious(`["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]`, page)
		p.media("dark")
		p.requireNothingSerious(`{ type: "rule", values: ["color-contrast"] }`, page+", dark")
		p.media("light")
	}
	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1), chromedp.EmulateMobile, chromedp.EmulateTouch))
	for _, page := range pages {
		p.do(chromedp.Navigate(s.url + "/docs/" + page))
		require.Equal(t, "390 390", p.text(`document.documentElement.scrollWidth + " " + innerWidth`), "the width of %q", page)
	}
	p.requireNoFaults()
}

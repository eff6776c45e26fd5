package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// consoleViews are the places of the console, with what is waited for in each.
var consoleViews = map[string]string{
	"":                     "online-count",
	"sessions":             "row",
	"users":                "user-row",
	"users?show=bans":      "bans-table",
	"users/zoe":            "presence",
	"users/" + longUser:    "presence",
	"attendance":           "triangle",
	"system":               "health",
	"system?show=archive":  "archive-runs",
	"system?show=webhooks": "webhook",
	"system?show=keys":     "key-row",
	"system?show=names":    "kinds",
	"system?show=audit":    "audit",
}

// longUser is as long as an id may be, and has nowhere to break.
var longUser = strings.Repeat("W", 128)

// furnish gives each view something to show.
func furnish(t *testing.T, s *server) {
	t.Helper()
	for i := range 3 {
		s.loginAs(fmt.Sprint("guest", i))
	}
	s.loginAs("zoe")

	// Whoever may choose a text may choose the longest one.
	long := func(n int) string { return strings.Repeat("W", n) }
	status, _, err := s.login(map[string]any{
		"user": longUser, "name": long(128), "app": long(64), "device": long(32), "ip": "2001:db8:85a3:1234:5678:8a2e:ffff:7334",
		"user_agent": long(500), "attrs": map[string]string{long(32): long(256)},
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status)
	s.get(nil, request{method: http.MethodPut, path: "/v1/users/zoe/friends/" + longUser}, http.StatusNoContent)
	s.get(nil, request{method: http.MethodPut, path: "/v1/bans/" + strings.ToLower(longUser), body: map[string]any{"duration": "3650d", "reason": long(120)}}, http.StatusOK, http.StatusCreated)
	s.get(nil, request{method: http.MethodPut, path: "/v1/bans/mallory", body: map[string]any{"duration": "1h", "reason": "spam"}}, http.StatusOK, http.StatusCreated)
	var hooks struct{ Items []struct{ ID string } }
	s.get(&hooks, request{method: http.MethodGet, path: "/v1/webhooks"}, http.StatusOK)
	if len(hooks.Items) == 0 {
		s.get(nil, request{method: http.MethodPost, path: "/v1/webhooks", body: map[string]any{"url": "https://hooks.example.com/" + long(200), "description": long(100)}}, http.StatusCreated)
		s.get(nil, request{method: http.MethodPost, path: "/v1/keys", body: map[string]any{"role": "reader", "name": long(60)}}, http.StatusCreated)
		s.get(nil, request{method: http.MethodPost, path: "/v1/visits", body: map[string]any{"name": long(64), "visitors": []string{"v"}}}, http.StatusOK)
	}
}

// look goes to a view as a link in the page does, and waits until it shows what it is about.
func (p consolePage) look(view string) {
	p.t.Helper()
	p.goes(view)
	p.waits(named(consoleViews[view])+` !== null && document.querySelector(".bone") === null`, "the view "+view)
}

// consoleHostile shows names, ids and user agents that are markup.
func consoleHostile(t *testing.T, b browser, s *server) {
	t.Helper()
	status, _, err := s.login(map[string]any{
		"user": hostileUser, "name": `"><script>window.hacked=2</script>`, "app": `'-alert(1)-'`, "device": "<b>tv</b>",
		"user_agent": `<svg onload="window.hacked=3"> javascript:window.hacked=4`, "attrs": map[string]string{"k": "{{window.hacked=5}}"},
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status)
	s.get(nil, request{method: http.MethodPut, path: "/v1/users/" + url.PathEscape(hostileUser) + "/friends/javascript:window.hacked=6"}, http.StatusNoContent)
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	for _, view := range []string{"", "sessions?q=" + url.QueryEscape(hostileUser), "users", "users/" + url.PathEscape(hostileUser)} {
		p.loads(view)
		p.waits(fmt.Sprintf(`document.querySelector("main")?.textContent.includes(%q) && document.querySelector(".bone") === null`, hostileUser), "an id is text in "+view)
	}
	p.loads("sessions?q=" + url.QueryEscape(hostileUser))
	p.waits(named("row")+` !== null`, "the session is found")
	p.run(named("row") + `.click()`)
	p.waits(named("drawer")+`?.textContent.includes("<svg onload=") && `+named("drawer")+`.textContent.includes("{{window.hacked=5}}")`, "the drawer shows it all")
	require.Equal(t, "undefined", p.text(`window.hacked`))
	require.Equal(t, "0", p.text(`document.querySelectorAll("img, b.tv, a[href^='javascript']").length`))
	p.requireNoFaults()
}

// consolePhone shows each view in both languages on a narrow screen, where nothing scrolls
// sideways but a year and the triangle, and in one of them on a wide screen. No view has
// words of English that others use.
func consolePhone(t *testing.T, b browser, s *server) {
	t.Helper()
	furnish(t, s)
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	p.do(chromedp.EmulateViewport(1280, 860, chromedp.EmulateScale(1)))
	p.fits("")
	p.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(1), chromedp.EmulateMobile, chromedp.EmulateTouch))
	p.fits("")
	p.click("menu")
	p.opens("menu")
	p.click("locale-zh-CN")
	p.shows("nav-sessions", "会话")
	p.loads("sessions")
	p.waits(`document.documentElement.lang === "zh-CN" && document.querySelector("h1").textContent.includes("会话")`, "the choice stays")
	p.waits(named("row-menu")+` !== null`, "a row")
	p.click("row-menu")
	p.opens("row-menu")
	p.fits("no English")
	p.look("users/zoe")
	p.waits(named("day")+` !== null`, "a day of the calendar")
	require.Equal(t, "true", p.text(`(() => { const box = `+named("heatmap")+`.parentElement; return box.scrollLeft > 0 && box.tabIndex === 0 })()`), "the newest days are seen, and the keyboard scrolls to the others")
	p.requireNoFaults()
}

// fits looks at each view for what is wider than its place, and for words of English if
// there should be none.
func (p consolePage) fits(language string) {
	p.t.Helper()
	const wide = `document.documentElement.scrollWidth > innerWidth ? "the page" : [...document.querySelectorAll("main *")].filter(e => e.scrollWidth > e.clientWidth + 1 &&
		["auto", "scroll"].includes(getComputedStyle(e).overflowX) && !e.querySelector('[data-test="heatmap"], [data-test="triangle"]')).map(e => e.firstElementChild?.outerHTML.slice(0, 80)).join()`
	for _, view := range slices.Sorted(maps.Keys(consoleViews)) {
		p.look(view)
		require.Empty(p.t, p.text(wide), "what is too wide in %q", view)
		if language == "" {
			continue
		}
		words := p.text(`document.querySelector("main").innerText.split(/[^A-Za-z]+/).join(" ")`)
		for _, word := range []string{"Sessions", "Users", "Export", "Filter", "Kick", "seconds", "undefined", "NaN", "null"} {
			require.NotContains(p.t, strings.Fields(words), word, "in %q", view)
		}
	}
}

// opens waits until the menu of a button is open, whole on the screen, with the focus in it.
func (p consolePage) opens(button string) {
	p.t.Helper()
	p.waits(`(() => {
		const panel = `+named(button)+`.nextElementSibling, box = panel.getBoundingClientRect();
		return panel.matches(":popover-open") && panel.contains(document.activeElement) && box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
	})()`, "the menu of "+button+" is on the screen, and has the focus")
}

// consoleTransfer sums what a browser loads before the first view is there.
func consoleTransfer(t *testing.T, b browser, s *server) {
	t.Helper()
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	p.waits(`/\d/.test(`+named("online-count")+`.textContent)`, "the first view is there")
	p.waits(`performance.getEntriesByType("resource").some(e => e.name.includes("/assets/"))`, "the files are listed")
	const loaded = `performance.getEntriesByType("navigation").concat(performance.getEntriesByType("resource")).filter(e => e.name.includes("/console/")).reduce((sum, e) => sum + e.encodedBodySize, 0)`
	var n int
	require.NoError(t, json.Unmarshal([]byte(p.text(loaded)), &n))
	require.Positive(t, n)
	require.LessOrEqual(t, n, 120<<10, "bytes, packed, of the first view")
	p.requireNoFaults()
}

// consoleAxe looks at each view in English, in both themes, for what shuts people out.
func consoleAxe(t *testing.T, b browser, s *server) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(string(installNodeTools(t, "axe")), "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	furnish(t, s)
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	p.run(string(script))
	for _, view := range slices.Sorted(maps.Keys(consoleViews)) {
		p.look(view)
		require.Equal(t, "false", p.text(`/[\u4e00-\u9fff]/.test(document.querySelector("main").innerText)`), "%q has words of Chinese", view)
		p.requireNothingSerious(`["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]`, view)
		p.media("dark") // the themes differ in colours alone
		p.requireNothingSerious(`{ type: "rule", values: ["color-contrast"] }`, view+", dark")
		p.media("light")
	}
	p.requireNoFaults()
}

// requireNothingSerious has axe look at the page by some of its rules.
func (p consolePage) requireNothingSerious(rules, where string) {
	p.t.Helper()
	// What came into a box since the last frame is seen with the next one.
	p.waits(`[...document.querySelectorAll(".scroll")].every(b => b.tabIndex === 0 || (b.scrollWidth <= b.clientWidth + 1 && b.scrollHeight <= b.clientHeight + 1))`,
		"the keyboard scrolls each box that is wider or taller than its place")
	found := p.answers(`axe.run(document, { resultTypes: ["violations"], runOnly: ` + rules + ` }).then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => v.help + ": " + v.nodes.slice(0, 3).map(n => n.html + " (" + n.failureSummary + ")").join("; ")).join("\n"))`)
	require.Empty(p.t, found, "%q", where)
}

// consoleTypes compares what the source of the console was made of with the document of
// the API.
func consoleTypes(t *testing.T, _ browser, s *server) {
	t.Helper()
	const folder = "../console/ui/src/lib/api/"
	types, err := os.ReadFile(folder + "types.ts")
	require.NoError(t, err)
	made, err := os.ReadFile(folder + "schema.d.ts")
	require.NoError(t, err)
	var document struct {
		Components struct{ Schemas map[string]any }
	}
	s.get(&document, request{method: http.MethodGet, path: "/openapi.json"}, http.StatusOK)

	var wanted []string
	for _, m := range regexp.MustCompile(`Schemas\['(\w+)'\]`).FindAllSubmatch(types, -1) {
		wanted = append(wanted, string(m[1]))
	}
	shapes := map[string]any{}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if _, done := shapes[name]; done {
			continue
		}
		require.Contains(t, document.Components.Schemas, name, "types.ts names it")
		shapes[name] = shapeOf(document.Components.Schemas[name])
		for _, m := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(string(plainJSON(t, shapes[name])), -1) {
			wanted = append(wanted, m[1])
		}
	}
	sum := sha256.Sum256(plainJSON(t, shapes))
	require.Contains(t, string(made), "// Sum of the shapes: "+hex.EncodeToString(sum[:])+"\n",
		`the API has other shapes than the console knows: run "npm run types" in console/ui against this server, and console/build.sh`)
}

// shapeOf leaves of a schema what a type is made of.
func shapeOf(schema any) any {
	switch v := schema.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shapeOf(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, name := range []string{"$ref", "type", "enum", "required", "items", "properties", "additionalProperties", "oneOf", "anyOf", "allOf"} {
			inner, ok := v[name]
			if properties, isMap := inner.(map[string]any); isMap && name == "properties" {
				shapes := map[string]any{}
				for key, value := range properties {
					shapes[key] = shapeOf(value)
				}
				out[name] = shapes
			} else if ok {
				out[name] = shapeOf(inner)
			}
		}
		return out
	default:
		return schema
	}
}

// plainJSON writes JSON as JavaScript does, with the names sorted.
func plainJSON(t *testing.T, v any) []byte {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(v))
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// consoleRetention shows the cohorts of the messages of a public data set, as they were
// worked out elsewhere.
func consoleRetention(t *testing.T, b browser, s *server) {
	t.Helper()
	want := expectedCollege(t)
	s.importMessages(collegeMessagesIn(t, consoleZone))
	p := b.signedIn(t, s, rollcall.RoleAdmin)
	for _, measure := range []string{"on", "on_or_after"} {
		rows := map[string][][]int{"on": want.On, "on_or_after": want.After}[measure]
		p.loads(fmt.Sprintf("attendance?from=%s&to=%s&measure=%s", want.First, want.Last, measure))
		p.waits(named("triangle")+` !== null`, "the triangle")
		p.waits(fmt.Sprintf(`document.querySelectorAll('[data-test="triangle"] tbody tr').length === %d`, len(want.Weeks)+1), "a row for each cohort")
		var shown [][]int
		text := p.text(`JSON.stringify([...document.querySelectorAll('[data-test="triangle"] tbody tr')].slice(1).map(row => [...row.querySelectorAll('[data-test="cell"]')].map(c => Number(c.dataset.count))))`)
		require.NoError(t, json.Unmarshal([]byte(text), &shown))
		for i := range want.Weeks {
			require.Equal(t, rows[i], shown[i], "the cohort of %s, %s", want.Weeks[i], measure)
		}
	}
	// A cell opens its users.
	p.run(`document.querySelectorAll('[data-test="triangle"] tbody tr')[1].querySelector('[data-test="cell"]').click()`)
	p.shows("people-count", fmt.Sprintf("%s users", commas(want.Sizes[0])))
	p.requireNoFaults()
}

// collegeMessagesIn moves the messages to the same civil times in another zone.
func collegeMessagesIn(t *testing.T, name string) []message {
	t.Helper()
	zone, err := time.LoadLocation(name)
	require.NoError(t, err)
	all := collegeMessages(t)
	for i, m := range all {
		y, month, d := m.at.Date()
		all[i].at = time.Date(y, month, d, m.at.Hour(), m.at.Minute(), m.at.Second(), 0, zone)
	}
	return all
}

// containsAll reports whether a text has all parts.
func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

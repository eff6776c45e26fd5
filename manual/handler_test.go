package manual_test

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/docs"
	"github.com/rollcall/rollcall/manual"
)

// get asks a handler for a path.
func get(h *manual.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

// repository is the folder of the pages as it stands in the checkout, without those that
// the program does not carry.
func repository() fs.FS {
	out := make(fstest.MapFS)
	for _, pattern := range []string{"*.md", "zh-CN/*.md", "growth.svg"} {
		names, err := fs.Glob(os.DirFS("../docs"), pattern)
		if err != nil {
			panic(err) // the pattern is ours
		}
		for _, name := range names {
			if slices.Contains([]string{"architecture.md", "decisions.md", "developing.md", "formats.md"}, name) {
				continue
			}
			text, err := fs.ReadFile(os.DirFS("../docs"), name)
			if err != nil {
				panic(err)
			}
			out[name] = &fstest.MapFile{Data: text}
		}
	}
	return out
}

// TestThePicturesOfPagesAreServed expects each picture that a page shows at the address it names.
func TestThePicturesOfPagesAreServed(t *testing.T) {
	h := manual.New(docs.Files)
	shown := 0
	for path, body := range pagesOf(t, h) {
		base, err := url.Parse(path)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`<img src="([^"]+)" alt="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			at, err := base.Parse(m[1])
			require.NoError(t, err)
			w := get(h, at.Path)
			require.Equal(t, 200, w.Code, "%s shows %s", path, m[1])
			require.Equal(t, "image/svg+xml", w.Header().Get("Content-Type"))
			require.NotEmpty(t, m[2], "%s: words for whoever does not see %s", path, m[1])
			shown++
		}
	}
	require.GreaterOrEqual(t, shown, 2, "one in each language at least")
}

// pagesOf lists the paths of all pages that the contents of the first ones link to.
func pagesOf(t *testing.T, h *manual.Handler) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	for todo := []string{manual.Path}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if _, seen := pages[path]; seen {
			continue
		}
		w := get(h, path)
		require.Equal(t, 200, w.Code, "%s: %s", path, w.Body)
		pages[path] = w.Body.String()
		for _, to := range links(t, path, w.Body.String()) {
			if strings.HasPrefix(to.Path, manual.Path) && to.Host == "" && to.Path != manual.Path+"openapi" {
				todo = append(todo, to.Path)
			}
		}
	}
	return pages
}

// links returns where the links of a page lead.
func links(t *testing.T, path, page string) []*url.URL {
	t.Helper()
	base, err := url.Parse(path)
	require.NoError(t, err)
	var out []*url.URL
	for _, m := range regexp.MustCompile(`<a [^>]*href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		to, err := base.Parse(m[1])
		require.NoError(t, err, "%s: %s", path, m[1])
		out = append(out, to)
	}
	return out
}

func TestEveryLinkAndAnchorOfThePagesLeadsSomewhere(t *testing.T) {
	pages := pagesOf(t, manual.New(repository()))
	require.Greater(t, len(pages), 20)
	for path, page := range pages {
		require.Equal(t, 1, strings.Count(page, "<h1"), "%s has one title", path)
		for _, to := range links(t, path, page) {
			if to.Host == "github.com" && strings.HasPrefix(to.Path, "/rollcall/rollcall/blob/main/") {
				_, err := os.Stat("../" + strings.TrimPrefix(to.Path, "/rollcall/rollcall/blob/main/"))
				require.NoError(t, err, "%s links to %s", path, to)
			}
			if to.Host != "" || to.Fragment == "" {
				continue
			}
			require.Contains(t, pages[to.Path], ` id="`+to.Fragment+`"`, "%s links to %s", path, to)
		}
	}
}

func TestNothingIsFetchedFromElsewhere(t *testing.T) {
	for path, page := range pagesOf(t, manual.New(repository())) {
		for _, m := range regexp.MustCompile(`<(?:script|link|img|source|iframe)[^>]* (?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			require.Regexp(t, `^(\.\.?/manual\.(css|js)|data:,|(\.\./)?[a-z]+\.svg)$`, m[1], "%s", path)
		}
		require.NotRegexp(t, `<script>|<style>| style="| on[a-z]+="`, page, "%s: the policy allows nothing inline", path)
	}
}

func TestAnswersOfTheManual(t *testing.T) {
	h := manual.New(repository())
	w := get(h, "/docs/concepts")
	require.Equal(t, 200, w.Code)
	require.Equal(t, manual.Policy, w.Header().Get("Content-Security-Policy"))
	require.NotContains(t, manual.Policy, "unsafe")
	r := httptest.NewRequest("GET", "/docs/concepts", nil)
	r.Header.Set("If-None-Match", w.Header().Get("ETag"))
	again := httptest.NewRecorder()
	h.ServeHTTP(again, r)
	require.Equal(t, 304, again.Code)

	require.Equal(t, "/docs/concepts", get(h, "/docs/concepts.md").Header().Get("Location"), "a link as in the repository")
	require.Equal(t, 404, get(h, "/docs/nothing").Code)
	require.Equal(t, 404, get(h, "/docs/../go.mod").Code)
	post := httptest.NewRecorder()
	h.ServeHTTP(post, httptest.NewRequest("POST", "/docs/", nil))
	require.Equal(t, 405, post.Code)
}

func TestEachSectionIsInTheIndex(t *testing.T) {
	w := get(manual.New(repository()), "/docs/search.json")
	require.Equal(t, 200, w.Code)
	require.Less(t, w.Body.Len(), 600_000, "bytes that a search loads")
	var rows [][4]string
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &rows))
	found := ""
	for _, row := range rows {
		if strings.Contains(row[3], "overflow: reject") && strings.HasPrefix(row[0], "sessions#") {
			found = row[0]
		}
	}
	require.Equal(t, "sessions#policies", found)
}

func TestAPageInTwoLanguagesLinksToTheOther(t *testing.T) {
	h := manual.New(fstest.MapFS{
		"README.md":       {Data: []byte("# Start\n\n## Use\n\n- [One](one.md): a page\n- [Only here](only.md)\n")},
		"one.md":          {Data: []byte("# One\n\n## A `code` heading\n\n[here](#a-code-heading), [there](only.md#x), [code](../go.mod)\n\n<script>alert(1)</script>\n")},
		"only.md":         {Data: []byte("# Only\n\n## X\n")},
		"zh-CN/README.md": {Data: []byte("# 开始\n\n## 使用\n\n- [一](one.md)：页面\n")},
		"zh-CN/one.md":    {Data: []byte("# 一\n\n## 策略与踢人\n\n[这里](#策略与踢人)，[英文](../only.md)\n")},
	})
	require.Contains(t, get(h, "/docs/one").Body.String(), `<a href="./zh-CN/one" lang="zh-CN"`)
	require.Contains(t, get(h, "/docs/only").Body.String(), `<a href="./zh-CN/" lang="zh-CN"`)
	chinese := get(h, "/docs/zh-CN/one").Body.String()
	require.Contains(t, chinese, `<html lang="zh-CN">`)
	require.Contains(t, chinese, `<a href="../one" lang="en"`)
	require.Contains(t, chinese, `id="策略与踢人"`)
	require.Contains(t, chinese, `<a href="../only">`)
	one := get(h, "/docs/one").Body.String()
	require.Contains(t, one, `id="a-code-heading"`)
	require.Contains(t, one, "https://github.com/rollcall/rollcall/blob/main/go.mod")
	require.NotContains(t, one, "<script>", "HTML in a page is left out")
}

func TestPagesThatCannotBeMadeAreAnError(t *testing.T) {
	w := get(manual.New(fstest.MapFS{"zh-CN": {Mode: fs.ModeDir}}), "/docs/")
	require.Equal(t, 500, w.Code)
	require.Contains(t, w.Body.String(), "there is no README.md")
}

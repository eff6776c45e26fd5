package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/console"
)

var script = strings.Repeat("console.log('here');\n", 100)

func newHandler(t testing.TB) *console.Handler {
	t.Helper()
	h, err := console.NewHandler(fstest.MapFS{
		"index.html":           {Data: []byte("<!doctype html><title>Rollcall</title>")},
		"favicon.svg":          {Data: []byte("<svg/>")},
		"assets/index-1a2b.js": {Data: []byte(script)},
	})
	require.NoError(t, err)
	return h
}

func get(h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestTheConsoleIsBuiltIn(t *testing.T) {
	h, err := console.New()
	require.NoError(t, err)
	w := get(h, console.Path)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), "<!doctype html>")
	require.NotContains(t, w.Body.String(), "<style", "the policy lets no style in the page through")
	require.NotRegexp(t, `(?i)<script(?:\s[^>]*)?>\s*[^<\s]`, w.Body.String(), "nor a script")
	require.NotRegexp(t, `(?i)\son\w+=|\sstyle=`, w.Body.String())
}

func TestAPathWithoutAFileShowsTheIndex(t *testing.T) {
	h := newHandler(t)
	for _, target := range []string{"/console/", "/console/sessions", "/console/users/a.b", "/console/users/%2e%2e%2fx", "/console/../../etc/passwd"} {
		w := get(h, target)
		require.Equal(t, 200, w.Code, target)
		require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
		require.Equal(t, "no-cache", w.Header().Get("Cache-Control"))
		require.Contains(t, w.Body.String(), "<title>Rollcall")
	}
	w := get(h, "/console?lang=zh")
	require.Equal(t, 302, w.Code)
	require.Equal(t, console.Path, w.Header().Get("Location"))
	require.Equal(t, "image/svg+xml", get(h, "/console/favicon.svg").Header().Get("Content-Type"))
}

func TestAssetsAreKeptForEverAndMissingOnesAreNoPage(t *testing.T) {
	h := newHandler(t)
	w := get(h, "/console/assets/index-1a2b.js")
	require.Equal(t, 200, w.Code)
	require.Equal(t, script, w.Body.String())
	require.Contains(t, w.Header().Get("Cache-Control"), "immutable")
	require.Equal(t, "text/javascript; charset=utf-8", w.Header().Get("Content-Type"))
	gone := get(h, "/console/assets/index-0000.js")
	require.Equal(t, 404, gone.Code)
	require.NotContains(t, gone.Header().Get("Cache-Control"), "immutable")

	again := get(h, "/console/assets/index-1a2b.js", "If-None-Match", w.Header().Get("ETag"))
	require.Equal(t, 304, again.Code)
	require.Empty(t, again.Body.String())
}

func TestFilesArePackedForWhoTakesThat(t *testing.T) {
	h := newHandler(t)
	w := get(h, "/console/assets/index-1a2b.js", "Accept-Encoding", "br, gzip;q=0.8")
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	require.Equal(t, "Accept-Encoding", w.Header().Get("Vary"))
	require.Less(t, w.Body.Len(), len(script)/2)
	unpacked, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Equal(t, script, string(text))
	for _, accept := range []string{"", "br", "gzip;q=0", "gzip; q=0.0, br"} {
		w := get(h, "/console/assets/index-1a2b.js", "Accept-Encoding", accept)
		require.Empty(t, w.Header().Get("Content-Encoding"), accept)
		require.Equal(t, script, w.Body.String())
	}
}

func TestPagesCarryTheHeadersThatBrowsersObey(t *testing.T) {
	h := newHandler(t)
	for _, target := range []string{"/console/", "/console/assets/index-1a2b.js", "/console/assets/none.js", "/console"} {
		header := get(h, target).Header()
		policy := header.Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'")
		require.Contains(t, policy, "frame-ancestors 'none'")
		require.NotContains(t, policy, "unsafe")
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			require.Equal(t, want, header.Get(name), "%s of %s", name, target)
		}
	}
}

func TestPagesAreReadOnly(t *testing.T) {
	h := newHandler(t)
	for _, method := range []string{"POST", "PUT", "DELETE", "TRACE"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, console.Path, nil))
		require.Equal(t, 405, w.Code, method)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("HEAD", console.Path, nil))
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Body.String())
	require.NotEmpty(t, w.Header().Get("Content-Length"))
}

func TestThereIsNoConsoleWithoutAnIndex(t *testing.T) {
	_, err := console.NewHandler(fstest.MapFS{"main.js": {Data: []byte("x")}})
	require.ErrorContains(t, err, "index.html")
}

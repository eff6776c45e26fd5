package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := peerOf(r)
	c := &caller{requestID: requestIDOf(r), peer: peer, addr: s.opts.clientOf(r, peer)}
	r = r.WithContext(withCaller(r.Context(), c))
	own := *r.URL // the path is rewritten, and is not ours
	r.URL = &own
	verifyAnyPath(r)
	s.opts.presencePath(r.URL)
	out, in := newOutgoing(w), receive(w, r)
	out.Header().Set("X-Request-Id", c.requestID)
	start := time.Now()
	if s.opts.Tracer == nil {
		s.answer(out, r)
	} else {
		r = s.traced(out, r) //nolint:contextcheck // the tracer derives it from the request's own
	}
	s.opts.Metrics.request(r, out.status, time.Since(start))
	s.faults.succeeded(r.Pattern, out.status)
	in.finish()
}

// answer is enter, and answers also where a handler panics.
func (s *Server) answer(w *outgoing, r *http.Request) {
	defer s.recoverPanic(w, r)
	s.enter(w, r)
}

// requestIDOf returns the id that a proxy or client gave the request, if it is short
// and plain, as it ends up in the log; else a new one.
func requestIDOf(r *http.Request) string {
	const limit = 64
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > limit || strings.ContainsFunc(id, func(c rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.", c)
	}) {
		return newRequestID()
	}
	return id
}

func newRequestID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id[:])
}

// enter holds what is true of every request, then finds its route.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	s.browserHeaders(h, r)
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		h.Set("Cache-Control", "no-store") // answers hold tokens and keys
	}
	if err := s.checkLoopback(r); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.serveConsole(w, r) || s.serveDocs(w, r) {
		return
	}
	if err := exactPath(r.URL); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.cors(w, r) {
		return
	}
	s.mux.ServeHTTP(w, r)
}

// serveConsole answers with the pages of the console, which are no routes of the API,
// and reports whether it did.
func (s *Server) serveConsole(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case s.opts.Console == nil:
		return false
	case r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		http.Redirect(w, r, "/console/", http.StatusFound)
	case r.URL.Path == "/console", strings.HasPrefix(r.URL.Path, "/console/"):
		r.Pattern = "/console/"
		s.opts.Console.ServeHTTP(w, r)
	default:
		return false
	}
	return true
}

// serveDocs answers with the documentation, which is no route of the API, and reports
// whether it did. The page that shows the OpenAPI document is a route: /docs/openapi.
func (s *Server) serveDocs(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == "/docs" && s.opts.Docs == nil:
		http.Redirect(w, r, "/docs/openapi", http.StatusFound)
	case r.URL.Path == "/docs":
		http.Redirect(w, r, "/docs/", http.StatusFound)
	case s.opts.Docs != nil && strings.HasPrefix(r.URL.Path, "/docs/") && r.URL.Path != "/docs/openapi":
		r.Pattern = "/docs/"
		s.opts.Docs.ServeHTTP(w, r)
	default:
		return false
	}
	return true
}

// apiPolicy is the content security policy of answers that are data: whatever a
// browser takes them for, it may do nothing with them. A page has its own.
const apiPolicy = "default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// browserHeaders tells browsers what they may do with an answer.
func (*Server) browserHeaders(h http.Header, r *http.Request) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", apiPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
}

// exactPath encodes each segment of the path once more, so that http.ServeMux
// routes by segments as they were written: a user may be called "/", ".." or
// "a//b", which it would take for a trailing slash or clean away. The gate
// decodes what the route's parameters stand for.
func exactPath(u *url.URL) error {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, seg := range segments {
		if seg == "" && i > 0 && len(segments) > 2 {
			return rollcall.NotFound("path")
		}
		plain, err := url.PathUnescape(seg)
		if err != nil {
			return rollcall.NotFound("path")
		}
		segments[i] = percent(plain)
		if plain == "." || plain == ".." {
			segments[i] = strings.ReplaceAll(plain, ".", "%2E")
		}
	}
	u.Path = strings.Join(segments, "/")
	u.RawPath = strings.ReplaceAll(u.Path, "%", "%25")
	return nil
}

// notFound answers what no route takes: 405 if the path has other methods.
func (s *Server) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		probe := *r
		probe.Method = method
		if _, pattern := s.mux.Handler(&probe); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		s.fail(w, r, rollcall.NotFound("path"))
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	s.fail(w, r, &rollcall.Error{Code: codeMethod, Field: "method", Detail: "this path takes " + strings.Join(allowed, ", ")})
}

func (s *Server) recoverPanic(w *outgoing, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // a value net/http compares just so
		panic(v)
	}
	s.faults.panicked(r.Context(), v, debug.Stack())
	if w.status == 0 {
		s.fail(w, r, &rollcall.Error{Code: rollcall.CodeInternal, Err: fmt.Errorf("panic: %v", v)})
	}
}

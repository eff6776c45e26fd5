package httpapi

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	peer := peerOf(r)
	c := &caller{requestID: newRequestID(), peer: peer, addr: s.opts.clientOf(r, peer)}
	r = r.WithContext(withCaller(r.Context(), c))
	own := *r.URL // the path is rewritten, and is not ours
	r.URL = &own
	rec := &recorder{ResponseWriter: w}
	rec.Header().Set("X-Request-Id", c.requestID)
	start := time.Now()
	defer func() { s.opts.Metrics.request(r, rec.status, time.Since(start)) }()
	defer s.recoverPanic(rec, r)
	s.enter(rec, r)
}

func newRequestID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(id[:])
}

// enter holds what is true of every request, then finds its route.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		h.Set("Cache-Control", "no-store") // answers hold tokens and keys
	}
	if err := s.checkLoopback(r); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.cors(w, r) {
		return
	}
	if err := exactPath(r.URL); err != nil {
		s.fail(w, r, err)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// checkLoopback keeps pages of other sites, and names that resolve to this
// machine, from a server that asks nobody for a key.
func (s *Server) checkLoopback(r *http.Request) error {
	if s.opts.Auth != AuthOff {
		return nil
	}
	if !isLoopbackHost(r.Host) {
		return forbidden("without keys only loopback is served: Host must be localhost or a loopback address")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || !isLoopbackHost(u.Host) {
			return forbidden("without keys only loopback is served: Origin must be localhost or a loopback address")
		}
	}
	return nil
}

// cors lets the pages of CORSOrigins in and reports whether the request was a
// preflight, which is answered with that.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) bool {
	if len(s.opts.CORSOrigins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.opts.CORSOrigins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id, Rollcall-User, Rollcall-Session, Rollcall-Kind")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
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

func (s *Server) recoverPanic(w *recorder, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // a value net/http compares just so
		panic(v)
	}
	s.opts.Logger.LogAttrs(r.Context(), slog.LevelError, "panic",
		slog.String("request", callerOf(r.Context()).requestID), slog.Any("value", v), slog.String("stack", string(debug.Stack())))
	if w.status == 0 {
		s.fail(w, r, &rollcall.Error{Code: rollcall.CodeInternal, Err: fmt.Errorf("panic: %v", v)})
	}
}

// recorder remembers the status of the answer.
type recorder struct {
	http.ResponseWriter
	status int // 0 until the header is written
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

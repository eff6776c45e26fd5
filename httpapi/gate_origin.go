package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// checkLoopback keeps everything but programs and pages of this machine's own
// from a server that asks nobody for a key: pages of other sites, also of
// another port; names that resolve to this machine; and what a proxy passes on.
func (s *Server) checkLoopback(r *http.Request) error {
	if s.opts.Auth != AuthOff {
		return nil
	}
	if !isLoopbackHost(r.Host) {
		return forbidden("without keys only loopback is served: Host must be localhost or a loopback address")
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Host != r.Host || (u.Scheme == "https") != (r.TLS != nil) {
			return forbidden("without keys only the server's own pages are served: Origin must be the server's own, port included")
		}
	}
	// Browsers say so of requests that carry no Origin, such as images.
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return forbidden("without keys only the server's own pages are served: this request comes from another site")
		}
	}
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return forbidden("without keys only this machine is served, and %s says that a proxy passes this on", name)
		}
	}
	return nil
}

// cors lets the pages of CORSOrigins call the routes of end users, and reports
// whether the request was a preflight, which is answered with that.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if len(s.opts.CORSOrigins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(s.opts.CORSOrigins, origin) {
		return false
	}
	asked := *r
	method := r.Header.Get("Access-Control-Request-Method")
	preflight := r.Method == http.MethodOptions && method != ""
	if preflight {
		asked.Method = method
	}
	_, pattern := s.mux.Handler(&asked)
	if g, ok := s.gates[pattern]; !ok || !g.Pages {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", "Retry-After, X-Request-Id")
	if !preflight {
		return false
	}
	h.Set("Access-Control-Allow-Methods", asked.Method)
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

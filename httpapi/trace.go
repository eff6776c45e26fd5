package httpapi

import (
	"context"
	"net/http"
	"strings"
)

// Tracer is told when requests begin and end. It must be safe for concurrent use and
// quick.
type Tracer interface {
	// Begin is called when the header of a request has come. It returns the context in
	// which the request is answered, derived from its own, and what is called once at the
	// end: with the route, such as /v1/users/{user}, or "" if there is none, and the status,
	// or 0 if the connection was cut off before there was one.
	Begin(r *http.Request) (ctx context.Context, end func(route string, status int))
}

// traced answers a request as answer does, and tells the tracer. It returns the request
// that knows its route.
func (s *Server) traced(w *outgoing, r *http.Request) *http.Request {
	ctx, end := s.opts.Tracer.Begin(r)
	r = r.WithContext(ctx)
	status := 0
	defer func() { end(routePath(r.Pattern), status) }() // also where a handler cuts the connection off
	s.answer(w, r)
	if status = w.status; status == 0 {
		status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	return r
}

// routePath is the path of a pattern, which unlike that of a request names nobody; "" for
// that of what has no route.
func routePath(pattern string) string {
	_, path, hasMethod := strings.Cut(pattern, " ")
	if !hasMethod {
		path = pattern
	}
	if path == "/" {
		return ""
	}
	return path
}

package redistest

import "testing"

// Server is a redis-server that stands alone.
type Server struct{ *Node }

// Start starts a server that is gone when the test ends.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	n := newNode(tb, &o, newAuthority(tb, &o))
	n.config(n.data()...)
	n.start()
	return &Server{n}
}

// URL is how the restricted user reaches the server.
func (s *Server) URL() string {
	return s.tls.scheme() + "://" + s.opts.login() + s.Addr() + s.tls.query()
}

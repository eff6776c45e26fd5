package client

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// Options configure a [Client]. The zero value works on a server without keys.
type Options struct {
	// Key is the API key: "rck_" and more. Touch and Verify by token need none.
	Key string
	// HTTPClient sends the requests. With nil the client has its own, which keeps
	// connections open and follows no redirects.
	HTTPClient *http.Client
	// Attempts is how often a request is sent at most; 1 to 20, default 4.
	Attempts int
	// Timeout bounds each attempt; default 30s. Streams of events are not bounded
	// by it.
	Timeout time.Duration
}

const (
	defaultAttempts = 4
	maxAttempts     = 20
	defaultTimeout  = 30 * time.Second
	idleConnections = 64 // kept open to the server
)

// Client talks to one server, or to several behind one address. It is safe for
// concurrent use.
type Client struct {
	base string // without a slash at the end
	opts Options
	http *http.Client
	own  bool // http is the client's own, to close
}

// New returns a client of the server at address, such as http://127.0.0.1:8080.
// It sends nothing yet.
func New(address string, o Options) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, rollcall.Invalid("server", "must be an address such as https://rollcall.example.com, is %.100q", address)
	}
	if o.Attempts == 0 {
		o.Attempts = defaultAttempts
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	switch {
	case o.Attempts < 1 || o.Attempts > maxAttempts:
		return nil, rollcall.Invalid("attempts", "must be between 1 and %d, is %d", maxAttempts, o.Attempts)
	case o.Timeout < 0:
		return nil, rollcall.Invalid("timeout", "must not be negative, is %v", o.Timeout)
	case strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, rollcall.Invalid("key", "may hold only printable ASCII without spaces")
	}
	c := &Client{base: strings.TrimRight(address, "/"), opts: o, http: o.HTTPClient}
	if c.http == nil {
		c.http, c.own = newHTTPClient(), true
	}
	return c, nil
}

// newHTTPClient returns a client that takes a redirect for the answer: a
// request that changes something must not become another one on its way.
func newHTTPClient() *http.Client {
	h := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = idleConnections
		h.Transport = t
	}
	return h
}

// Close closes connections that are idle. An HTTPClient that was given stays as it
// is.
func (c *Client) Close() error {
	if c.own {
		c.http.CloseIdleConnections()
	}
	return nil
}

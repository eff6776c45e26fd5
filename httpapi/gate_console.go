package httpapi

import (
	"mime"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/rollcall/rollcall"
)

// The cookie of the console. With the prefix __Host- a browser takes it over HTTPS
// only, from this host alone.
const (
	consoleCookie = "__Host-rollcall_console"
	// On this machine itself over plain HTTP not every browser would take it so.
	// Browsers share cookies between ports, so the port stands in the name.
	loopbackConsoleCookie = "rollcall_console_"
)

// consoleHeader marks a request of a page that changes something and has no body of
// JSON. A page of another site cannot send it without being asked for leave.
const consoleHeader = "Rollcall-Console"

// admitPage lets a page ask who is signed in, sign in and sign out. The handlers look
// at the session themselves.
func (s *Server) admitPage(r *http.Request) error { return s.checkPage(r) }

// checkPage refuses requests that a browser sends for a page of another origin, also
// of one that shares its site: those carry the cookie too. What changes something
// needs a form besides that no plain form of HTML has.
func (s *Server) checkPage(r *http.Request) error {
	asPost := *r
	asPost.Method = http.MethodPost // the check lets every GET pass, and a page must not read either
	if err := s.pageOrigin.Check(&asPost); err != nil {
		return forbidden("a page of another origin may not use the console's sign-in")
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get(consoleHeader) != "" {
		return nil
	}
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != jsonType {
		return forbidden("a request of the console needs a body of application/json, or the header %s", consoleHeader)
	}
	return nil
}

// hasConsoleCookie reports whether a request comes with the console's cookie, and with
// no other credential.
func hasConsoleCookie(r *http.Request) bool {
	if r.Header.Get("Authorization") != "" {
		return false
	}
	name, _ := consoleCookieName(r)
	_, err := r.Cookie(name)
	return err == nil
}

// admitConsole lets in who is signed in to the console, with the role of the session.
func (s *Server) admitConsole(c *caller, r *http.Request) error {
	if err := s.checkPage(r); err != nil {
		return err
	}
	cookie := consoleCookieOf(r)
	if cookie.Value == "" {
		return unauthenticated("nobody is signed in to the console here: sign in")
	}
	session, err := s.roll.UseConsoleSession(r.Context(), cookie.Value)
	if err != nil {
		return s.chargeFailure(c, err)
	}
	// Somebody else has signed in at the proxy: the session is not theirs.
	if user := s.proxyUser(c, r); session.By == rollcall.SignedInByProxy && user != "" && user != session.Name {
		if err := s.roll.SignOut(r.Context(), cookie.Value); err != nil {
			return err
		}
		s.streams.credentials.changed()
		return unauthenticated("the proxy names somebody else now: sign in")
	}
	c.console, c.pass = &session, rollcall.HashPass(cookie.Value)
	c.key, c.role = session.Key, session.Role
	return s.perKey.take(c.keyOwner(), time.Now())
}

// keyOwner names whose requests and streams are counted together: those of a key, or
// of a session of the console without one.
func (c *caller) keyOwner() string {
	if c.key.ID == "" && c.console != nil {
		return "console " + c.console.ID
	}
	return c.key.ID
}

// consoleCookieName returns the name of the console's cookie, and whether it is to be
// sent over HTTPS only.
func consoleCookieName(r *http.Request) (name string, secure bool) {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" || !isLoopbackHost(r.Host) {
		return consoleCookie, true
	}
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	return loopbackConsoleCookie + port, false
}

// checkCookieIsKept refuses to sign in a browser that would not keep the cookie.
func checkCookieIsKept(r *http.Request, cookie *http.Cookie) error {
	if u, err := url.Parse(r.Header.Get("Origin")); cookie.Secure && err == nil && u.Scheme == "http" {
		return forbidden("over plain HTTP a browser does not keep the console's cookie: use HTTPS (tls.cert, or a proxy), or http://localhost on the machine itself")
	}
	return nil
}

// consoleCookieOf returns the console's cookie as it is set, with the value that the
// request brings, "" for none.
func consoleCookieOf(r *http.Request) *http.Cookie {
	name, secure := consoleCookieName(r)
	out := &http.Cookie{Name: name, Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode}
	if c, err := r.Cookie(name); err == nil {
		out.Value = c.Value
	}
	return out
}

// dropConsoleCookie has the browser forget the cookie.
func dropConsoleCookie(w http.ResponseWriter, r *http.Request) {
	if !hasConsoleCookie(r) {
		return
	}
	cookie := consoleCookieOf(r)
	cookie.Value, cookie.MaxAge = "", -1
	http.SetCookie(w, cookie)
}

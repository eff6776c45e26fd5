package httpapi

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/rollcall/rollcall"
)

// Auth says who is let in.
type Auth string

// The ways to authenticate.
const (
	AuthKeys Auth = "keys" // API keys, each with a role
	// AuthOff takes every caller for an administrator, but serves only
	// requests whose Host and Origin are loopback. The listener must be on a
	// loopback address.
	AuthOff Auth = "off"
)

// Options configure a [Server]. The zero value works.
type Options struct {
	Auth Auth // default AuthKeys

	// TrustedProxies may say in X-Forwarded-For on whose behalf they call, and
	// may verify with ?touch=1. Nobody else is believed.
	TrustedProxies []netip.Prefix
	// VerifyCookie is the name of the cookie in which browsers hold their
	// session's token; "" for none.
	VerifyCookie string
	// PresenceScript is a second path of the presence script, such as /js/here.js,
	// for sites whose visitors block the first; "" for none.
	PresenceScript string
	// CORSOrigins are the origins, such as https://app.example.com, whose pages
	// may call the API.
	CORSOrigins []string

	// Docs serves the documentation below /docs/, but for /docs/openapi; nil for none.
	Docs http.Handler
	// Console serves the pages below /console/; nil for none.
	Console http.Handler
	// ConsoleHeader is the header in which TrustedProxies name the user who uses the
	// console; "" for none. ConsoleHeaderRole is what those users may do; default
	// reader.
	ConsoleHeader     string
	ConsoleHeaderRole rollcall.Role

	// Badge shows everyone how many users are online, rounded: GET /v1/online/badge.
	Badge bool

	RateLimits RateLimits
	Streams    StreamLimits

	// Archive shows and starts the runs of the archive; nil for none.
	Archive Archive

	// Backups makes backups; nil if this server does not.
	Backups Backups

	// Webhooks delivers; nil if this server does not.
	Webhooks Webhooks

	// Tracer follows requests through several programs; nil for nobody.
	Tracer Tracer

	Logger  *slog.Logger // default: nothing is logged
	Metrics *Metrics     // default: a registry of the server's own
	Version string       // shown in the OpenAPI document and in the statistics; default "dev"
}

func (o *Options) fill() error {
	if o.Auth == "" {
		o.Auth = AuthKeys
	}
	if o.Auth != AuthKeys && o.Auth != AuthOff {
		return rollcall.Invalid("auth", "must be keys or off, is %q", o.Auth)
	}
	for _, p := range o.TrustedProxies {
		if !p.IsValid() {
			return rollcall.Invalid("trusted_proxies", "holds an address range that is not valid")
		}
	}
	for _, origin := range o.CORSOrigins {
		if err := checkOrigin(origin); err != nil {
			return err
		}
	}
	if o.VerifyCookie != "" && (&http.Cookie{Name: o.VerifyCookie, Value: "x"}).Valid() != nil {
		return rollcall.Invalid("verify.cookie", "%q is not a cookie name", o.VerifyCookie)
	}
	if p := o.PresenceScript; p != "" && (!strings.HasPrefix(p, "/") || strings.HasPrefix(p, "/v1/") || !isPlainPath(p)) {
		return rollcall.Invalid("presence.script", "must be a path such as /js/here.js, of letters, digits, / . - and _, and not below /v1/, is %q", p)
	}
	if err := o.fillConsole(); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	o.RateLimits.fill()
	if o.Metrics != nil {
		return nil
	}
	var err error
	o.Metrics, err = NewMetrics(nil)
	return err
}

func (o *Options) fillConsole() error {
	if o.ConsoleHeaderRole == "" {
		o.ConsoleHeaderRole = rollcall.RoleReader
	}
	switch {
	case !o.ConsoleHeaderRole.Allows(rollcall.RoleReader):
		return rollcall.Invalid("console.header_role", "must be reader, writer or admin, is %q", o.ConsoleHeaderRole)
	case o.ConsoleHeader == "":
		return nil
	case !httpguts.ValidHeaderFieldName(o.ConsoleHeader):
		return rollcall.Invalid("console.header", "%q is not the name of a header", o.ConsoleHeader)
	case len(o.TrustedProxies) == 0:
		return rollcall.Invalid("console.header", "is believed from trusted_proxies only, and there are none")
	}
	return nil
}

func checkOrigin(origin string) error {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
		return rollcall.Invalid("cors_origins", "%q is not an origin of the form https://app.example.com", origin)
	}
	return nil
}

// isLoopbackHost reports whether a Host header or the host of an origin names
// this machine only.
func isLoopbackHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

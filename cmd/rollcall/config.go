package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
	"github.com/rollcall/rollcall/respapi"
	"github.com/rollcall/rollcall/webhook"
)

// config is the configuration, read and checked.
type config struct {
	values   values // all settings as they were given
	listen   string
	udp      string // "" for none
	resp     string // "" for none
	dialect  *respapi.Dialect
	webhooks webhook.Allow
	tlsCert  string
	tlsKey   string
	dataDir  string
	adminKey string
	secret   []byte // nil until openDataDir, unless it is configured
	create   bool   // the verb may make data where there is none
	logLevel slog.Level
	// secretLost opens data without its secret, to export it. secretMade says
	// that this process made the secret file.
	secretLost, secretMade bool

	logFormat string
	local     local.Options
	redis     *redis.Options // nil for the embedded engine
	archive   *archiveConfig // nil for none
	noArchive error          // why there is none
	roll      rollcall.Options
	http      httpapi.Options
}

// configReader turns texts into values and collects what is wrong.
type configReader struct {
	values
	faults []error
}

func (r *configReader) fault(key, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("%s: "+format, append([]any{key}, args...)...))
}

// load resolves and checks the whole configuration; the error names every
// fault.
func (s *settings) load(a *app) (*config, error) {
	c, err := s.check(a)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// check resolves and checks the configuration. What could be read is returned
// beside the faults; nil if the file cannot be read at all.
func (s *settings) check(a *app) (*config, error) {
	v, err := s.resolve(a)
	if v == nil {
		return nil, err
	}
	r := &configReader{values: v}
	c := r.read()
	return c, errors.Join(err, errors.Join(r.faults...))
}

// doubts words what is allowed and hardly meant: variables that no setting
// reads, and tokens sent over the network in the clear.
func (c *config) doubts(environ []string) []string {
	var out []string
	for _, name := range unknownVariables(environ) {
		out = append(out, fmt.Sprintf("the variable %s means nothing to rollcall: did you mean %s?", name, nearest(name, knownVariables())))
	}
	if c.tlsCert == "" && c.resp != "" && !loopback(c.resp) {
		out = append(out, fmt.Sprintf("%s serves RESP without TLS: keys cross the network in the clear (tls.cert, tls.key)", c.resp))
	}
	if c.tlsCert == "" && !loopback(c.listen) {
		out = append(out, fmt.Sprintf("%s is served without TLS: tokens and keys cross the network in the clear, unless a proxy in front of it encrypts (tls.cert, tls.key)", c.listen))
	}
	return out
}

func (r *configReader) read() *config {
	c := &config{
		values: r.values, listen: r.get("listen"), tlsCert: r.get("tls.cert"), tlsKey: r.get("tls.key"), dataDir: r.get("data_dir"),
		adminKey: r.get("admin_key"), logFormat: r.oneOf("log.format", "", "text", "json"),
	}
	if r.oneOf("engine", "local", "redis") == "redis" {
		c.redis = r.redis()
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		r.fault("tls.cert", "tls.cert and tls.key go together")
	}
	if err := c.logLevel.UnmarshalText([]byte(r.get("log.level"))); err != nil {
		r.fault("log.level", "must be debug, info, warn or error, is %q", r.get("log.level"))
	}
	c.secret = r.secret()
	c.local.Durability = local.Durability(r.oneOf("durability", "always", "interval"))
	c.roll = r.roll()
	c.archive = r.archive(c)
	c.http = r.http()
	if c.http.Auth == httpapi.AuthOff && !loopback(c.listen) {
		r.fault("auth", "off is allowed on a loopback address only, and listen is %s", c.listen)
	}
	_, port, err := net.SplitHostPort(c.listen)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		r.fault("listen", "must be an address and a port, such as 127.0.0.1:8080, is %q", c.listen)
	}
	if c.webhooks, err = webhook.ParseAllow(list(r.get("webhooks.allow"))); err != nil {
		r.faults = append(r.faults, errors.New(message(err)))
	}
	c.udp = r.address("udp.listen", "127.0.0.1:8081")
	c.resp = r.address("resp.listen", "127.0.0.1:6380")
	if c.dialect, err = respapi.ParseDialect(list(r.get("resp.dialect"))); err != nil {
		r.faults = append(r.faults, errors.New(message(err)))
	}
	if c.http.Auth == httpapi.AuthOff && c.resp != "" && !loopback(c.resp) {
		r.fault("auth", "off is allowed on a loopback address only, and resp.listen is %s", c.resp)
	}
	return c
}

// address reads where a door listens that is off without an address.
func (r *configReader) address(key, example string) string {
	text := r.get(key)
	_, port, err := net.SplitHostPort(text)
	if _, perr := strconv.ParseUint(port, 10, 16); text != "" && (err != nil || perr != nil) {
		r.fault(key, "must be an address and a port, such as %s, is %q", example, text)
	}
	return text
}

func (r *configReader) roll() rollcall.Options {
	o := rollcall.Options{
		Window:           r.duration("presence.window", time.Second, tenYears),
		Retention:        r.duration("presence.retention", time.Minute, tenYears),
		OfflineGrace:     r.duration("presence.offline_grace", 0, tenYears),
		LeaveGrace:       r.duration("presence.leave_grace", 0, day),
		NoPresenceEvents: r.oneOf("presence.events", "on", "off") == "off",
		RestartGrace:     r.duration("restart_grace", 0, day),
		LateMarks:        r.duration("attendance.late", time.Second, tenYears),
		VisitsKeep:       r.duration("visits.keep", time.Hour, tenYears),
		AttendanceOn:     rollcall.AttendanceOn(r.oneOf("attendance.on", "login", "beat", "manual")),
		Policies:         r.policies(),
	}
	if o.RestartGrace == 0 {
		o.RestartGrace = -1 // none, where 0 would be the default
	}
	if o.LeaveGrace == 0 {
		o.LeaveGrace = -1 // none, where 0 would be the default
	}
	if o.Window > o.Retention {
		r.fault("presence.window", "must not be longer than presence.retention (%s), is %s", r.get("presence.retention"), r.get("presence.window"))
	}
	if o.OfflineGrace > o.Retention {
		r.fault("presence.offline_grace", "must not be longer than presence.retention (%s), is %s", r.get("presence.retention"), r.get("presence.offline_grace"))
	}
	var err error
	if o.Timezone, err = time.LoadLocation(r.get("timezone")); err != nil || o.Timezone == time.Local {
		r.fault("timezone", "%q is not the IANA name of a time zone, such as Europe/Berlin", r.get("timezone"))
	}
	o.EventsAge, o.EventsCount = r.eventsKeep()
	return o
}

func (r *configReader) redis() *redis.Options {
	o := &redis.Options{
		URL: r.get("redis.url"), Prefix: r.get("redis.prefix"),
		Partitions: r.number("redis.partitions"), Wait: r.number("redis.wait"),
		Timeout: r.duration("redis.timeout", 100*time.Millisecond, time.Minute),
	}
	if err := o.Check(); err != nil {
		var e *rollcall.Error
		if errors.As(err, &e) {
			r.fault(e.Field, "%s", e.Detail)
		}
	}
	return o
}

func (r *configReader) number(key string) int {
	n, err := strconv.Atoi(r.get(key))
	if err != nil {
		r.fault(key, "must be a number, is %q", r.get(key))
	}
	return n
}

func (r *configReader) eventsKeep() (time.Duration, int) {
	ageText, countText, _ := strings.Cut(r.get("events.keep"), ",")
	age, err := rollcall.ParseDuration(ageText)
	count, cerr := strconv.Atoi(strings.TrimSpace(countText))
	if err != nil || cerr != nil || age < time.Minute || count < 1000 || count > 100_000_000 {
		r.fault("events.keep", "must be an age of at least 1m and a number between 1000 and 100000000, such as 7d,1000000, is %q", r.get("events.keep"))
	}
	return age, count
}

func (r *configReader) http() httpapi.Options {
	o := httpapi.Options{VerifyCookie: r.get("verify.cookie"), PresenceScript: r.get("presence.script"), Badge: r.oneOf("badge", "on", "off") == "on", CORSOrigins: list(r.get("cors_origins"))}
	if r.oneOf("auth", "keys", "off") == "off" {
		o.Auth = httpapi.AuthOff
	}
	for _, text := range list(r.get("trusted_proxies")) {
		p, err := netip.ParsePrefix(text)
		if a, aerr := netip.ParseAddr(text); aerr == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			r.fault("trusted_proxies", "%q is neither an address nor a network such as 10.0.0.0/8", text)
			continue
		}
		o.TrustedProxies = append(o.TrustedProxies, p)
	}
	o.ConsoleHeader = r.get("console.header")
	o.ConsoleHeaderRole = rollcall.Role(r.oneOf("console.header_role", "reader", "writer", "admin"))
	if o.ConsoleHeader != "" && len(o.TrustedProxies) == 0 {
		r.fault("console.header", "is believed from trusted_proxies only, and there are none")
	}
	o.RateLimits.Key = r.limit("rate_limits.key")
	o.RateLimits.Session = r.limit("rate_limits.session")
	o.RateLimits.Failures = r.limit("rate_limits.failures")
	return o
}

func (r *configReader) limit(key string) httpapi.Limit {
	text := r.get(key)
	switch text {
	case "":
		return httpapi.Limit{}
	case "off":
		return httpapi.Limit{Rate: -1}
	}
	rate, burst, _ := strings.Cut(text, ",")
	n, err := strconv.ParseFloat(rate, 64)
	b, berr := strconv.Atoi(strings.TrimSpace(burst))
	if err != nil || berr != nil || !(n > 0) || b < 1 { // NaN is not above 0 either
		r.fault(key, "must be a rate and a burst, such as 100,200, or off; is %q", text)
	}
	return httpapi.Limit{Rate: n, Burst: b}
}

func (r *configReader) oneOf(key string, allowed ...string) string {
	text := r.get(key)
	for _, a := range allowed {
		if text == a {
			return text
		}
	}
	r.fault(key, "must be %s, is %q", strings.TrimPrefix(strings.Join(allowed, " or "), " or "), text)
	return allowed[0]
}

const (
	day      = 24 * time.Hour
	tenYears = 3650 * day
)

func (r *configReader) duration(key string, least, most time.Duration) time.Duration {
	d, err := rollcall.ParseDuration(r.get(key))
	if err != nil || d < least || d > most {
		r.fault(key, "must be a duration such as 90s, 5m or 31d, between %v and %dd, is %q", least, most/day, r.get(key))
	}
	return d
}

func (r *configReader) secret() []byte {
	text := r.get("secret")
	if text == "" {
		return nil
	}
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if b, err := decode(text); err == nil && len(b) >= 32 {
			return b
		}
	}
	r.fault("secret", "must be at least 32 bytes in hex or base64")
	return nil
}

// policyText is a policy as it is configured.
type policyText struct {
	Kind         string `json:"kind"`
	App          string `json:"app"`
	Device       string `json:"device"`
	IdleTimeout  any    `json:"idle_timeout"`
	Lifetime     any    `json:"lifetime"`
	MaxSessions  int    `json:"max_sessions"`
	MaxPerDevice int    `json:"max_per_device"`
	Overflow     string `json:"overflow"`
}

func (r *configReader) policies() *rollcall.Policies {
	var texts []policyText
	dec := json.NewDecoder(strings.NewReader(r.get("policies")))
	dec.DisallowUnknownFields()
	dec.UseNumber() // as written: a large float64 would be printed with an exponent
	if err := dec.Decode(&texts); err != nil {
		r.fault("policies", "must be a list of {kind, app, device, idle_timeout, lifetime, max_sessions, max_per_device, overflow}: %v", err)
		return nil
	}
	policies := make([]rollcall.Policy, len(texts))
	for i, t := range texts {
		policies[i] = rollcall.Policy{
			Kind: t.Kind, App: t.App, Device: t.Device, MaxSessions: t.MaxSessions, MaxPerDevice: t.MaxPerDevice,
			Overflow: rollcall.Overflow(t.Overflow),
		}
		for _, d := range []struct {
			name string
			from any
			to   *time.Duration
		}{{"idle_timeout", t.IdleTimeout, &policies[i].IdleTimeout}, {"lifetime", t.Lifetime, &policies[i].Lifetime}} {
			if d.from == nil {
				continue
			}
			parsed, err := rollcall.ParseDuration(fmt.Sprint(d.from))
			if err != nil {
				r.fault(fmt.Sprintf("policies[%d].%s", i, d.name), "must be a duration such as 30m, is %q", fmt.Sprint(d.from))
			}
			*d.to = parsed
		}
	}
	out, err := rollcall.NewPolicies(policies...)
	if err != nil {
		r.faults = append(r.faults, errors.New(message(err)))
	}
	return out
}

// loopback reports whether a listen address is reached from this machine only.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && a.IsLoopback())
}

func list(text string) []string {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

func jsonText(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

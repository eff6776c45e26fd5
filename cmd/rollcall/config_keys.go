package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settings are the flags of every verb that needs the configuration, and the
// one list of what can be configured: a field's key is its name in the file,
// its flag is the same with dashes, its variable the same in capitals behind
// ROLLCALL_. Empty means not given.
type settings struct {
	ConfigFile string `name:"config" help:"Configuration file (default: rollcall.yaml, if there is one)." type:"path"`

	Listen       string `key:"listen" def:"127.0.0.1:8080" placeholder:"127.0.0.1:8080" help:"HTTP address."`
	TLSCert      string `key:"tls.cert" name:"tls-cert" help:"Certificate file; with tls-key, turns on HTTPS."`
	TLSKey       string `key:"tls.key" name:"tls-key" help:"Key file of the certificate."`
	DataDir      string `key:"data_dir" name:"data-dir" def:"./rollcall-data" placeholder:"./rollcall-data" help:"Where the data is."`
	Engine       string `key:"engine" def:"local" placeholder:"local" help:"Engine: local, or redis with redis.url."`
	RedisURL     string `key:"redis.url" name:"redis-url" secret:"" placeholder:"URL" help:"redis://, redis+cluster:// or redis+sentinel://; rediss for TLS. Better by variable: others see flags."`
	RedisPrefix  string `key:"redis.prefix" name:"redis-prefix" def:"rc" placeholder:"rc" help:"Beginning of every key in Redis."`
	RedisParts   string `key:"redis.partitions" name:"redis-partitions" def:"64" placeholder:"64" help:"Partitions of new data in Redis: a power of two."`
	RedisWait    string `key:"redis.wait" name:"redis-wait" def:"0" placeholder:"0" help:"Replicas that must confirm logins, ends and bans."`
	RedisTimeout string `key:"redis.timeout" name:"redis-timeout" def:"3s" placeholder:"3s" help:"Longest a command waits for Redis."`
	Auth         string `key:"auth" def:"keys" placeholder:"keys" help:"keys, or off on a loopback address."`
	AdminKey     string `key:"admin_key" name:"admin-key" secret:"" help:"First admin key: rck_ and at least 32 characters. Better by variable: others see flags."`
	Secret       string `key:"secret" secret:"" help:"32 bytes in hex or base64 (default: made on the first run). Better by variable: others see flags."`
	Timezone     string `key:"timezone" def:"UTC" placeholder:"UTC" help:"IANA name of the civil day's zone; fixed with the data."`
	Durability   string `key:"durability" def:"always" placeholder:"always" help:"always: on disk before the reply; interval: within 1s."`
	Window       string `key:"presence.window" name:"presence-window" def:"5m" placeholder:"5m" help:"How recent a beat must be to count as online."`
	Retention    string `key:"presence.retention" name:"presence-retention" def:"90d" placeholder:"90d" help:"How long last-seen times are kept."`
	Grace        string `key:"presence.offline_grace" name:"presence-offline-grace" def:"0s" placeholder:"0s" help:"Wait before a user is announced offline."`
	LeaveGrace   string `key:"presence.leave_grace" name:"presence-leave-grace" def:"10s" placeholder:"10s" help:"Wait before one who logged out is announced offline."`
	Events       string `key:"presence.events" name:"presence-events" def:"on" placeholder:"on" help:"on or off: announce users online and offline."`
	Script       string `key:"presence.script" name:"presence-script" placeholder:"/js/here.js" help:"A second path of /v1/presence.js, where visitors block that."`
	Badge        string `key:"badge" def:"off" placeholder:"off" help:"on or off: show everyone how many are online, rounded, at /v1/online/badge."`
	Policies     string `key:"policies" def:"[]" placeholder:"[]" help:"List of policies, as JSON (a YAML list in the file)."`
	RestartGrace string `key:"restart_grace" name:"restart-grace" def:"60s" placeholder:"60s" help:"Put off deadlines that fell into an outage."`
	VerifyCookie string `key:"verify.cookie" name:"verify-cookie" help:"Cookie that carries the session token."`
	EventsKeep   string `key:"events.keep" name:"events-keep" def:"7d,1000000" placeholder:"7d,1000000" help:"Age and number of events kept, of each family."`
	AttendanceOn string `key:"attendance.on" name:"attendance-on" def:"login" placeholder:"login" help:"What marks a day: login, beat or manual."`
	Late         string `key:"attendance.late" name:"attendance-late" def:"31d" placeholder:"31d" help:"How far back a mark may be dated."`
	VisitsKeep   string `key:"visits.keep" name:"visits-keep" def:"400d" placeholder:"400d" help:"How long the visitors of an hour are kept."`
	ArchiveDSN   string `key:"archive.dsn" name:"archive-dsn" secret:"" placeholder:"URL" help:"sqlite:PATH, postgres:// or mysql://, or off (default: archive.db in the data directory; with Redis, off). With a password better by variable: others see flags."`
	ArchiveWhen  string `key:"archive.schedule" name:"archive-schedule" def:"0 3 * * 1" placeholder:"'0 3 * * 1'" help:"When days are archived, as in cron; off for on request only."`
	ArchiveKeep  string `key:"archive.keep_hot" name:"archive-keep-hot" def:"400d" placeholder:"400d" help:"How long days stay in the engine too; off for ever."`
	Proxies      string `key:"trusted_proxies" name:"trusted-proxies" help:"Networks whose X-Forwarded-For is believed."`
	CORSOrigins  string `key:"cors_origins" name:"cors-origins" help:"Origins whose pages may send touches."`
	ConsoleHead  string `key:"console.header" name:"console-header" placeholder:"X-Forwarded-User" help:"Header in which trusted_proxies name who uses the console (default: none)."`
	ConsoleRole  string `key:"console.header_role" name:"console-header-role" def:"reader" placeholder:"reader" help:"What those may do: reader, writer or admin."`
	UDPListen    string `key:"udp.listen" name:"udp-listen" placeholder:"127.0.0.1:8081" help:"Address for UDP beats (default: none are taken)."`
	RESPListen   string `key:"resp.listen" name:"resp-listen" placeholder:"127.0.0.1:6380" help:"Address for RESP, the protocol of Redis (default: none is served)."`
	RESPDialect  string `key:"resp.dialect" name:"resp-dialect" placeholder:"'users = presence'" help:"What names of keys mean to commands of Redis, as PATTERN = MEANING, …"`
	HooksAllow   string `key:"webhooks.allow" name:"webhooks-allow" placeholder:"10.1.0.0/16" help:"Private networks and hosts that webhooks may reach (default: none)."`
	RateKey      string `key:"rate_limits.key" name:"rate-limits-key" def:"10000,20000" placeholder:"10000,20000" help:"Requests a second of a key, as rate,burst; off for none."`
	RateSession  string `key:"rate_limits.session" name:"rate-limits-session" def:"50,200" placeholder:"50,200" help:"Requests a second of an end user, as rate,burst."`
	RateFailures string `key:"rate_limits.failures" name:"rate-limits-failures" def:"20,100" placeholder:"20,100" help:"Failed sign-ins a second of an address, as rate,burst."`
	LogLevel     string `key:"log.level" name:"log-level" def:"info" placeholder:"info" help:"debug, info, warn or error."`
	LogFormat    string `key:"log.format" name:"log-format" help:"text or json (default: text on a terminal, else json)."`
}

// value is a setting as it stands, and where that came from.
type value struct {
	key, text, source string
	secret            bool
}

// values are all settings, in the order of the list.
type values []value

func (v values) get(key string) string {
	for _, x := range v {
		if x.key == key {
			return x.text
		}
	}
	return ""
}

const defaultFile = "rollcall.yaml"

// resolve finds the value of every setting: the flag, else the environment,
// else the file, else the default. The error names everything that is wrong;
// the values are there all the same, unless the file cannot be read.
func (s *settings) resolve(a *app) (values, error) {
	fromFile, path, err := s.readFile()
	if err != nil {
		return nil, err
	}
	env := make(map[string]string)
	for _, e := range a.environ {
		if k, v, _ := strings.Cut(e, "="); v != "" && strings.HasPrefix(k, "ROLLCALL_") {
			env[k] = v
		}
	}
	var out values
	var faults []error
	known := make([]string, 0, len(fromFile))
	fields := reflect.TypeFor[settings]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		key := f.Tag.Get("key")
		if key == "" {
			continue
		}
		known = append(known, key)
		_, secret := f.Tag.Lookup("secret")
		v := value{key: key, text: f.Tag.Get("def"), source: "default", secret: secret}
		if text, ok := fromFile[key]; ok {
			v.text, v.source = text, path
		}
		text, source, err := fromEnv(env, variable(key), secret)
		if err != nil {
			faults = append(faults, err)
		}
		if source != "" {
			v.text, v.source = text, source
		}
		if text := reflect.ValueOf(*s).Field(i).String(); text != "" {
			v.text, v.source = text, "flag"
		}
		out = append(out, v)
	}
	for key := range fromFile {
		if !slices.Contains(known, key) {
			faults = append(faults, fmt.Errorf("%s: unknown key %q, did you mean %q?", path, key, nearest(key, known)))
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return out, errors.Join(faults...)
}

// knownVariables returns the names of all variables that rollcall reads.
func knownVariables() []string {
	known := []string{"ROLLCALL_KEY", "ROLLCALL_SERVER", "ROLLCALL_CONTEXT"}
	fields := reflect.TypeFor[settings]()
	for i := range fields.NumField() {
		key := fields.Field(i).Tag.Get("key")
		if key == "" {
			continue
		}
		known = append(known, variable(key))
		if _, secret := fields.Field(i).Tag.Lookup("secret"); secret {
			known = append(known, variable(key)+"_FILE")
		}
	}
	return known
}

// unknownVariables returns the ROLLCALL_ variables that nothing reads.
func unknownVariables(environ []string) []string {
	known := knownVariables()
	var out []string
	for _, e := range environ {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "ROLLCALL_") && !slices.Contains(known, name) {
			out = append(out, name)
		}
	}
	return out
}

// variable is the name of a key's environment variable.
func variable(key string) string {
	return "ROLLCALL_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// fromEnv reads a variable, or for a secret the file that NAME_FILE names.
func fromEnv(env map[string]string, name string, secret bool) (text, source string, err error) {
	if text, ok := env[name]; ok {
		return text, name, nil
	}
	path, ok := env[name+"_FILE"]
	if !secret || !ok {
		return "", "", nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("%s_FILE: %w", name, err)
	}
	return strings.TrimSpace(string(b)), name + "_FILE", nil
}

// readFile returns the keys of the configuration file, flat, and its path.
func (s *settings) readFile() (map[string]string, string, error) {
	path := s.ConfigFile
	if path == "" {
		if _, err := os.Stat(defaultFile); err != nil {
			return nil, "", nil //nolint:nilerr // without a file there is nothing to read
		}
		path = defaultFile
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	out := make(map[string]string)
	if err := flatten(tree, "", out); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	return out, path, nil
}

// flatten puts the values of a tree of headings under their full keys, such as
// presence.window.
func flatten(tree map[string]any, heading string, out map[string]string) error {
	for name, v := range tree {
		key := heading + name
		below, isHeading := v.(map[string]any)
		switch {
		case v == nil: // a heading whose keys are all commented out
		case key == "policies":
			text, err := jsonText(v)
			if err != nil {
				return fmt.Errorf("policies: %w", err)
			}
			out[key] = text
		case isHeading && len(below) > 0:
			if err := flatten(below, key+".", out); err != nil {
				return err
			}
		default:
			out[key] = plainText(v)
		}
	}
	return nil
}

// plainText is a YAML scalar, or a list of them, as it would stand in a flag.
func plainText(v any) string {
	list, ok := v.([]any)
	if !ok {
		switch v {
		case true:
			return "on"
		case false:
			return "off"
		}
		return fmt.Sprint(v)
	}
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = fmt.Sprint(x)
	}
	return strings.Join(parts, ",")
}

// nearest returns the known key that differs least from a mistyped one.
func nearest(key string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		if d := editDistance(key, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// editDistance counts the letters to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

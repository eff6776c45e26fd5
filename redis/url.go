package redis

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// address is what a URL says.
type address struct {
	sentinel, cluster bool
	encrypted         bool
	user, password    string
	hosts             []string
	master            string
	db                int
	query             url.Values
}

func badURL(format string, args ...any) error {
	return rollcall.Invalid("redis.url", format, args...)
}

// parseURL reads a URL. It refuses any @ or # but those of the form, as a password with such
// characters would be read as something else. Its errors quote nothing of the URL: that might
// be a part of the password.
func parseURL(text string) (address, error) {
	var a address
	scheme, rest, ok := strings.Cut(text, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	a.encrypted = base == "rediss"
	a.cluster, a.sentinel = kind == "cluster", kind == "sentinel"
	if !ok || (base != "redis" && base != "rediss") || (kind != "" && !a.cluster && !a.sentinel) {
		return a, badURL("must begin with redis://, redis+cluster:// or redis+sentinel://, or with rediss for encryption")
	}
	marks := strings.Count(rest, "@")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(rest, "#") || marks > 1 || marks == 1 && !strings.Contains(authority, "@") {
		return a, badURL("has a special character in its user, its password or an option: write / as %%2F, ? as %%3F, # as %%23, @ as %%40")
	}
	var err error
	if a.query, err = url.ParseQuery(query); err != nil {
		return a, badURL("has a query that cannot be read")
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, _ := strings.Cut(authority[:at], ":")
		var err2 error
		a.user, err = url.PathUnescape(user)
		a.password, err2 = url.PathUnescape(password)
		if err != nil || err2 != nil {
			return a, badURL("has a user or a password with a %% that is no escape")
		}
		authority = authority[at+1:]
	}
	if err := a.readHosts(authority); err != nil {
		return a, err
	}
	if err := a.readPath(path); err != nil {
		return a, err
	}
	for name := range a.query {
		switch name {
		case "ca", "cert", "key", "server_name", "sentinel_user", "sentinel_password":
		default:
			return a, badURL("has an option that is not known: there are ca, cert, key, server_name, sentinel_user and sentinel_password")
		}
	}
	return a, nil
}

func (a *address) readHosts(text string) error {
	port := "6379"
	if a.sentinel {
		port = "26379"
	}
	for h := range strings.SplitSeq(text, ",") {
		host, p, err := net.SplitHostPort(h)
		if err != nil {
			host, p = strings.Trim(h, "[]"), port
		}
		if host == "" {
			return badURL("names no host")
		}
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return badURL("has a port that is none: it must be a number from 1 to 65535")
		}
		a.hosts = append(a.hosts, net.JoinHostPort(host, p))
	}
	if len(a.hosts) > 1 && !a.cluster && !a.sentinel {
		return badURL("names several servers: use redis+cluster:// or redis+sentinel://")
	}
	return nil
}

func (a *address) readPath(path string) error {
	if a.sentinel {
		a.master, path, _ = strings.Cut(path, "/")
		if a.master == "" {
			return badURL("needs the name of the master the sentinels watch: redis+sentinel://host:port/NAME")
		}
	}
	if path == "" {
		return nil
	}
	db, err := strconv.Atoi(path)
	switch {
	case err != nil || db < 0:
		return badURL("has a database that is no number behind the last /")
	case a.cluster && db != 0:
		return badURL("names a database, and a Cluster has none but 0")
	}
	a.db = db
	return nil
}

// option makes the options of the client.
func (a *address) option(timeout time.Duration) (rueidis.ClientOption, error) {
	o := rueidis.ClientOption{
		InitAddress: a.hosts, Username: a.user, Password: a.password, SelectDB: a.db,
		ClientName: "rollcall", ClientSetInfo: rueidis.DisableClientSetInfo, DisableCache: true,
		ForceSingleClient: !a.cluster && !a.sentinel,
		ConnWriteTimeout:  timeout,
		Dialer:            net.Dialer{Timeout: timeout, KeepAlive: time.Second},
		RetryDelay:        func(attempts int, _ rueidis.Completed, _ error) time.Duration { return backoff(attempts) },
	}
	if a.cluster {
		o.ClusterOption.ShardsRefreshInterval = 5 * time.Second
	}
	if a.encrypted {
		config, err := a.tls()
		if err != nil {
			return o, err
		}
		o.TLSConfig = config
	}
	if a.sentinel {
		o.Sentinel = rueidis.SentinelOption{
			MasterSet: a.master, TLSConfig: o.TLSConfig, Dialer: o.Dialer,
			Username: a.query.Get("sentinel_user"), Password: a.query.Get("sentinel_password"),
			TopologyRefreshInterval: time.Second,
		}
	}
	return o, nil
}

func (a *address) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.query.Get("server_name")}
	if c.ServerName == "" && len(a.hosts) == 1 {
		c.ServerName, _, _ = net.SplitHostPort(a.hosts[0])
	}
	if file := a.query.Get("ca"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, &rollcall.Error{Code: rollcall.CodeInvalidArgument, Field: "redis.url", Detail: "the file of ca cannot be read", Err: err}
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, badURL("the file of ca holds no certificate")
		}
	}
	cert, key := a.query.Get("cert"), a.query.Get("key")
	if (cert == "") != (key == "") {
		return nil, badURL("cert and key belong together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, &rollcall.Error{Code: rollcall.CodeInvalidArgument, Field: "redis.url", Detail: "cert and key cannot be used", Err: err}
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Where names the servers and the prefix, without user and password.
func (o *Options) Where() string {
	a, err := parseURL(o.URL)
	if err != nil {
		return "Redis"
	}
	kind := ""
	switch {
	case a.cluster:
		kind = "Cluster "
	case a.sentinel:
		kind = "Sentinel "
	}
	return "Redis " + kind + strings.Join(a.hosts, ",") + ", keys " + o.Prefix + ":…"
}

// NewClient connects to a Redis for other uses than an engine's: a look at what stands
// there, say. The URL is that of [Options]. Each write to a connection is bounded by the
// timeout; the context of a command bounds the command.
func NewClient(rawURL string, timeout time.Duration) (rueidis.Client, error) {
	a, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	option, err := a.option(timeout)
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, errorOf(err)
	}
	return client, nil
}

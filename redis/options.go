package redis

import (
	"log/slog"
	"math/bits"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// Defaults of the options.
const (
	DefaultPrefix     = "rc"
	DefaultPartitions = 64
	DefaultTimeout    = 3 * time.Second

	maxPartitions = 1024
	maxReplicas   = 16
)

// Options say which Redis to use and how. Only URL is required.
type Options struct {
	// URL names the servers:
	//
	//	redis://[user:password@]host:port[/db]
	//	redis+cluster://[user:password@]host:port[,host:port…]
	//	redis+sentinel://[user:password@]host:port[,host:port…]/master[/db]
	//
	// With rediss in place of redis the connections are encrypted. Options
	// follow as a query: ca, cert and key are files of a certificate authority
	// and of a certificate for this client, server_name is the name the
	// servers' certificates are made out to, sentinel_user and
	// sentinel_password are for the sentinels.
	URL string
	// Prefix begins every key; default "rc". It is part of the data: with
	// another one, other data is found.
	Prefix string
	// Partitions is how many partitions new data is spread over: a power of two
	// of at most 1,024, default 64. Data made with another number refuses to
	// open.
	Partitions int
	// Wait is how many replicas must have a login, an end or a ban before it is
	// acknowledged; default 0. A command that they did not confirm in time
	// fails with CodeUnavailable though the master has it.
	Wait int
	// Timeout bounds every command, with all its retries; default 3s.
	Timeout time.Duration
	// Logger is told of what an operator should know; default nobody.
	Logger *slog.Logger

	wrap func(rueidis.Client) rueidis.Client // nil but in tests, which look at commands
}

// Check returns what is wrong with the options, without connecting.
func (o *Options) Check() error {
	filled := *o
	if err := filled.fill(); err != nil {
		return err
	}
	_, err := parseURL(o.URL)
	return err
}

func (o *Options) fill() error {
	if o.Prefix == "" {
		o.Prefix = DefaultPrefix
	}
	if o.Partitions == 0 {
		o.Partitions = DefaultPartitions
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.URL == "":
		return rollcall.Invalid("redis.url", "is required")
	case len(o.Prefix) > 64 || strings.ContainsAny(o.Prefix, "{}*?[]\\ \r\n"):
		return rollcall.Invalid("redis.prefix", "may have 64 bytes, without spaces and {}*?[]\\")
	case o.Partitions < 1 || o.Partitions > maxPartitions || bits.OnesCount(uint(o.Partitions)) != 1:
		return rollcall.Invalid("redis.partitions", "must be a power of two of at most %d, is %d", maxPartitions, o.Partitions)
	case o.Wait < 0 || o.Wait > maxReplicas:
		return rollcall.Invalid("redis.wait", "must be between 0 and %d, is %d", maxReplicas, o.Wait)
	case o.Timeout < 100*time.Millisecond || o.Timeout > time.Minute:
		return rollcall.Invalid("redis.timeout", "must be between 100ms and 1m, is %v", o.Timeout)
	}
	return nil
}

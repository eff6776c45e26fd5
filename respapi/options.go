package respapi

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/rollcall/rollcall"
)

// Options of a Listener. The zero value serves the own verbs to holders of API keys.
type Options struct {
	// NoKeys serves everybody as an administrator, as AuthOff does over HTTP. Listen
	// refuses it unless the address is a loopback address.
	NoKeys bool
	// Dialect binds names of keys to what they mean; nil binds none.
	Dialect *Dialect
	// Retention is how long last-seen times are kept; 0 means the default.
	Retention time.Duration
	// TLS makes the listener take TLS connections only; nil for plain ones.
	TLS *tls.Config
	// KeyLimit is how many batches of commands a second one API key may send. A batch is
	// what came together in one read. Above it connections of the key are read more
	// slowly, and after a second of that refused with rate_limited.
	KeyLimit Limit
	// FailureLimit is how many API keys that do not work may come from one address, IPv6
	// by /64. Above it the connection is closed.
	FailureLimit Limit
	// MaxConnections is how many connections there may be; 0 means 10,000.
	MaxConnections int
	// Version is what INFO says of the server.
	Version string
	Logger  *slog.Logger // nil for none
}

// Limit is an allowance: Rate a second, and up to Burst at once. The zero value stands for
// the default, a negative Rate for no limit.
type Limit struct {
	Rate  float64
	Burst int
}

func (l *Limit) fill(rate float64, burst int) {
	if l.Rate == 0 {
		l.Rate, l.Burst = rate, burst
	}
	l.Burst = max(l.Burst, 1)
}

func (o *Options) fill() {
	o.KeyLimit.fill(10_000, 20_000)
	o.FailureLimit.fill(20, 100)
	if o.MaxConnections <= 0 {
		o.MaxConnections = 10_000
	}
	if o.Retention <= 0 {
		o.Retention = rollcall.DefaultRetention
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Dialect == nil {
		o.Dialect = &Dialect{}
	}
}

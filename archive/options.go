package archive

import (
	"log/slog"
	"time"

	"github.com/rollcall/rollcall"
)

// Options configure a DB. The zero value works.
type Options struct {
	// Timeout is how long one call may take, of [DB.Each] and [DB.Months] one
	// statement. Default 30 s; from 10 ms to 1 h.
	Timeout time.Duration
	// MaxConns is how many connections are open at once; default 4, at most 100.
	MaxConns int
	// Lazy opens an archive that does not answer all the same: each call then
	// tries it again, and fails with CodeUnavailable until it does.
	Lazy bool
	// Logger is told when the tables are made or changed; default: nothing is
	// logged.
	Logger *slog.Logger

	// unsynced has SQLite, and the offload log, not wait for the disk: for tests in which nothing cuts the
	// power.
	unsynced bool
}

func (o *Options) fill() error {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Timeout < 10*time.Millisecond || o.Timeout > time.Hour {
		return rollcall.Invalid("archive.timeout", "must be from 10ms to 1h, is %s", o.Timeout)
	}
	if o.MaxConns == 0 {
		o.MaxConns = 4
	}
	if o.MaxConns < 1 || o.MaxConns > 100 {
		return rollcall.Invalid("archive.max_conns", "must be from 1 to 100, is %d", o.MaxConns)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

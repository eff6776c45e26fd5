package local

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
)

// Durability says when a command is acknowledged.
type Durability string

// The choices of durability. Beats and touches are flushed once a second with
// either.
const (
	// Always acknowledges a command once it is synced to disk.
	Always Durability = "always"
	// Interval acknowledges at once and syncs every second: a crash may lose
	// the last second.
	Interval Durability = "interval"
)

// Options configure an engine. The zero value works.
type Options struct {
	Durability Durability // default Always
	// InMemory keeps nothing on disk; the directory's name is ignored.
	InMemory bool
	// CacheBytes is the size of the block cache for what is read from disk;
	// default 32 MiB.
	CacheBytes int64
	// ColdCacheBytes is the memory that marks read back from the archive may take;
	// default 256 MiB. The month used last is kept whatever its size.
	ColdCacheBytes int64
	// ReserveBytes of free disk space are left alone: with less, writes are
	// refused with storage_full. Default 64 MiB, negative for none.
	ReserveBytes int64
	// Progress, if set, is told while Open rebuilds memory: how many of total
	// partitions are ready.
	Progress func(ready, total int)
	Logger   *slog.Logger // default: nothing is logged

	fs       vfs.FS // for tests
	minDelta int    // for tests: no snapshot begins with fewer entries in delta records
	// stopwatch is for tests: it measures how long upkeep has worked in a tick.
	stopwatch func() (elapsed func() time.Duration)
}

func (o *Options) fill() error {
	if o.Durability == "" {
		o.Durability = Always
	}
	if o.Durability != Always && o.Durability != Interval {
		return rollcall.Invalid("durability", "must be always or interval, is %q", o.Durability)
	}
	if o.CacheBytes < 0 {
		return rollcall.Invalid("cache", "must not be negative")
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.ColdCacheBytes < 0 {
		return rollcall.Invalid("recall", "must not be negative")
	}
	if o.ColdCacheBytes == 0 {
		o.ColdCacheBytes = 256 << 20
	}
	if o.ReserveBytes == 0 {
		o.ReserveBytes = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.stopwatch == nil {
		o.stopwatch = stopwatch
	}
	if o.minDelta == 0 {
		o.minDelta = defaultMinDelta
	}
	if o.fs == nil {
		o.fs = vfs.Default
		if o.InMemory {
			o.fs = vfs.NewMem()
		}
	}
	return nil
}

package archive

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/rollcall/rollcall"
)

// DefaultKeepHot is how many days back a day stays in the hot store.
const DefaultKeepHot = 400

// NeverOffload as RunnerOptions.KeepHot keeps every day in the hot store.
const NeverOffload = -1

const maxKeepHot = 36_500

// RunnerOptions configure a [Runner]. All but OffloadLog have defaults.
type RunnerOptions struct {
	// KeepHot is for how many days before today a day stays in the hot store,
	// from 1; default [DefaultKeepHot]; [NeverOffload] keeps all.
	KeepHot int
	// Batch is how many rows are copied at a time; default 5,000, at most
	// [MaxChanges].
	Batch int
	// Timezone is the zone of the civil day; default UTC.
	Timezone *time.Location
	// Clock says what day it is; default the system's.
	Clock rollcall.Clock
	// OffloadLog is where days are logged before they go; required, unless
	// KeepHot is NeverOffload.
	OffloadLog *OffloadLog
	// Lease is how long the lease lasts that keeps other runners out, should
	// this one die; from 100 ms to [MaxLease], default 1 minute.
	Lease time.Duration
	// Name is shown to other runners; default the host's name and the process.
	Name string
	// Logger is told of every run; default: nothing is logged.
	Logger *slog.Logger
	// Observer is told of every run that ended; nil for nobody.
	Observer Observer
}

// Observer is told of each run of its own runner that completed or failed, and,
// not own, now and then of the latest that completed anywhere. A run that could
// not even begin has no ID. It must be safe for concurrent use and quick.
type Observer interface {
	Archived(run rollcall.ArchiveRun, own bool)
}

func (o *RunnerOptions) fill() error {
	if o.KeepHot == 0 {
		o.KeepHot = DefaultKeepHot
	}
	if o.Batch == 0 {
		o.Batch = 5_000
	}
	if o.Timezone == nil {
		o.Timezone = time.UTC
	}
	if o.Clock == nil {
		o.Clock = &rollcall.SystemClock{}
	}
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "a server without a name"
		}
		o.Name = fmt.Sprintf("%s, process %d", host, os.Getpid())
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o.check()
}

func (o *RunnerOptions) check() error {
	switch {
	case o.KeepHot != NeverOffload && (o.KeepHot < 1 || o.KeepHot > maxKeepHot):
		return rollcall.Invalid("archive.keep_hot", "must be from 1 to %d days, is %d", maxKeepHot, o.KeepHot)
	case o.Batch < 1 || o.Batch > MaxChanges:
		return rollcall.Invalid("archive.batch", "must be from 1 to %d, is %d", MaxChanges, o.Batch)
	case o.Lease < 100*time.Millisecond || o.Lease > MaxLease:
		return rollcall.Invalid("archive.lease", "must be from 100ms to %s, is %s", MaxLease, o.Lease)
	case o.KeepHot != NeverOffload && o.OffloadLog == nil:
		return rollcall.Invalid("archive.offload_log", "is required: days are logged before they go")
	case rollcall.CheckUser(o.Name) != nil:
		return rollcall.Invalid("archive.name", "must be 1 to 128 bytes of UTF-8 without control characters")
	}
	return nil
}

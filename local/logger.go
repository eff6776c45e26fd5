package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger passes Pebble's messages on at debug level. Fatalf is called
// when the log of the store cannot be written any more: nothing that was not
// yet durable has been acknowledged, and no later write could be.
type pebbleLogger struct{ log *slog.Logger }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("store: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("store: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.log.Error("store: " + text)
	fmt.Fprintln(os.Stderr, "rollcall: the store failed and the process must end:", text)
	os.Exit(1) //nolint:forbidigo // Pebble relies on Fatalf not to return, and no write can be kept any more
}

// events tells of damaged blocks, which is no reason to end the process: what
// reads them gets an error.
func (l pebbleLogger) events() *pebble.EventListener {
	return &pebble.EventListener{DataCorruption: func(info pebble.DataCorruptionInfo) {
		l.log.Error("store: a block on disk is damaged: run rollcall check", "path", info.Path, "error", info.Details)
	}}
}

func (pebbleLogger) Eventf(context.Context, string, ...any) {}

func (pebbleLogger) IsTracingEnabled(context.Context) bool { return false }

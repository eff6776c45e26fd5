package rollcall

import (
	"context"
	"time"
)

// Console keeps the passes to the console: links that sign in once, and the
// sessions of browsers. Each is found by the hash of its text. They survive a
// restart, and on a distributed engine all servers know them.
type Console interface {
	// PutPass stores a pass, in place of the one with its hash, and lets go of
	// what has expired by now. Of passes that are [ConsolePass.HeldWith] one
	// another there are at most MaxPassesPerHolder, and MaxPasses of all: those
	// too many go, the holder's first, the first to expire first.
	PutPass(ctx context.Context, now time.Time, p ConsolePass) error
	// Pass finds a pass; CodeNotFound, also if it has expired by now.
	Pass(ctx context.Context, now time.Time, hash PassHash) (ConsolePass, error)
	// ExtendPass moves the ExpiresAt of a pass to expires, but never to an earlier
	// time and never past its EndsAt; CodeNotFound, also if it has expired by now.
	ExtendPass(ctx context.Context, now time.Time, hash PassHash, expires time.Time) error
	// TakePass removes a pass and returns it; CodeNotFound, also if it has expired
	// by now. Of several callers at the same time one gets it.
	TakePass(ctx context.Context, now time.Time, hash PassHash) (ConsolePass, error)
}

package demo

import (
	"context"
	"time"

	"github.com/rollcall/rollcall"
)

// beatEvery is how often a living world looks what is due.
const beatEvery = 200 * time.Millisecond

// Live lets people go on, on the service's own clock, until the context ends, which is
// no error.
func (w *World) Live(ctx context.Context, roll *rollcall.Roll) error {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := w.advance(ctx, roll, roll.Now(), nil); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

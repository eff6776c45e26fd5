package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// during runs work and renews the lease meanwhile. Work's context ends when the
// lease is lost, or could not be renewed for as long as it lasts.
func (l *Lease) during(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	renewing := make(chan struct{})
	go func() {
		defer close(renewing)
		l.keepRenewing(ctx, stop)
	}()
	defer func() {
		stop(nil)
		<-renewing
	}()
	err := work(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) && ctx.Err() != nil {
		return cause
	}
	return err
}

func (l *Lease) keepRenewing(ctx context.Context, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(l.ttl / 3)
	defer ticker.Stop()
	for missed := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch err := l.Renew(ctx); {
		case err == nil:
			missed = 0
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLeaseLost):
			stop(err)
			return
		default:
			if missed++; missed >= 3 {
				stop(&rollcall.Error{
					Code:   rollcall.CodeUnavailable,
					Detail: fmt.Sprintf("the archive did not answer for %s", l.ttl), Err: err,
				})
				return
			}
		}
	}
}

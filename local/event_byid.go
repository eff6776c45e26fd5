package local

import (
	"context"

	"github.com/rollcall/rollcall"
)

// EventsByID implements [rollcall.Events].
func (e *Engine) EventsByID(ctx context.Context, ids []rollcall.EventID, v rollcall.Viewer) ([]rollcall.Event, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	l := e.events
	out := make([]rollcall.Event, 0, len(ids))
	for _, id := range ids {
		seq, err := l.parseID(id)
		if err != nil {
			continue // of another store
		}
		l.mu.Lock()
		durable := seq > 0 && seq <= l.durableTo
		l.mu.Unlock()
		if !durable {
			continue
		}
		found, _, err := l.read(ctx, rollcall.EventFamilies(), seq, seq, 1, v)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

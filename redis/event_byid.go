package redis

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// perEvent is how many commands EventsByID sends for each event: it stands in one of the
// streams of its partition, or among those that an erasure redacted.
const perEvent = 3

// EventsByID implements [rollcall.Events].
func (e *Engine) EventsByID(ctx context.Context, ids []rollcall.EventID, v rollcall.Viewer) ([]rollcall.Event, error) {
	var calls []call
	var places []place
	for _, id := range ids {
		p, ok := e.parseEventID(id)
		if !ok {
			continue // of another store
		}
		calls = append(calls, e.eventCalls(p)...)
		places = append(places, p)
	}
	messages, err := e.do(ctx, 0, calls...)
	if err != nil {
		return nil, err
	}
	out := make([]rollcall.Event, 0, len(places))
	for i, p := range places {
		found, err := pickEvent(messages[i*perEvent:], p)
		if err != nil {
			return nil, err
		}
		// Redacting moves an event from the second answer to the third, which were read
		// one after the other: it may stand in both, and the later one counts.
		if n := len(found); n > 0 && found[n-1].audience.Shows(v) {
			found[n-1].ID = e.eventID(p)
			out = append(out, found[n-1].Event)
		}
	}
	return out, nil
}

// eventCalls ask for the event at a place, wherever it may stand.
func (e *Engine) eventCalls(p place) []call {
	at := strconv.FormatInt(p.at, 10)
	calls := make([]call, 0, perEvent)
	for _, stream := range streams {
		calls = append(calls, plainCall(func() rueidis.Completed {
			return e.client.B().Xrange().Key(e.of(p.part, stream)).Start(at + "-0").End(at + "-0").Build()
		}))
	}
	return append(calls, plainCall(func() rueidis.Completed {
		return e.client.B().Zrange().Key(e.of(p.part, "redacted")).Min(at).Max(at).Byscore().Withscores().Build()
	}))
}

// pickEvent reads the answers about one event.
func pickEvent(answers []rueidis.RedisMessage, p place) (found []event, err error) {
	for i, read := range []func(rueidis.RedisMessage, int) ([]event, error){readStream, readStream, readRedacted} {
		some, err := read(answers[i], p.part)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

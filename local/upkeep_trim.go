package local

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
)

// trimStep bounds the records that one step of trimming looks at.
const trimStep = 1000

// trimmer puts the removal of some of what is past its keep into a batch, and
// reports whether there may be more.
type trimmer func(ctx context.Context, b *pebble.Batch) (more bool, err error)

// trim removes what is past its keep: bans, events, ended sessions, retry keys.
// It goes on as long as there is some, or its turn is over: what comes in a
// second has to be able to go in one.
func (e *Engine) trim(ctx context.Context, now int64) error {
	t := e.turn(trimTime)
	for more := true; more && !t.over() && ctx.Err() == nil; {
		var err error
		if more, err = e.trimBans(now); err != nil {
			return err
		}
	}
	todo := []trimmer{
		e.events.trimmer(sessionFamily, now-ms(e.settings.EventsAge)),
		e.events.trimmer(presenceFamily, now-ms(e.settings.EventsAge)),
		e.trimEnded(now - ms(e.settings.EndedKeep)),
		e.trimRetries(now - ms(e.settings.RetryKeep)),
	}
	for len(todo) > 0 {
		left := todo[:0]
		for _, some := range todo {
			more, err := e.trimSome(ctx, some)
			if err != nil {
				return err
			}
			if more {
				left = append(left, some)
			}
		}
		if todo = left; t.over() || ctx.Err() != nil {
			return nil //nolint:nilerr // the next tick goes on
		}
	}
	return nil
}

// trimSome takes one step.
func (e *Engine) trimSome(ctx context.Context, some trimmer) (more bool, err error) {
	e.flush.Lock() // an erasure rewrites events: none may be trimmed between its read and its write
	defer e.flush.Unlock()
	b := e.store.newBatch()
	more, err = some(ctx, b)
	if err == nil && !b.Empty() {
		err = e.store.queue(b)
	}
	return more, errors.Join(err, b.Close())
}

// inSteps makes a trimmer of what is to be done with each record of a table
// that is due. The records begin with the instant they are due; one step goes on
// where the last one stopped.
func (e *Engine) inSteps(table byte, line int64, remove func(b *pebble.Batch, k, v []byte) error) trimmer {
	from, to := newKey(table, 9), newKey(table, 9).u64(uint64(max(0, line)))
	return func(ctx context.Context, b *pebble.Batch) (more bool, err error) {
		n := 0
		err = e.store.scanRange(ctx, from, to, func(k, v []byte) error {
			if n++; n > trimStep {
				return errStop
			}
			from = append(from[:0], k...)
			return remove(b, k, v)
		})
		if errors.Is(err, errStop) {
			return true, nil
		}
		return false, err
	}
}

func (e *Engine) trimEnded(line int64) trimmer {
	return e.inSteps(tabEndedDue, line, func(b *pebble.Batch, k, v []byte) error {
		if len(k) != 26 || len(v) != 16 {
			return damaged("ended session", k, errDamaged)
		}
		p, id := k[9], rollcall.SessionID(k[10:])
		return errors.Join(b.Delete(k, nil), b.Delete(endedKey(p, id), nil), b.Delete(endedTokenKey(p, tokenKey(v)), nil))
	})
}

func (e *Engine) trimRetries(line int64) trimmer {
	return e.inSteps(tabRetryDue, line, func(b *pebble.Batch, k, _ []byte) error {
		if len(k) != 41 {
			return damaged("retried login", k, errDamaged)
		}
		due := int64(binary.BigEndian.Uint64(k[1:]))
		key := retryKey([32]byte(k[9:]))
		v, ok, err := e.store.get(key)
		if err != nil {
			return err
		}
		if r := (reader{b: v}); ok && r.int() == due { // not taken anew since
			err = b.Delete(key, nil)
		}
		return errors.Join(err, b.Delete(k, nil))
	})
}

// trimmer removes the oldest events of a family: those past the number that is
// kept, or older than oldest.
func (l *eventLog) trimmer(family int, oldest int64) trimmer {
	return func(ctx context.Context, b *pebble.Batch) (more bool, err error) {
		table := familyTables[family]
		l.mu.Lock()
		first, over, done := l.trimmed[family]+1, l.count[family]-l.keep, l.done
		l.mu.Unlock()
		cut, dropped, steps := first, 0, 0 // cut: the first event that stays
		err = l.store.scanRange(ctx, newKey(table, 9).u64(first), newKey(table, 9).u64(done+1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			last := events[len(events)-1]
			more = steps == trimStep
			if (dropped+len(events) > over && last.At.UnixMilli() >= oldest) || more {
				return errStop
			}
			cut, dropped, steps = last.seq+1, dropped+len(events), steps+1
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			return false, err
		}
		if dropped == 0 {
			return false, nil
		}
		return more, l.cut(b, family, cut, dropped)
	}
}

// cut removes the events of a family before one.
func (l *eventLog) cut(b *pebble.Batch, family int, cut uint64, dropped int) error {
	table := familyTables[family]
	l.mu.Lock()
	first := l.trimmed[family] + 1
	l.trimmed[family], l.count[family] = cut-1, l.count[family]-dropped
	trimmed := l.trimmed
	l.mu.Unlock()
	w := writer{}
	w.uint(trimmed[sessionFamily])
	w.uint(trimmed[presenceFamily])
	return errors.Join(
		b.DeleteRange(newKey(table, 9).u64(first), newKey(table, 9).u64(cut), nil),
		b.Set(metaKey(metaTrimmed), w.b, nil))
}

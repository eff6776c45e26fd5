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

// trimmer puts the removal of some old records into a batch, and reports whether there
// may be more.
type trimmer func(ctx context.Context, b *pebble.Batch) (more bool, err error)

// trim removes what has been kept long enough: bans that have ended, events, ended
// sessions, answers to retry keys. It goes on until nothing is left or its time is over,
// so that as much can go in a second as comes.
func (e *Engine) trim(ctx context.Context, now int64) error {
	t := e.timeSlice(trimTime)
	for more := true; more && !t.over() && ctx.Err() == nil; {
		var err error
		if more, err = e.trimBans(now); err != nil {
			return err
		}
	}

	// The others take turns, a step each, until each has nothing left.
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
	e.flushing.Lock() // an erasure reads events and writes them back: none may be trimmed between
	defer e.flushing.Unlock()
	b := e.store.newBatch()
	more, err = some(ctx, b)
	if err == nil && !b.Empty() {
		err = e.store.queue(b)
	}
	return more, errors.Join(err, b.Close())
}

// inSteps makes a trimmer that calls remove for each due record of a table. The keys of
// the table begin with the instant. A step goes on where the last one stopped.
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

// trimmer makes a trimmer of the oldest events of a family: those that exceed the number
// kept, and those older than oldest. Events that are not durable stay.
func (l *eventLog) trimmer(family int, oldest int64) trimmer {
	return func(ctx context.Context, b *pebble.Batch) (more bool, err error) {
		table := familyTables[family]
		l.mu.Lock()
		first, over, done := l.trimmedTo[family]+1, l.keptCounts[family]-l.keep, l.durableTo
		l.mu.Unlock()
		cut, dropped, steps := first, 0, 0 // cut: the first event that stays
		err = l.store.scanRange(ctx, newKey(table, 9).u64(first), newKey(table, 9).u64(done+1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				return err
			}
			last := events[len(events)-1]
			more = steps >= trimStep
			if (dropped+len(events) > over && last.At.UnixMilli() >= oldest) || more {
				return errStop
			}
			cut, dropped, steps = last.seq+1, dropped+len(events), steps+1+len(events)/64 // the index has some for each
			return removeLines(b, family, events)
		})
		if err != nil && !errors.Is(err, errStop) {
			return false, err
		}
		if dropped == 0 {
			return false, nil
		}
		return more, l.trimTo(b, family, cut, dropped)
	}
}

// trimTo removes the events of a family before the event cut.
func (l *eventLog) trimTo(b *pebble.Batch, family int, cut uint64, dropped int) error {
	table := familyTables[family]
	l.mu.Lock()
	first := l.trimmedTo[family] + 1
	l.trimmedTo[family], l.keptCounts[family] = cut-1, l.keptCounts[family]-dropped
	trimmed := l.trimmedTo
	l.mu.Unlock()
	w := writer{}
	w.uint(trimmed[sessionFamily])
	w.uint(trimmed[presenceFamily])
	return errors.Join(
		b.DeleteRange(newKey(table, 9).u64(first), newKey(table, 9).u64(cut), nil),
		b.Set(metaKey(metaTrimmed), w.b, nil))
}

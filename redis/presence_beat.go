package redis

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Beats that callers send at one time go together: in a script about many users each of them
// costs little. Up to beatWorkers batches are sent while the next one gathers. A batch that
// has maxBatch users takes no more.
const (
	beatWorkers = 2
	maxBatch    = 50_000
)

// beats gathers the signs of life that are to be sent.
type beats struct {
	mu      sync.Mutex
	pending *beatBatch
	wake    chan struct{} // has an element if something is pending
}

// beatBatch is the signs of life of one round.
type beatBatch struct {
	now    int64
	byPart [][]string
	n      int
	done   chan struct{}
	err    error
}

// Beat implements [rollcall.Presence].
func (e *Engine) Beat(ctx context.Context, at time.Time, users []string) error {
	if err := e.checkOpen(); err != nil || len(users) == 0 {
		return err
	}
	for from := 0; from < len(users); from += maxBatch {
		if err := e.beat(ctx, at.UnixMilli(), users[from:min(len(users), from+maxBatch)]); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) beat(ctx context.Context, now int64, users []string) error {
	parts := make([]int, len(users))
	for i, u := range users {
		parts[i] = e.partOf(u)
	}
	for {
		batch, joined := e.beats.join(len(e.keyPrefixes), now, users, parts)
		select {
		case <-ctx.Done():
			return unavailable(ctx.Err())
		case <-e.stop:
			return e.checkOpen()
		case <-batch.done:
		}
		if joined {
			return batch.err
		}
	}
}

// join adds users to the batch that gathers; false if it is full.
func (b *beats) join(partitions int, now int64, users []string, parts []int) (*beatBatch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending == nil {
		b.pending = &beatBatch{byPart: make([][]string, partitions), done: make(chan struct{})}
	}
	batch := b.pending
	if batch.n > 0 && batch.n+len(users) > maxBatch {
		return batch, false
	}
	batch.now = max(batch.now, now)
	batch.n += len(users)
	for i, u := range users {
		batch.byPart[parts[i]] = append(batch.byPart[parts[i]], u)
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return batch, true
}

// take takes the batch that gathers; nil if there is none.
func (b *beats) take() *beatBatch {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := b.pending
	b.pending = nil
	return batch
}

// keepBeating sends batches until the engine closes.
func (e *Engine) keepBeating() {
	ctx := e.lifetime
	for {
		select {
		case <-e.stop:
			return
		case <-e.beats.wake:
		}
		if batch := e.beats.take(); batch != nil {
			batch.err = e.sendBeats(ctx, batch)
			close(batch.done)
		}
	}
}

// beatStep is how many users one script takes, as it may have to tell two events of each.
const beatStep = 64

func (e *Engine) sendBeats(ctx context.Context, batch *beatBatch) error {
	var calls []call
	for p, users := range batch.byPart {
		slices.Sort(users)
		for some := range slices.Chunk(slices.Compact(users), beatStep) {
			calls = append(calls, partCall(p, &e.scripts.presenceBeat, some...))
		}
	}
	_, err := e.do(ctx, batch.now, calls...)
	return err
}

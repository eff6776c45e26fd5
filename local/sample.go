package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// Samples of minutes and hours.
//
// A partition counts what happens in it (partition.flow). Each flush moves the counts to
// the sample of the minute under way, and stores that with the stamp of life. The first
// tick in a later minute makes it whole: one batch adds it to the sample of its hour,
// and begins the next one. So what the newest record of a minute says is never in an hour
// yet, and every older one is.
//
// | crash after | what opening finds |
// | --- | --- |
// | an event that was counted | the counts up to the last flush |
// | the batch that ends a minute | the minute, its hour with it, and the next minute |

// sampler keeps the sample of the minute under way.
type sampler struct {
	mu       sync.Mutex // taken behind the lock of a partition
	underWay enginekit.Sample
	unstored bool   // underWay has changed since it was stored
	trimmed  uint32 // the hour in which samples were trimmed last
}

// The kinds of samples, as the second byte of their keys.
const (
	minuteSamples = 0
	hourSamples   = 1
)

func sampleKey(of uint8, minute uint32) key { return newKey(tabSample, 6).u8(of).u32(minute) }

// add counts what happened in a partition.
func (s *sampler) add(f *enginekit.Flow) {
	if *f == (enginekit.Flow{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay.Flow.Add(f)
	*f = enginekit.Flow{}
	s.unstored = true
}

// put puts the sample under way into a batch, if it has changed.
func (s *sampler) put(b *pebble.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unstored || s.underWay.Minutes == 0 {
		return nil
	}
	if err := b.Set(sampleKey(minuteSamples, s.underWay.Minute), s.underWay.Encode(), nil); err != nil {
		return err
	}
	s.unstored = false
	return nil
}

// changed notes that a batch with the sample under way was not applied.
func (s *sampler) changed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unstored = true
}

// due reports whether a minute begins a new sample.
func (s *sampler) due(minute uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return minute > s.underWay.Minute
}

// countVisible counts the numbers of users who are not invisible.
func (p *partition) countVisible(numbers []uint32) uint64 {
	hidden := 0
	if !p.users.invisible.IsEmpty() {
		for _, n := range numbers {
			if p.users.invisible.Contains(n) {
				hidden++
			}
		}
	}
	return uint64(len(numbers) - hidden)
}

// countEvents counts the logins and ends that the public is told of.
func (p *partition) countEvents(events []event) {
	for i := range events {
		e := &events[i]
		switch {
		case e.audience == enginekit.ForAdmin:
		case e.Type == rollcall.SessionStarted:
			p.flow.Logins++
		case e.Type == rollcall.SessionEnded:
			p.flow.AddEnd(e.Cause)
		}
	}
}

// sample makes the sample under way whole and begins the next one, once its minute is
// over. It counts all users and sessions, and so costs what a list does.
func (e *Engine) sample(ctx context.Context, now int64) error {
	minute := enginekit.MinuteOf(now)
	if minute == 0 || !e.samples.due(minute) {
		return nil
	}
	online, sessions := e.countPublic(now)

	// What the sweep of this tick has ended belongs to the sample that ends.
	for _, p := range slices.Backward(e.parts) {
		p.mu.Lock()
		e.samples.add(&p.flow)
		p.mu.Unlock()
	}
	s := &e.samples
	s.mu.Lock()
	defer s.mu.Unlock()
	if minute <= s.underWay.Minute {
		return nil // another tick was faster
	}
	b := e.store.newBatch()
	next := enginekit.NewSample(minute, online, sessions)
	err := e.endMinute(ctx, b, &next)
	if err == nil {
		err = e.store.queue(b)
	}
	if err != nil {
		return errors.Join(err, b.Close())
	}
	s.underWay, s.unstored, s.trimmed = next, false, enginekit.HourOfMinute(minute)
	return b.Close()
}

// countPublic counts the users online and the live sessions that the public is shown.
func (e *Engine) countPublic(now int64) (online, sessions int) {
	e.expireAndRLockAll(now)
	defer e.runlockAll()
	for _, p := range e.parts {
		sessions += p.sessions.order.Live()
		if !p.users.invisible.IsEmpty() {
			sessions -= int(p.sessions.ofUsers(p.users.invisible.ToArray()).GetCardinality())
		}
	}
	return e.count(e.latest(now), e.settings.Window, rollcall.ViewerPublic), sessions
}

// endMinute puts into a batch that the sample under way is whole, and the next one begins.
func (e *Engine) endMinute(ctx context.Context, b *pebble.Batch, next *enginekit.Sample) error {
	s := &e.samples
	if s.underWay.Minutes == 0 { // what came before the first sample is in none
		return b.Set(sampleKey(minuteSamples, next.Minute), next.Encode(), nil)
	}

	// Add it to its hour.
	at := sampleKey(hourSamples, enginekit.HourOfMinute(s.underWay.Minute))
	v, ok, err := e.store.get(at)
	if err != nil {
		return err
	}
	var hour enginekit.Sample
	if ok {
		if hour, err = enginekit.DecodeSample(v); err != nil {
			return damaged("sample", at, err)
		}
	}
	hour.Merge(&s.underWay)
	err = errors.Join(
		b.Set(at, hour.Encode(), nil),
		b.Set(sampleKey(minuteSamples, s.underWay.Minute), s.underWay.Encode(), nil),
		b.Set(sampleKey(minuteSamples, next.Minute), next.Encode(), nil))

	// Once an hour, what is no longer kept goes, key by key: each range that is deleted
	// makes all that is read from then on dearer, until the memtable is flushed.
	if err != nil || enginekit.HourOfMinute(next.Minute) == s.trimmed {
		return err
	}
	for _, step := range [...]struct {
		of   uint8
		kind rollcall.Step
	}{{minuteSamples, rollcall.StepMinute}, {hourSamples, rollcall.StepHour}} {
		kept := enginekit.RangeOf(rollcall.SampleQuery{Step: step.kind, To: time.UnixMilli(1 << 50)}, next.Minute)
		err = errors.Join(err, e.store.scanRange(ctx, sampleKey(step.of, 0), sampleKey(step.of, kept.From), func(k, _ []byte) error {
			return b.Delete(k, nil)
		}))
	}
	return err
}

// Samples implements [rollcall.Samples].
func (e *Engine) Samples(ctx context.Context, q rollcall.SampleQuery) ([]rollcall.Sample, error) {
	if err := e.readable(); err != nil {
		return nil, err
	}
	e.samples.mu.Lock()
	underWay := e.samples.underWay.Minute
	e.samples.mu.Unlock()
	r := enginekit.RangeOf(q, underWay)
	if r.From >= r.To {
		return nil, nil
	}
	of := uint8(minuteSamples)
	if q.Step == rollcall.StepHour {
		of = hourSamples
	}
	var out []rollcall.Sample
	err := e.store.scanRange(ctx, sampleKey(of, r.From), sampleKey(of, r.To), func(k, v []byte) error {
		s, err := enginekit.DecodeSample(v)
		if err != nil {
			return damaged("sample", k, err)
		}
		out = append(out, s.Domain())
		return nil
	})
	return out, err
}

// loadSamples finds the sample under way: that of the newest minute.
func (e *Engine) loadSamples() error {
	db, release, err := e.store.use()
	if err != nil {
		return err
	}
	defer release()
	minutes := newKey(tabSample, 2).u8(minuteSamples)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: minutes, UpperBound: minutes.after()})
	if err != nil {
		return storeError(err)
	}
	if it.Last() {
		v, err := it.ValueAndErr()
		if err == nil {
			e.samples.underWay, err = enginekit.DecodeSample(v)
		}
		if err != nil {
			return errors.Join(damaged("sample", it.Key(), err), it.Close())
		}
	}
	return errors.Join(storeError(it.Error()), storeError(it.Close()))
}

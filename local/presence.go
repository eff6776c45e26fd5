package local

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/recency"
)

// beatScratch is the working memory of a call of Beat, kept for the next call.
type beatScratch struct {
	hashes  []uint64
	bucket  []uint32 // of each partition, where its users begin in order
	ids     []string
	sums    []uint64
	numbers []uint32
	tally   recency.Tally
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Beat implements [rollcall.Presence]. It works in passes over all users: hash, sort by
// partition, and in each partition look up, then write. In a pass the cache misses of
// many users overlap.
func (e *Engine) Beat(_ context.Context, at time.Time, users []string) error {
	now, err := e.enterWrite(at)
	if err != nil {
		return err
	}
	b, _ := e.scratch.Get().(*beatScratch)
	defer e.scratch.Put(b)
	b.sort(users, len(e.parts))
	defer func() { clear(b.ids) }() // the strings are the caller's
	for i, p := range e.parts {
		from, to := b.bucket[i], b.bucket[i+1]
		if from == to {
			continue
		}
		if err := p.beat(now, b, int(from), int(to)); err != nil {
			return err
		}
	}
	return nil
}

// sort hashes the users and sorts them by partition, by counting.
func (b *beatScratch) sort(users []string, parts int) {
	n := len(users)
	b.hashes, b.ids, b.sums = resize(b.hashes, n), resize(b.ids, n), resize(b.sums, n)
	b.numbers, b.bucket = resize(b.numbers, n), resize(b.bucket, parts+2)
	clear(b.bucket)

	// Count the users of each partition two places ahead, so that after the second
	// pass bucket[p] is where partition p begins.
	for i, u := range users {
		h := rollcall.HashUser(u)
		b.hashes[i] = h
		b.bucket[h&uint64(parts-1)+2]++
	}
	for i := 2; i < len(b.bucket); i++ {
		b.bucket[i] += b.bucket[i-1]
	}
	for i, h := range b.hashes {
		place := &b.bucket[h&uint64(parts-1)+1]
		b.ids[*place], b.sums[*place] = users[i], h
		*place++
	}
}

func (p *partition) beat(at int64, b *beatScratch, from, to int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.eng.readable(); err != nil { // Close may have flushed already
		return err
	}
	now := p.advance(at)
	numbers := b.numbers[from:to]
	err := p.dir.InsertAll(b.sums[from:to], b.ids[from:to], numbers, func(_ int, n uint32) {
		p.unstored = append(p.unstored, n)
	})
	if err != nil {
		return errFull(err)
	}
	p.recordBeats(now, numbers, &b.tally, true)
	b.tally.Flush(&p.eng.seconds) // under the lock, so that a count has each user in one second
	return p.flushEarly()
}

// recordBeat is recordBeats for a command other than Beat. Without announce the
// command's transaction has announced the user.
func (p *partition) recordBeat(now int64, numbers []uint32, announce bool) {
	if len(numbers) == 0 {
		return
	}
	t := &p.presence.tally
	p.recordBeats(now, numbers, t, announce)
	t.Flush(&p.eng.seconds)
}

// sighting is a number that may have been offline, and the second it was seen in before.
type sighting struct{ n, prev uint32 }

// recordBeats records a sign of life of some numbers, and announces those that were
// offline.
func (p *partition) recordBeats(now int64, numbers []uint32, t *recency.Tally, announce bool) {
	pr := &p.presence
	back := pr.sightings[:0]
	p.flow.Beats += p.countVisible(numbers)

	// Only users last seen before the line, or hidden, can have been offline.
	line := max(onlineSince(p.eng.outages.effectiveNow(now), p.eng.offlineAfter), p.announcements.place.Sec)
	pr.seen.Hear(secOf(now), numbers, t, line, func(n, prev uint32, hidden bool) {
		if prev == 0 && pr.forgotNotes.Contains(n) {
			pr.heardAgain = append(pr.heardAgain, n)
		}
		if hidden {
			pr.gone.Remove(n)
			pr.unrecorded.Add(n)
			pr.backFromGone = append(pr.backFromGone, n)
		}
		back = append(back, sighting{n, prev})
	})
	pr.sightings = back
	if !announce || !p.eng.settings.PresenceEvents {
		return
	}
	for _, h := range back {
		p.announceOnline(now, h.n, h.prev)
	}
}

// unforget puts into a batch that a user's last-seen time counts again. It goes with a
// later sign of life, which may be of the same second as the one that was forgotten.
func (p *partition) unforget(b *pebble.Batch, n uint32) error {
	if !p.presence.forgotNotes.Contains(n) {
		return nil
	}
	return b.Delete(forgetKey(p.index, n), nil)
}

// flushEarly flushes the partition if too many events wait for the next flush.
func (p *partition) flushEarly() error {
	if len(p.announcements.waiting) < maxWaiting {
		return nil
	}
	_, _, err := p.flushLocked()
	return err
}

// setGone makes users gone in memory: offline until their next sign of life.
func (p *partition) setGone(gone []goneUser) {
	if len(gone) == 0 {
		return
	}
	var t recency.Tally
	for _, d := range gone {
		p.presence.seen.Hide(d.n, &t)
		p.presence.gone.Add(d.n)
		if d.leave != 0 {
			p.announcements.logoutGraces.set(d.n, d.leave)
		}
	}
	t.Flush(&p.eng.seconds)
}

// onlineSince returns the first second that counts as online at now for a window.
func onlineSince(now int64, window time.Duration) uint32 {
	return uint32(max(1, now/1000-int64(window/time.Second)))
}

// retainedSince returns the first second that lies within the retention of
// last-seen times.
func (e *Engine) retainedSince(now int64) uint32 { return onlineSince(now, e.settings.Retention) }

// online reports whether the user is online, invisible users included.
func (p *partition) online(n uint32, now int64, window time.Duration) bool {
	last := p.presence.seen.Last(n)
	return last != 0 && last >= onlineSince(p.eng.outages.effectiveNow(now), window) && !p.presence.seen.Hidden(n)
}

// lastSeen returns what a viewer is shown of a user: whether they are online, and the
// second they were last seen in, 0 if that is not known or too long ago.
func (p *partition) lastSeen(n uint32, now int64, window time.Duration, v rollcall.Viewer) (online bool, last uint32) {
	last = p.presence.seen.Last(n)
	if v == rollcall.ViewerPublic && p.users.invisible.Contains(n) {
		last = p.users.get(n).frozen
	} else {
		online = p.online(n, now, window)
	}
	if last < p.eng.retainedSince(now) {
		return false, 0
	}
	return online, last
}

// Count implements [rollcall.Presence].
func (e *Engine) Count(_ context.Context, at time.Time, window time.Duration, v rollcall.Viewer) (int, error) {
	now, err := e.enter(at)
	if err != nil {
		return 0, err
	}
	e.rlockAll()
	defer e.runlockAll()
	return e.count(e.latest(now), window, v), nil
}

// count counts the users online, with all partitions locked. It sums seconds, not
// users, and takes off the invisible ones for the public.
func (e *Engine) count(now int64, window time.Duration, v rollcall.Viewer) int {
	n := int(e.seconds.Sum(onlineSince(e.outages.effectiveNow(now), window), secOf(now)))
	if v == rollcall.ViewerAdmin {
		return n
	}
	for _, p := range e.parts {
		for it := p.users.invisible.Iterator(); it.HasNext(); {
			if p.online(it.Next(), now, window) {
				n--
			}
		}
	}
	return n
}

// latest returns the later of now and every partition's time.
func (e *Engine) latest(now int64) int64 {
	for _, p := range e.parts {
		now = max(now, p.clock)
	}
	return now
}

// CountKnown implements [rollcall.Presence].
func (e *Engine) CountKnown(_ context.Context, at time.Time, v rollcall.Viewer) (int, error) {
	now, err := e.enter(at)
	if err != nil {
		return 0, err
	}
	e.rlockAll()
	defer e.runlockAll()
	return e.knownCount(e.latest(now), v), nil
}

// knownCount counts the users with a last-seen time, with all partitions locked. The
// seconds do not count those who are gone, so they are counted one by one.
func (e *Engine) knownCount(now int64, v rollcall.Viewer) int {
	line := e.retainedSince(now)
	n := int(e.seconds.Sum(line, 1<<32-1))
	for _, p := range e.parts {
		for it := p.presence.gone.Iterator(); it.HasNext(); {
			if p.presence.seen.Last(it.Next()) >= line {
				n++
			}
		}
		if v == rollcall.ViewerPublic {
			n -= p.invisibleSeen(line)
		}
	}
	return n
}

// invisibleSeen counts the invisible users last seen at a second or later.
func (p *partition) invisibleSeen(line uint32) int {
	n := 0
	for it := p.users.invisible.Iterator(); it.HasNext(); {
		if last := p.presence.seen.Last(it.Next()); last != 0 && last >= line {
			n++
		}
	}
	return n
}

// Status implements [rollcall.Presence].
func (e *Engine) Status(_ context.Context, at time.Time, window time.Duration, users []string, v rollcall.Viewer) ([]rollcall.Status, error) {
	at64, err := e.enter(at)
	if err != nil {
		return nil, err
	}
	e.rlockAll()
	defer e.runlockAll()
	now := e.latest(at64)
	out := make([]rollcall.Status, len(users))
	for i, u := range users {
		out[i].User = u
		p := e.partitionOf(u)
		n, ok := p.find(u)
		if !ok {
			continue
		}
		online, last := p.lastSeen(n, now, window, v)
		out[i].Online, out[i].LastSeen = online, enginekit.TimeOfSecond(last)
		if v == rollcall.ViewerAdmin || !p.users.invisible.Contains(n) {
			out[i].Sessions = p.sessions.count(n, now)
		}
	}
	return out, nil
}

// Clear implements [rollcall.Presence].
func (e *Engine) Clear(ctx context.Context, at, before time.Time) (int, error) {
	now, err := e.enterWrite(at)
	if err != nil {
		return 0, err
	}
	line := secOf(before.UnixMilli()) // in whole seconds, as windows are
	n, all, err := e.newClearRun(line).run(now, func() bool { return ctx.Err() != nil })
	if err == nil && !all {
		err = enginekit.CutShort(ctx.Err())
	}
	return n, err
}

// secOf returns the whole second of an instant in milliseconds, as presence
// counts it; an instant before 1970 is 0, which means never.
func secOf(ms int64) uint32 { return uint32(max(0, ms/1000)) }

// presence is the last-seen times of a partition.
type presence struct {
	seen        recency.Table
	gone        *roaring.Bitmap // numbers offline until they are heard again
	forgotNotes *roaring.Bitmap // numbers with a note in the store that their last-seen time is void
	// unrecorded are numbers that were gone and are not any more, without a login
	// since: the record of it may still be in the store.
	unrecorded *roaring.Bitmap
	sightings  []sighting    // working memory of recordBeats
	tally      recency.Tally // working memory of recordBeat
	seenFlush
}

// seenFlush is what flushes know of last-seen times in the store. A flush that fails puts
// it back as it was.
type seenFlush struct {
	heardAgain      []uint32        // with a note, and heard since the last flush
	backFromGone    []uint32        // gone, and heard since the last flush
	removedNotes    []uint32        // whose note the flush at hand removes
	flushedTo       uint32          // all seconds before this one are in the store
	deltaEntries    int             // entries in the beat records
	roll            roll            // the rolling snapshot of last-seen times
	forgottenInRoll *roaring.Bitmap // while there is one: numbers forgotten since it began
}

// noteForgotten notes that the store has a note that a last-seen time is void.
func (pr *presence) noteForgotten(n uint32) {
	pr.forgotNotes.Add(n)
	if pr.roll.stage != rollNone {
		pr.forgottenInRoll.Add(n)
	}
}

// flushedSeen is called once a batch of flushBeats has been applied.
func (pr *presence) flushedSeen() {
	for _, n := range pr.removedNotes {
		pr.forgotNotes.Remove(n)
	}
	pr.removedNotes = nil
}

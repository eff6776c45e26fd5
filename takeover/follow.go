package takeover

import (
	"context"
	"fmt"
	"time"
)

const (
	// overlap is how much of what has been read is read again, as servers write with clocks
	// that differ.
	overlap = 30 * time.Second
	// sweepEvery is how many looks there are between two walks over what may have left the old
	// system, over friends, and over bitmaps.
	sweepEvery = 12
)

// Follow looks again and again at what has changed in the old system, until ctx ends. Run
// comes before it. The last look is the caller's: see Look.
func (m *Importer) Follow(ctx context.Context, each func(Summary)) error {
	tick := time.NewTicker(m.opts.Every)
	defer tick.Stop()
	var bears patience
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		thorough := i%sweepEvery == 0
		// To look for bitmaps is to walk over the names of all keys.
		if m.opts.Layout == LoginBitmaps && !thorough {
			continue
		}
		err := m.Look(ctx, thorough)
		if over(ctx, err) && err != nil {
			return nil // it was told to end
		}
		if err := bears.with(err); err != nil {
			return err
		}
		if each != nil && err == nil {
			each(m.summary)
		}
	}
}

// mostFailures bounds the looks in a row that may fail.
const mostFailures = 20

// patience is with looks that fail: a hand-built system may block its Redis for seconds, and
// one that restarts comes back. What a look left out, the next one finds.
type patience struct{ failed int }

// with returns err once too many looks in a row have failed.
func (p *patience) with(err error) error {
	if err == nil {
		p.failed = 0
		return nil
	}
	if p.failed++; p.failed >= mostFailures {
		return fmt.Errorf("%d looks in a row failed: %w", p.failed, err)
	}
	return nil
}

// Look enters what has changed since the last look: of sorted sets what has a later score,
// less an overlap; the bitmaps of today and yesterday; the sets of the last two minutes. A
// thorough look also ends sessions that have left the old list, and reads the lists of
// friends.
func (m *Importer) Look(ctx context.Context, thorough bool) error {
	if m.state == nil {
		var err error
		if m.state, err = openState("", m.opts.Layout, m.names.key, ""); err != nil {
			return err
		}
	}
	var err error
	switch m.opts.Layout {
	case LoginBitmaps:
		months := map[string]bool{m.opts.Now().Format("2006-01"): true, m.opts.Now().AddDate(0, 0, -1).Format("2006-01"): true}
		for month := range months {
			if err == nil {
				err = m.readBitmaps(ctx, map[string]string{"month": month})
			}
		}
	case OnlineZset, LastSeenZset, HeartbeatZset, MinuteSets:
		err = m.lookAtNew(ctx)
		if err == nil && thorough && m.opts.Layout == OnlineZset {
			err = m.endGone(ctx)
		}
	}
	if err == nil && thorough && m.names.friends != nil {
		m.state.At = position{}
		err = m.readFriends(ctx)
	}
	return err
}

// lookAtNew enters who logged in or was seen since the last look.
func (m *Importer) lookAtNew(ctx context.Context) error {
	m.looked = m.opts.Now()
	switch m.opts.Layout {
	case OnlineZset:
		return m.lookAtNewer(ctx, m.enterOnline)
	case LastSeenZset, HeartbeatZset:
		return m.lookAtNewer(ctx, m.enterSeen)
	case MinuteSets:
		return m.readMinutes(ctx, lookedMinutes)
	case LoginBitmaps: // days may be entered at any time
	}
	return nil
}

// lookMeanwhile is how often there is a look while something is read that may take long: the
// later time of a user of whom something is known here can be entered for a minute only.
const lookMeanwhile = fresh / 4

// meanwhile looks while something is read that may take long, if it is time.
func (m *Importer) meanwhile(ctx context.Context) error {
	if m.opts.Now().Sub(m.looked) < lookMeanwhile {
		return nil
	}
	return m.lookAtNew(ctx)
}

// lookAtNewer reads the members with scores from the last high-water mark on, in either unit.
func (m *Importer) lookAtNewer(ctx context.Context, enter func(context.Context, []member) error) error {
	from, latest := m.high-float64(overlap.Milliseconds()), m.high
	visit := func(some []member) error {
		m.read(len(some))
		for _, z := range some {
			if at, ok := m.opts.Unit.instant(z.score); ok && !at.After(m.looked) {
				latest = max(latest, float64(at.UnixMilli()))
			}
		}
		return enter(ctx, some)
	}
	var err error
	if m.opts.Unit != UnitMilliseconds {
		err = m.src.newer(ctx, m.names.key, max(0, from/1000), firstMilliseconds-1, visit)
	}
	if m.opts.Unit != UnitSeconds && err == nil {
		err = m.src.newer(ctx, m.names.key, max(firstMilliseconds, from), 1e15, visit)
	}
	if err == nil {
		m.high = latest
	}
	return err
}

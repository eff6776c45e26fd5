package local

import (
	"encoding/binary"

	"github.com/rollcall/rollcall/internal/recency"
)

// loadBeats finds out on opening when each number was last seen: the latest second of all
// records that speak of it.
func (p *partition) loadBeats() error {
	// Numbers without an id are passed over. All ids have come from the store.
	latest := make([]uint32, p.dir.Limit())
	note := func(n, sec uint32) {
		if n < uint32(len(latest)) && p.onDisk.has(n) {
			latest[n] = max(latest[n], sec)
		}
	}
	// The blocks of the last snapshot, then what was flushed since.
	err := p.scan(tabSeen, func(k, v []byte) error {
		if len(v) != 4*seenLen {
			return damaged("last-seen times", k, errDamaged)
		}
		for i := range uint32(seenLen) {
			note(number24(k)<<seenShift|i, binary.BigEndian.Uint32(v[4*i:]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.scan(tabBeat, func(k, v []byte) error {
		if len(k) != 6 {
			return damaged("beats", k, errDamaged)
		}
		sec, n := binary.BigEndian.Uint32(k[2:]), uint32(0)
		for r := (reader{b: v}); len(r.b) > 0; p.presence.deltaEntries++ {
			n += uint32(r.uint())
			if r.err != nil {
				return damaged("beats", k, r.err)
			}
			note(n, sec)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.applyLatestBeats(latest)
}

// applyLatestBeats completes the last-seen times with what other records say, and rebuilds
// the table and the counts from them.
func (p *partition) applyLatestBeats(latest []uint32) error {
	// All of these have been flushed. What follows may be later, and has not been.
	for _, sec := range latest {
		p.presence.flushedTo = max(p.presence.flushedTo, sec)
	}
	for _, step := range [...]func(latest []uint32) error{p.addSignsOfLife, p.dropForgotten, p.loadGone} {
		if err := step(latest); err != nil {
			return err
		}
	}

	newest := uint32(0)
	for n, sec := range latest {
		if sec != 0 {
			p.presence.seen.Put(uint32(n), sec, p.presence.gone.Contains(uint32(n)))
			newest = max(newest, sec)
		}
	}
	var t recency.Tally
	p.presence.seen.Rebuild(&t)
	t.Flush(&p.eng.seconds)
	p.clock = max(p.clock, int64(newest)*1000)
	return nil
}

// addSignsOfLife takes in signs of life that a command stored ahead of the flush, and those of
// sessions.
func (p *partition) addSignsOfLife(latest []uint32) error {
	err := p.scan(tabHeard, func(k, v []byte) error {
		n := number24(k)
		if len(v) == 4 && n < uint32(len(latest)) && p.dir.Has(n) {
			latest[n] = max(latest[n], binary.BigEndian.Uint32(v))
		}

		// The next flush removes the record, also if the number is nobody's.
		p.announcements.heardRecords = append(p.announcements.heardRecords, n)
		return nil
	})
	s := &p.sessions
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		slot := s.order.Slot(pos)
		n := s.user.Get(slot)
		latest[n] = max(latest[n], secOf(s.seen.Get(slot)))
	}
	return err
}

// dropForgotten takes out last-seen times that were forgotten, unless the user was heard later.
func (p *partition) dropForgotten(latest []uint32) error {
	return p.scan(tabForgot, func(k, v []byte) error {
		p.presence.forgotNotes.Add(number24(k))
		if n := number24(k); len(v) == 4 && n < uint32(len(latest)) && latest[n] <= binary.BigEndian.Uint32(v) {
			latest[n] = 0
		}
		return nil
	})
}

// loadGone reads who is gone. If the last-seen time was lost in a crash, the next flush removes
// the record.
func (p *partition) loadGone(latest []uint32) error {
	return p.scan(tabGone, func(k, _ []byte) error {
		if n := number24(k); n < uint32(len(latest)) && latest[n] != 0 {
			p.presence.gone.Add(n)
		} else {
			p.presence.backFromGone = append(p.presence.backFromGone, n)
			p.presence.unrecorded.Add(n) // a login before that flush removes it too
		}
		return nil
	})
}

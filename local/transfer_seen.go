package local

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/recency"
)

// importedSeen is a last-seen time that an import enters.
type importedSeen = recency.Entry

// worthSeen is the number of last-seen times from which writing the whole block is cheaper.
const worthSeen = 64

// putSeen puts last-seen times into a batch: many of one block as the whole block, others with
// all that were last seen in the same second. A rolling snapshot begins anew: it would delete
// some of these records.
func (p *partition) putSeen(b *pebble.Batch, some []importedSeen) error {
	if len(some) == 0 {
		return nil
	}
	pr := &p.presence
	pr.roll, pr.forgottenInRoll = roll{}, nil

	// The store may speak of the last users of these numbers, who were forgotten.
	if slices.ContainsFunc(some, func(x importedSeen) bool { return pr.forgotNotes.Contains(x.N) }) {
		if err := p.replaceSeen(b, some); err != nil {
			return err
		}
	}
	slices.SortFunc(some, func(x, y importedSeen) int { return cmp.Compare(x.N, y.N) })
	for _, x := range some {
		if x.Hidden {
			if err := b.Set(goneKey(p.index, x.N), nil, nil); err != nil {
				return err
			}
		}
	}

	// Block by block, as the numbers are sorted.
	var rest []importedSeen
	for left := some; len(left) > 0; {
		n := 1
		for n < len(left) && left[n].N>>seenShift == left[0].N>>seenShift {
			n++
		}
		if n < worthSeen {
			rest = append(rest, left[:n]...)
		} else if err := p.putSeenBlock(b, left[0].N>>seenShift, left[:n]); err != nil {
			return err
		}
		left = left[n:]
	}
	return p.putSeenSeconds(b, rest)
}

// replaceSeen writes all last-seen times of the partition anew, and removes the notes that the last
// users of these numbers were forgotten. A note would void the new times too, and without it
// old records would count.
func (p *partition) replaceSeen(b *pebble.Batch, some []importedSeen) error {
	pr := &p.presence
	for _, table := range [...]byte{tabBeat, tabSeen} {
		prefix := newKey(table, 2).u8(p.index)
		if err := b.DeleteRange(prefix, prefix.after(), nil); err != nil {
			return err
		}
	}
	for block := uint32(0); block<<seenShift < p.dir.Limit(); block++ {
		if err := p.putSeenBlock(b, block, nil); err != nil {
			return err
		}
	}
	pr.deltaEntries = 0
	for _, x := range some {
		if !pr.forgotNotes.Contains(x.N) {
			continue
		}
		if err := b.Delete(forgetKey(p.index, x.N), nil); err != nil {
			return err
		}
		pr.removedNotes = append(pr.removedNotes, x.N)
	}
	return nil
}

// putUnseen notes that users have no last-seen time although they have sessions: it was forgotten
// where they come from.
func (p *partition) putUnseen(b *pebble.Batch, numbers []uint32) error {
	latest := binary.BigEndian.AppendUint32(nil, 1<<32-1)
	for _, n := range numbers {
		if err := b.Set(forgetKey(p.index, n), latest, nil); err != nil {
			return err
		}
	}
	return nil
}

// putSeenSeconds writes the records of seconds, with all who were last seen in them. A record that
// is there already is replaced.
func (p *partition) putSeenSeconds(b *pebble.Batch, some []importedSeen) error {
	slices.SortStableFunc(some, func(x, y importedSeen) int { return cmp.Compare(x.Sec, y.Sec) })
	var numbers []uint32
	for len(some) > 0 {
		n := 1
		for n < len(some) && some[n].Sec == some[0].Sec {
			n++
		}
		numbers = p.presence.seen.AllOf(numbers[:0], some[0].Sec)
		for _, x := range some[:n] {
			numbers = append(numbers, x.N)
		}
		slices.Sort(numbers)
		if err := b.Set(beatKey(p.index, some[0].Sec), beatRecord(numbers), nil); err != nil {
			return err
		}
		p.presence.deltaEntries += len(numbers)
		some = some[n:]
	}
	return nil
}

// beatRecord is the record of the numbers, ascending, last seen in a second.
func beatRecord(numbers []uint32) []byte {
	w := writer{make([]byte, 0, 2*len(numbers))}
	last := uint32(0)
	for _, n := range numbers {
		w.uint(uint64(n - last))
		last = n
	}
	return w.b
}

// enterSeen enters last-seen times in memory. It announces nobody.
func (p *partition) enterSeen(some []importedSeen) {
	var t recency.Tally
	p.presence.seen.Enter(some, &t)
	t.Flush(&p.eng.seconds)
	line := max(p.announcements.place.Sec, onlineSince(p.eng.outages.effectiveNow(p.clock), p.eng.offlineAfter))
	for _, x := range some {
		if x.Hidden {
			p.presence.gone.Add(x.N)
		} else if x.Sec >= line { // to be announced offline when they fall silent
			p.announcements.online.add(x.N)
		}
	}
}

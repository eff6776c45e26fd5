package local

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/recency"
)

// incomingSeen is a last-seen time that an import enters.
type incomingSeen = recency.Entry

// worthSeen is how many last-seen times of a block pay for writing all of it.
const worthSeen = 64

// putSeen puts last-seen times into a batch: many of one block as the block,
// others with all that were last seen in the same second. A roll begins anew, as
// what it would delete may be among these.
func (p *partition) putSeen(b *pebble.Batch, some []incomingSeen) error {
	if len(some) == 0 {
		return nil
	}
	pr := &p.presence
	pr.roll, pr.young = roll{}, nil
	if slices.ContainsFunc(some, func(x incomingSeen) bool { return pr.forgot.Contains(x.N) }) {
		if err := p.replaceSeen(b, some); err != nil {
			return err
		}
	}
	slices.SortFunc(some, func(x, y incomingSeen) int { return cmp.Compare(x.N, y.N) })
	for _, x := range some {
		if x.Hidden {
			if err := b.Set(goneKey(p.index, x.N), nil, nil); err != nil {
				return err
			}
		}
	}
	var rest []incomingSeen
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

// replaceSeen writes all last-seen times anew, in one batch, and takes away the
// notes that the last users of some numbers were forgotten: what is in the store of
// those must not count.
func (p *partition) replaceSeen(b *pebble.Batch, some []incomingSeen) error {
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
	pr.written = 0
	for _, x := range some {
		if !pr.forgot.Contains(x.N) {
			continue
		}
		if err := b.Delete(forgetKey(p.index, x.N), nil); err != nil {
			return err
		}
		pr.dropped = append(pr.dropped, x.N)
	}
	return nil
}

// putUnseen has it that users have no last-seen time although they have sessions:
// they were forgotten where these come from.
func (p *partition) putUnseen(b *pebble.Batch, numbers []uint32) error {
	latest := binary.BigEndian.AppendUint32(nil, 1<<32-1)
	for _, n := range numbers {
		if err := b.Set(forgetKey(p.index, n), latest, nil); err != nil {
			return err
		}
	}
	return nil
}

// putSeenSeconds writes whole records of seconds: one that is there already is
// replaced.
func (p *partition) putSeenSeconds(b *pebble.Batch, some []incomingSeen) error {
	slices.SortStableFunc(some, func(x, y incomingSeen) int { return cmp.Compare(x.Sec, y.Sec) })
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
		p.presence.written += len(numbers)
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

// enterSeen enters last-seen times in memory. Nobody is announced.
func (p *partition) enterSeen(some []incomingSeen) {
	var t recency.Tally
	p.presence.seen.Enter(some, &t)
	t.Flush(&p.eng.seconds)
	line := max(p.told.place.Sec, onlineSince(p.eng.outages.effectiveNow(p.clock), p.eng.announced))
	for _, x := range some {
		if x.Hidden {
			p.presence.gone.Add(x.N)
		} else if x.Sec >= line { // to be announced offline when they fall silent
			p.told.online.add(x.N)
		}
	}
}

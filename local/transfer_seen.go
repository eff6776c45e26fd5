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
// others with all that were last seen in the same second.
func (p *partition) putSeen(b *pebble.Batch, some []incomingSeen) error {
	pr := &p.presence
	if slices.ContainsFunc(some, func(x incomingSeen) bool { return pr.forgot.Contains(x.N) }) {
		// What is in the store of the number's last user must not count.
		if err := p.snapshotBeats(b); err != nil {
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
		} else if err := p.putSeenBlock(b, left[:n]); err != nil {
			return err
		}
		left = left[n:]
	}
	return p.putSeenSeconds(b, rest)
}

func (p *partition) putSeenBlock(b *pebble.Batch, some []incomingSeen) error {
	block := some[0].N >> seenShift
	v := make([]byte, 4*seenLen)
	for i := range uint32(seenLen) {
		binary.BigEndian.PutUint32(v[4*i:], p.presence.seen.Last(block<<seenShift|i))
	}
	for _, x := range some {
		binary.BigEndian.PutUint32(v[4*(x.N&(seenLen-1)):], x.Sec)
	}
	return b.Set(seenKey(p.index, block), v, nil)
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

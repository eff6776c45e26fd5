package local

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall/internal/dayset"
)

// mender carries out the repairs of a checker, in batches of a bounded size, and remembers what was lost.
type mender struct {
	t     *tables
	b     *pebble.Batch
	round int
	lost  lostRanges // what could not be read
	now   int64      // ms

	dropped map[byte]*droppedRecords
	rebuilt int
	kinds   []uint8 // that lost their names
	undated int     // friendships that lost their date
	guessed int     // first days that may have been earlier
	err     error
}

// droppedRecords are the records of a table that could not stand.
type droppedRecords struct {
	n    int
	why  []string // of the first of them
	keys [][]byte
}

// namedDrops bounds the dropped records of a table that are named by key.
const namedDrops = 10

// mendBytes is the size of a batch.
const mendBytes = 1 << 20

func (m *mender) flush() error {
	if m.b.Empty() {
		return nil
	}
	err := m.t.db.Apply(m.b, pebble.NoSync)
	m.b = new(pebble.Batch)
	return errors.Join(err, m.t.well())
}

// do adds to the batch, which goes into the store when it is large enough.
func (m *mender) do(fix func(b *pebble.Batch) error) {
	err := fix(m.b)
	if err == nil && m.b.Len() > mendBytes {
		err = m.flush()
	}
	m.err = errors.Join(m.err, err)
}

// drop removes a record that cannot stand.
func (m *mender) drop(k []byte, why string) {
	k = slices.Clone(k)
	d := m.of(k[0])
	d.n++
	if len(d.why) < namedDrops {
		d.why, d.keys = append(d.why, why), append(d.keys, k)
	}
	m.do(func(b *pebble.Batch) error { return b.Delete(k, nil) })
}

func (m *mender) of(table byte) *droppedRecords {
	if m.dropped[table] == nil {
		m.dropped[table] = &droppedRecords{}
	}
	return m.dropped[table]
}

// dropNumbers removes numbers from a set.
func (m *mender) dropNumbers(k []byte, numbers []uint32) {
	k = slices.Clone(k)
	m.of(k[0]).n += len(numbers)
	var low []uint16
	for _, n := range numbers {
		low = append(low, uint16(n))
	}
	m.do(func(b *pebble.Batch) error { return b.Merge(k, dayset.AppendRemove(nil, low), nil) })
}

// rebuild carries out a fix that loses nothing.
func (m *mender) rebuild(fix func(b *pebble.Batch) error) {
	m.rebuilt++
	m.do(fix)
}

// nameKind gives a kind without a name one that it can be known by.
func (m *mender) nameKind(kind uint8) {
	m.kinds = append(m.kinds, kind)
	m.do(setting(kindKey(kind), []byte(lostKind(kind))))
}

func lostKind(kind uint8) string { return fmt.Sprintf("lost-%d", kind) }

// newEpoch makes every reader of events begin anew.
func newEpoch(b *pebble.Batch) error {
	var epoch [4]byte
	_, _ = rand.Read(epoch[:]) // never fails
	return b.Set(metaKey(metaEpoch), epoch[:], nil)
}

func stampRecord(ms int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(ms)) }

// mendRounds bounds the rounds of mendAll.
const mendRounds = 8

// mendAll checks and mends the store in rounds, until a round finds nothing wrong. What is mended can
// make another record wrong.
func (r *repair) mendAll() error {
	m := r.mend
	for m.round = 1; m.round <= mendRounds; m.round++ {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		c := newChecker(r.target, Report{})
		c.mend = m
		c.run()
		if m.err != nil {
			return m.err
		}
		if c.report.Faulty == 0 {
			r.out.Kept = c.report
			return nil
		}
	}
	return errors.New("the records go on contradicting each other")
}

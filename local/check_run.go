package local

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
)

// checker reads all tables and compares records that must agree. With a mender it also repairs: it
// removes a record that cannot stand, and makes anew what follows from others.
type checker struct {
	st      *store
	parts   int
	report  Report
	damaged int   // faults of files that were found before
	latest  int64 // the latest time in any record, ms
	ids     map[ref]string
	byID    map[string]ref
	high    []uint32 // by partition: one past the highest number in any record
	slots   map[ref]rollcall.SessionID
	kinds   map[uint8]bool
	lost    map[dayID]bool // days with lost marks
	mend    *mender        // nil to change nothing
}

func newChecker(st *store, report Report) *checker {
	return &checker{
		st: st, parts: partitions, report: report, damaged: report.Faulty, kinds: make(map[uint8]bool), high: make([]uint32, 256),
		ids: make(map[ref]string), byID: make(map[string]ref), slots: make(map[ref]rollcall.SessionID),
		lost: make(map[dayID]bool),
	}
}

// fault names a record that cannot stand.
func (c *checker) fault(k []byte, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.report.fault("key %x: %s", k, text)
	if c.mend != nil {
		c.mend.drop(k, text)
	}
}

// derived names a fault that can be repaired without losing anything.
func (c *checker) derived(k []byte, fix func(b *pebble.Batch) error, format string, args ...any) {
	c.report.fault("key %x: %s", k, fmt.Sprintf(format, args...))
	if c.mend != nil {
		c.mend.rebuild(fix)
	}
}

// setting returns a fix that writes one record.
func setting(k key, v []byte) func(b *pebble.Batch) error {
	return func(b *pebble.Batch) error { return b.Set(k, v, nil) }
}

// removing returns a fix that removes one record.
func removing(k []byte) func(b *pebble.Batch) error {
	k = slices.Clone(k)
	return func(b *pebble.Batch) error { return b.Delete(k, nil) }
}

// table calls check with the records of a table. A key of another form than the table's is a fault.
func (c *checker) table(table byte, check func(k, v []byte)) {
	info, ok := infoOf(table)
	if !ok {
		c.report.fault("table %q is in no list of tables", table)
		return
	}
	err := c.st.scan(uninterrupted(), newKey(table, 1), func(k, v []byte) error {
		c.report.Records++
		switch {
		case info.keyLen > 0 && len(k) != info.keyLen:
			c.fault(k, "a key of table %q has %d bytes, not %d", table, len(k), info.keyLen)
		case info.part && int(k[1]) >= c.parts:
			c.fault(k, "a key of table %q is of partition %d, and there are %d", table, k[1], c.parts)
		default:
			if info.number {
				c.sawNumber(k[1], number24(k))
			}
			check(k, v)
		}
		return nil
	})
	c.scanFailed(fmt.Sprintf("table %q, %s:", table, info.name), err)
}

// scanFailed notes that a scan did not come to its end. That is a fault of its own, unless a damaged
// file was found before.
func (c *checker) scanFailed(what string, err error) {
	switch {
	case err == nil:
	case c.damaged > 0:
		c.report.Cut = true
	default:
		c.report.fault("%s cannot be read: %v", what, plain(cmp.Or(errors.Unwrap(err), err)))
	}
}

func (c *checker) sawNumber(p uint8, n uint32) { c.high[p] = max(c.high[p], n+1) }

func (c *checker) time(ms int64) { c.latest = max(c.latest, ms) }

// run checks all tables. The ids come first, as the others are compared with them.
func (c *checker) run() {
	c.meta()
	c.kindNames()
	c.allIDs()
	c.presence()
	c.liveSessions()
	c.endedSessions()
	c.friendLinks()
	c.days()
	c.archival()
	c.admin()
	c.eventLogs()
	c.visits()
	c.samples()
	c.retries()
	c.unknownKeys()
	if c.mend != nil {
		c.mend.err = errors.Join(c.mend.err, c.mend.flush())
	}
}

// unknownKeys finds records that belong to no table.
func (c *checker) unknownKeys() {
	from := []byte{0}
	for _, info := range append(tableInfos(), tableInfo{table: 0xff}) {
		to := key{info.table}
		if string(from) < string(to) {
			err := c.st.scanRange(uninterrupted(), from, to, func(k, _ []byte) error {
				c.report.Records++
				c.fault(k, "belongs to no table")
				return nil
			})
			c.scanFailed("what belongs to no table", err)
		}
		from = to.after()
	}
}

func (c *checker) has(k key) bool {
	_, ok, err := c.st.get(k)
	return ok && err == nil
}

// meta checks the records that hold for the whole store.
func (c *checker) meta() {
	read := func(name string, must bool, fine func(v []byte) bool, fix func(b *pebble.Batch) error) {
		k := metaKey(name)
		v, ok, err := c.st.get(k)
		if err == nil && (ok && fine(v) || !ok && !must) {
			return
		}
		c.derived(k, fix, "the %s is missing or cannot be read", name)
	}
	length := func(n int) func([]byte) bool { return func(v []byte) bool { return len(v) == n } }
	drop := func(name string) func(*pebble.Batch) error { return removing(metaKey(name)) }
	read(metaFormat, true, func(v []byte) bool { return len(v) == 1 && v[0] == format }, setting(metaKey(metaFormat), []byte{format}))
	read(metaPartitions, true, func(v []byte) bool {
		if len(v) != 2 {
			return false
		}
		n := int(binary.BigEndian.Uint16(v))
		if n < 1 || n > 256 || n&(n-1) != 0 {
			return false
		}
		c.parts = n
		return true
	}, setting(metaKey(metaPartitions), binary.BigEndian.AppendUint16(nil, partitions)))
	read(metaEpoch, true, length(4), newEpoch)
	read(metaTimezone, false, func(v []byte) bool { return len(v) > 0 && len(v) <= 64 && utf8.Valid(v) }, drop(metaTimezone))
	read(metaSecret, false, func(v []byte) bool { return len(v) > 0 }, drop(metaSecret))
	read(metaStamp, false, func(v []byte) bool {
		if len(v) == 8 {
			c.time(int64(binary.BigEndian.Uint64(v)))
		}
		return len(v) == 8
	}, drop(metaStamp))
	read(metaOutages, false, func(v []byte) bool { return new(outages).decode(v) == nil }, drop(metaOutages))
	read(metaTrimmed, false, func(v []byte) bool {
		r := reader{b: v}
		r.uint()
		r.uint()
		return r.done() == nil
	}, drop(metaTrimmed))
	read(metaApplied, false, length(8), drop(metaApplied))
	read(metaCeiling, false, length(8), drop(metaCeiling))
	known := []string{
		metaFormat, metaPartitions, metaEpoch, metaTimezone, metaSecret, metaStamp, metaOutages, metaTrimmed, metaApplied, metaCeiling,
	}
	c.table(tabMeta, func(k, _ []byte) {
		if !slices.Contains(known, string(k[1:])) {
			c.fault(k, "is nothing that holds for the whole store")
		}
	})
}

func (c *checker) kindNames() {
	names := make(map[string]uint8)
	c.table(tabKind, func(k, v []byte) {
		name := string(v)
		other, twice := names[name]
		if name == "" || twice || rollcall.CheckKind(name) != nil {
			c.mendKind(k[1], "kind number %d has the name %q, which cannot be (or is also that of number %d)", k[1], name, other)
			c.kinds[k[1]] = true
			return
		}
		names[name] = k[1]
		c.kinds[k[1]] = true
	})
}

// kind checks that the kind of a record has a name.
func (c *checker) kind(k []byte, kind uint8, what string) {
	if c.kinds[kind] {
		return
	}
	c.mendKind(kind, "%s (key %x) are of kind number %d, which has no name", what, k, kind)
	if c.mend != nil {
		c.kinds[kind] = true
	}
}

// mendKind reports a kind without a name. A mender gives it one.
func (c *checker) mendKind(kind uint8, format string, args ...any) {
	c.report.fault(format, args...)
	if c.mend != nil {
		c.mend.nameKind(kind)
	}
}

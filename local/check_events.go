package local

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
)

// eventLogs checks the events, and the index of timelines that follows from them.
func (c *checker) eventLogs() {
	for family, table := range familyTables {
		last, lines := uint64(0), 0
		c.table(table, func(k, v []byte) {
			events, err := decodeEvents(family, k, v)
			if err != nil {
				c.fault(k, "an event cannot be read: %v", cmp.Or(errors.Unwrap(err), err))
				return
			}
			if events[0].seq <= last {
				c.fault(k, "an event has the number of another")
				return
			}
			last = events[len(events)-1].seq
			lines += c.linesOf(family, events)
		})
		c.lines(family, lines)
	}
}

// linesOf checks what the index holds of a record of the log, and returns how many records it
// should be.
func (c *checker) linesOf(family int, events []event) int {
	want := lineEntries(events)
	for bucket, entries := range want {
		k := lineKey(family, bucket, events[0].seq)
		if got, ok, err := c.st.get(k); err != nil || !ok || !bytes.Equal(got, entries) {
			c.derived(k, setting(k, entries), "events from number %d on are missing in timelines, or are not as there", events[0].seq)
		}
	}
	return len(want)
}

// lines checks the index of a family. It looks for records of no event only if there are more or
// fewer than the events make, as all those have been compared.
func (c *checker) lines(family, want int) {
	n := 0
	c.table(lineTables[family], func([]byte, []byte) { n++ })
	if n == want {
		return
	}
	err := c.st.scan(uninterrupted(), newKey(lineTables[family], 1), func(k, _ []byte) error {
		if len(k) == lineKeyLen && !c.leadsToEvents(family, k) {
			c.derived(k, removing(k), "leads to no event")
		}
		return nil
	})
	c.scanFailed("the index of timelines", err)
}

// leadsToEvents reports whether a record of the index is of a record of the log that there is.
func (c *checker) leadsToEvents(family int, k []byte) bool {
	record := newKey(familyTables[family], 9).raw(k[3:])
	v, ok, err := c.st.get(record)
	if err != nil || !ok {
		return false
	}
	events, err := decodeEvents(family, record, v)
	return err == nil && len(lineEntries(events)[binary.BigEndian.Uint16(k[1:])]) > 0
}

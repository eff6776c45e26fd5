package local

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"unicode/utf8"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/rollcall/rollcall"
)

// Report is what [Check] found.
type Report struct {
	Records  int // looked at
	Users    int
	Sessions int
	Faults   []string // the first of them, in words
	Faulty   int      // how many there are
	Torn     string   // what was left out, if anything: it was never confirmed, and is no fault
}

func (r *Report) fault(format string, args ...any) {
	r.Faulty++
	if len(r.Faults) < maxFaults {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// maxFaults are named; the rest is counted.
const maxFaults = 1000

// Check reads every record of a data directory that no process has open, and
// names every fault: blocks whose checksum is wrong, records that cannot be
// read, and records that contradict each other. It changes nothing. The error
// is for a directory that cannot be looked at at all.
func Check(dir string, o Options) (Report, error) {
	if err := o.fill(); err != nil {
		return Report{}, err
	}
	lock, err := lockDir(dir, o.fs)
	if err != nil {
		return Report{}, err
	}
	st, report, err := readStore(dir, &o)
	if err != nil {
		return Report{}, errors.Join(err, lock.Close())
	}
	c := &checker{
		st: st, parts: partitions, report: report, kinds: make(map[uint8]bool),
		ids: make(map[ref]string), byID: make(map[string]ref), slots: make(map[ref]rollcall.SessionID),
	}
	c.run()
	return c.report, errors.Join(st.endRead(), lock.Close())
}

// readStore opens a store to be read: nothing reaches the disk, and the journal
// is applied in memory. What is wrong with the journal is reported.
func readStore(dir string, o *Options) (*store, Report, error) {
	s := &store{dir: dir, o: o, notices: &notices{}, cache: pebble.NewCache(o.CacheBytes)}
	names, err := o.fs.List(dir)
	if err == nil && len(names) == 0 {
		err = fs.ErrNotExist
	}
	var t *tables
	if err == nil {
		t, err = s.openTables(forReading)
	}
	if err != nil {
		s.cache.Unref()
		return nil, Report{}, openError("read", err)
	}
	s.tables.Store(t)
	r, err := t.replay(s)
	var report Report
	switch {
	case err != nil:
		report.fault("the journal: %v", err)
	case r.Segments == 0 && t.noted > 0:
		report.fault("the journal is missing: there is none in %s", s.journalDir())
	case r.Torn != nil:
		report.Torn = fmt.Sprintf("%s ends with a torn write at offset %d, which nobody was told was written", r.Torn.File, r.Torn.Offset)
	}
	t.checkFiles(s, &report)
	return s, report, nil
}

// checkFiles compares every block of every table with its checksum, also those
// that no question reads, and names the files that are damaged.
func (t *tables) checkFiles(s *store, report *Report) {
	levels, err := t.db.SSTables()
	if err != nil {
		report.fault("the list of tables cannot be read: %v", err)
		return
	}
	for _, level := range levels {
		for i := range level {
			name := path.Join(s.dir, fmt.Sprintf("%06d.sst", uint64(level[i].FileNum)))
			if err := t.checkFile(s, name); err != nil {
				report.fault("%s: %v", name, err)
			}
		}
	}
}

func (t *tables) checkFile(s *store, name string) error {
	f, err := s.o.fs.Open(name)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(uninterrupted{}, readable, t.reading)
	if err != nil {
		return errors.Join(err, readable.Close())
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// endRead closes what readStore opened.
func (s *store) endRead() error {
	err := s.tables.Load().close()
	s.cache.Unref()
	return err
}

// checker holds what the records of one table say that those of others must
// agree with.
type checker struct {
	st     *store
	parts  int
	report Report
	ids    map[ref]string
	byID   map[string]ref
	slots  map[ref]rollcall.SessionID
	kinds  map[uint8]bool
}

func (c *checker) fault(k []byte, format string, args ...any) {
	c.report.fault("key %x: %s", k, fmt.Sprintf(format, args...))
}

func (c *checker) table(table byte, keyLen int, check func(k, v []byte)) {
	err := c.st.scan(uninterrupted{}, newKey(table, 1), func(k, v []byte) error {
		c.report.Records++
		if keyLen > 0 && len(k) != keyLen {
			c.fault(k, "a key of table %q has %d bytes, not %d", table, len(k), keyLen)
			return nil
		}
		check(k, v)
		return nil
	})
	if err != nil {
		c.fault([]byte{table}, "table %q cannot be read: %v", table, cmp.Or(errors.Unwrap(err), err))
	}
}

func (c *checker) run() {
	c.meta()
	c.table(tabKind, 2, func(k, _ []byte) { c.kinds[k[1]] = true })
	c.allIDs()
	c.table(tabSession, 18, c.session)
	c.table(tabEnded, 18, c.ended)
	c.table(tabEndedTok, 18, func(k, v []byte) {
		if len(v) != 16 || !c.has(endedKey(k[1], rollcall.SessionID(v))) {
			c.fault(k, "leads to no ended session")
		}
	})
	c.table(tabEndedDue, 26, func(k, v []byte) {
		if len(v) != 16 || !c.has(endedKey(k[9], rollcall.SessionID(k[10:]))) {
			c.fault(k, "leads to no ended session")
		}
	})
	c.links()
	c.presence()
	c.rest()
}

func (c *checker) has(k key) bool {
	_, ok, err := c.st.get(k)
	return ok && err == nil
}

func (c *checker) meta() {
	v, ok, err := c.st.get(metaKey(metaFormat))
	if err != nil || !ok || len(v) != 1 || v[0] != format {
		c.fault(metaKey(metaFormat), "the format is missing or unknown")
	}
	v, ok, err = c.st.get(metaKey(metaPartitions))
	if err != nil || !ok || len(v) != 2 {
		c.fault(metaKey(metaPartitions), "the number of partitions is missing")
		return
	}
	c.parts = int(binary.BigEndian.Uint16(v))
}

func (c *checker) allIDs() {
	add := func(k []byte, r ref, id string) {
		if int(r.part()) != int(rollcall.HashUser(id)&uint64(c.parts-1)) {
			c.fault(k, "user %q is in the wrong partition", id)
		}
		c.ids[r] = id
	}
	c.table(tabBlock, 5, func(k, v []byte) {
		r := reader{b: v}
		for n := number24(k) << blockShift; n < (number24(k)+1)<<blockShift; n++ {
			if id := r.string(); id != "" {
				add(k, newRef(k[1], n), id)
			}
		}
		if err := r.done(); err != nil {
			c.fault(k, "a block of ids cannot be read: %v", err)
		}
	})
	c.table(tabID, 5, func(k, v []byte) { add(k, newRef(k[1], number24(k)), string(v)) })
	for r, id := range c.ids {
		if other, twice := c.byID[id]; twice {
			c.fault(idKey(r.part(), r.number()), "user %q also has number %d", id, other.number())
		}
		c.byID[id] = r
	}
	c.report.Users = len(c.ids)
}

func (c *checker) number(k []byte, what string) {
	if _, ok := c.ids[newRef(k[1], number24(k))]; !ok {
		c.fault(k, "%s of a user without an id", what)
	}
}

func (c *checker) session(k, v []byte) {
	id := rollcall.SessionID(k[2:])
	st, err := decodeSession(id, v)
	if err != nil {
		c.fault(k, "session %s cannot be read: %v", id, err)
		return
	}
	c.report.Sessions++
	if r, ok := c.byID[st.User]; !ok || r.part() != k[1] {
		c.fault(k, "session %s is of user %q, who is not in its partition", id, st.User)
	}
	if st.End != nil {
		c.fault(k, "session %s has ended and stands among the live", id)
	}
	if c.has(endedKey(k[1], id)) {
		c.fault(k, "session %s is both live and ended", id)
	}
	slot := newRef(k[1], st.slot)
	if other, taken := c.slots[slot]; taken {
		c.fault(k, "session %s has the slot of %s", id, other)
	}
	c.slots[slot] = id
}

func (c *checker) ended(k, v []byte) {
	id := rollcall.SessionID(k[2:])
	st, err := decodeSession(id, v)
	if err != nil {
		c.fault(k, "ended session %s cannot be read: %v", id, err)
		return
	}
	if st.End == nil {
		c.fault(k, "session %s stands among the ended and has not ended", id)
		return
	}
	if !c.has(endedDueKey(st.End.At.UnixMilli(), k[1], id)) {
		c.fault(k, "ended session %s would be remembered for ever", id)
	}
}

// links checks that every edge between friends stands in both directions.
func (c *checker) links() {
	c.table(tabFriend, 9, func(k, v []byte) {
		c.number(k, "a friend")
		friend := ref(binary.BigEndian.Uint32(k[5:]))
		if _, ok := c.ids[friend]; !ok || len(v) != 8 {
			c.fault(k, "a friend without an id")
		}
		if !c.has(namedByKey(friend, newRef(k[1], number24(k)))) {
			c.fault(k, "a friend who does not know who names them")
		}
	})
	c.table(tabNamedBy, 9, func(k, _ []byte) {
		user := ref(binary.BigEndian.Uint32(k[5:]))
		if !c.has(friendKey(user.part(), user.number(), newRef(k[1], number24(k)))) {
			c.fault(k, "named as friend by one who does not")
		}
	})
}

func (c *checker) presence() {
	c.table(tabGone, 5, func(k, _ []byte) { c.number(k, "a gone mark") })
	c.table(tabUser, 5, func(k, v []byte) {
		c.number(k, "a record")
		if _, err := decodeUser(v); err != nil {
			c.fault(k, "a user's record cannot be read: %v", err)
		}
	})
	c.table(tabBeat, 6, func(k, v []byte) {
		r := reader{b: v}
		for len(r.b) > 0 {
			r.uint()
		}
		if r.err != nil {
			c.fault(k, "beats cannot be read: %v", r.err)
		}
	})
	c.table(tabSeen, 5, func(k, v []byte) {
		if len(v) != 4*seenLen {
			c.fault(k, "last-seen times cannot be read")
		}
	})
	touches := func(k, v []byte) {
		r := reader{b: v}
		for len(r.b) > 0 {
			r.uint()
			r.int()
		}
		if r.err != nil {
			c.fault(k, "touches cannot be read: %v", r.err)
		}
	}
	c.table(tabTouch, 10, touches)
	c.table(tabTouched, 2, touches)
}

func (c *checker) rest() {
	c.days()
	c.table(tabBan, 18, func(k, v []byte) {
		if _, err := decodeBan(rollcall.BanKey(k[2:]), v); err != nil {
			c.fault(k, "a ban cannot be read: %v", err)
		}
	})
	c.table(tabKey, 0, func(k, v []byte) {
		if _, err := decodeAPIKey(string(k[1:]), v); err != nil {
			c.fault(k, "an API key cannot be read: %v", err)
		}
	})
	for family, table := range familyTables {
		c.table(table, 9, func(k, v []byte) {
			if _, err := decodeEvents(family, k, v); err != nil {
				c.fault(k, "an event cannot be read: %v", cmp.Or(errors.Unwrap(err), err))
			}
		})
	}
	c.visits()
	c.table(tabRetry, 33, func(_, _ []byte) {})
	c.table(tabRetryDue, 41, func(_, _ []byte) {})
}

func (c *checker) visits() {
	names := make(map[string]bool)
	c.table(tabVisit, 0, func(k, v []byte) {
		name, _, ok := visitOfKey(k)
		if !ok || len(name) > rollcall.MaxVisitNameLen || !utf8.ValidString(name) {
			c.fault(k, "is no name and hour of visits")
			return
		}
		if name != rollcall.VisitsOther { // it always has room
			names[name] = true
		}
		if len(names) > rollcall.MaxVisitNames {
			c.fault(k, "visits of %q, which is one name too many", name)
			delete(names, name)
		}
		if _, err := decodeSketch(v); err != nil {
			c.fault(k, "visits cannot be read: %v", err)
		}
	})
}

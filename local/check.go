package local

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Report is what [Check] found.
type Report struct {
	Records  int // looked at
	Users    int
	Sessions int
	Faults   []string // the first of them, in words
	Faulty   int      // how many there are
	Torn     string   // what was left out, if anything: it was never confirmed, and is no fault
	Cut      bool     // damaged files kept some records from being looked at
	Ahead    bool     // the store knows a time more than a day later than now
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
// read, and records that contradict each other; with a time, also that the
// store knows one more than a day later. It changes nothing but that it ends a
// repair that was cut short in its last step. The error is for a directory that
// cannot be looked at at all.
func Check(dir string, o Options, now time.Time) (Report, error) {
	if err := o.fill(); err != nil {
		return Report{}, err
	}
	if _, err := finishRepair(dir, o.fs); err != nil {
		return Report{}, err
	}
	lock, err := lockDir(dir, o.fs)
	if err != nil {
		return Report{}, err
	}
	report, err := checkStore(dir, &o, now)
	return report, errors.Join(err, lock.Close())
}

// checkStore is Check for who has the directory locked.
func checkStore(dir string, o *Options, now time.Time) (Report, error) {
	st, report, err := readStore(dir, o)
	if err != nil {
		return Report{}, err
	}
	c := newChecker(st, report)
	c.run()
	if err := aheadError(time.UnixMilli(c.latest), now); err != nil {
		c.report.fault("%v", err)
		c.report.Ahead = true
	}
	return c.report, st.endRead()
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
	bad, err := t.damagedFiles(s)
	if err != nil {
		report.fault("the list of tables cannot be read: %v", err)
	}
	for i := range bad {
		report.fault("%s", bad[i].text())
	}
}

// endRead closes what readStore opened.
func (s *store) endRead() error {
	err := s.tables.Load().close()
	s.cache.Unref()
	return err
}

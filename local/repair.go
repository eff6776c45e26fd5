package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
)

// Repairing a store.
//
// Some bytes of a store cannot be read, or its clock ran ahead. All that can be read is to be kept,
// and no answer may become wrong for it. Pebble may still have an older version of a lost record
// in another table, and that is no answer.
//
// Invariants:
//   - What cannot be read is a range of keys. Nothing of that range is kept, wherever it stands.
//   - The old store is never changed or removed.
//
// A new store is made beside the old one:
//
//  1. Look at every block of every table. Damaged ones give the ranges.
//  2. Copy all records outside of the ranges.
//  3. Apply the journal to the copy. If a confirmed record is missing, apply what
//     comes before it, provided that the tables hold nothing later (their
//     ceiling), end every live session, and take from behind it only what shuts
//     somebody out: bans, revoked keys, erasures.
//  4. Assume the worst of what stood in the ranges: who may have left is gone, what may have
//     been forgotten is forgotten.
//  5. Set back what lies in the future.
//  6. Go through the copy as check does. A record that contradicts others goes,
//     what can be derived is made anew, until nothing is wrong.
//  7. Open it as an engine, which finishes erasures, and check it once more.
//
// Then it takes the place of the old one (exchange). Each renaming is durable before the next.
//
// | crash after | what opening finds |
// | --- | --- |
// | making the new store | the old store; the next repair begins anew |
// | "store.repairing" → "store.repaired" | the old store; the next repair begins anew |
// | "store" → "store.damaged-…" | no store: finishRepair does the next step |
// | "store.repaired" → "store" | the new store |

// The names of stores beside a store.
const (
	repairingSuffix = ".repairing" // being made
	repairedSuffix  = ".repaired"  // complete
	damagedSuffix   = ".damaged-"  // put aside; a time follows
)

// RepairOptions say how to repair a store.
type RepairOptions struct {
	// Now is the present time, which nothing in the store may lie after by more
	// than a day; required.
	Now time.Time
	// Progress, if set, is told what is being done.
	Progress func(step string)

	crash func(step string) // for tests: called when a step is durable
}

// Repaired is what a repair did.
type Repaired struct {
	Healthy bool   // nothing was wrong, and nothing was changed
	Found   Report // what was wrong
	Kept    Report // what the store holds now
	Losses  []Loss // none if all could be read or derived
	Notes   []string
	Old     string // where the old store stands
}

// Loss is something that is not in the store any more.
type Loss struct {
	What    string   // in words
	Tables  string   // the tables it stood in
	Keys    []string // ranges of keys, in hex
	Records int      // at most; -1 if nobody can tell
	Users   []string // the users it is known to be of, up to some number
	Days    string   // the days it was of, if it was of days
	Advice  string   // what to do about it
}

// repair is a repair under way.
type repair struct {
	ctx    context.Context
	dir    string
	o      *Options
	ro     RepairOptions
	out    *Repaired
	source *store
	target *store
	mend   *mender

	applied uint64 // of the old tables: all records up to here are in them; 0 if unknown
	ceiling uint64 // and none above; 0 if unknown
	copied  int
	skipped int
	kept    []damagedFile
	erase   map[string]bool // users to erase once more
	endAll  bool            // every live session ends
}

// Repair makes a store out of what can be read of a damaged one, or of one whose
// clock ran ahead, and puts it into its place. The old one stays beside it. A
// sound store is left as it is. Nothing is changed if there is an error.
func Repair(ctx context.Context, dir string, o Options, ro RepairOptions) (Repaired, error) {
	if err := o.fill(); err != nil {
		return Repaired{}, err
	}
	if ro.Now.IsZero() {
		return Repaired{}, rollcall.Invalid("now", "is required")
	}
	if _, err := finishRepair(dir, o.fs); err != nil {
		return Repaired{}, err
	}
	lock, err := lockDir(dir, o.fs)
	if err != nil {
		return Repaired{}, err
	}
	out := &Repaired{}
	r := &repair{ctx: ctx, dir: dir, o: &o, ro: ro, out: out, erase: make(map[string]bool)}
	err = r.run() //nolint:contextcheck // what is being read is read to its end; between the steps the context is looked at
	return *out, errors.Join(err, lock.Close())
}

func (r *repair) progress(step string) {
	if r.ro.Progress != nil {
		r.ro.Progress(step)
	}
}

// completed is called when the outcome of a step is on disk.
func (r *repair) completed(step string) {
	if r.ro.crash != nil {
		r.ro.crash(step)
	}
}

// run checks the store, makes the new one, and exchanges the two.
func (r *repair) run() error {
	r.progress("checking the store")
	var err error
	r.out.Found, err = checkStore(r.dir, r.o, r.ro.Now)
	switch {
	case err != nil && !damagedTables(err):
		return err
	case err != nil: // of the tables; whether the list of them can be read shows when they are opened
		r.out.Found.fault("%v", err)
	}
	if r.out.Found.Faulty == 0 {
		r.out.Healthy = true
		return nil
	}

	// Begin anew, whatever a repair before has left.
	if err := r.checkSpace(); err != nil {
		return err
	}
	work := r.dir + repairingSuffix
	for _, left := range []string{work, r.dir + repairedSuffix} {
		if err := r.o.fs.RemoveAll(left); err != nil {
			return fmt.Errorf("remove %s: %w", left, err)
		}
	}
	if err := r.make(work); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // a table on the list is missing, or never was
			err = unopened(err)
		}
		return errors.Join(err, r.o.fs.RemoveAll(work))
	}
	return r.exchange(work)
}

// damagedTables reports whether opening failed because of damage.
func damagedTables(err error) bool {
	return (pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist)) && rollcall.CodeOf(err) != rollcall.CodeConflict
}

// unopened words an error of opening the store to be repaired.
func unopened(err error) error {
	if !damagedTables(err) {
		return err
	}
	return &rollcall.Error{
		Code: rollcall.CodeInternal, Err: err,
		Detail: "the list of tables (MANIFEST) cannot be read, so nobody can tell which tables count: put a backup in place",
	}
}

// checkSpace refuses to begin if the disk has no room for a second store.
func (r *repair) checkSpace() error {
	need, err := sizeOf(r.o.fs, r.dir)
	if err != nil {
		return fmt.Errorf("measure the store: %w", err)
	}
	need += uint64(max(0, r.o.ReserveBytes))
	usage, err := r.o.fs.GetDiskUsage(r.o.fs.PathDir(r.dir))
	if err != nil {
		return nil //nolint:nilerr // this file system cannot tell
	}
	if usage.AvailBytes < need {
		return &rollcall.Error{
			Code: rollcall.CodeStorageFull,
			Detail: fmt.Sprintf("a repair makes a second store beside the old one: %s must be free, and %s are; nothing was changed",
				humanize.IBytes(need), humanize.IBytes(usage.AvailBytes)),
		}
	}
	return nil
}

// sizeOf returns the size of all files of a directory.
func sizeOf(fsys vfs.FS, dir string) (total uint64, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		info, err := fsys.Stat(path.Join(dir, name))
		switch {
		case err != nil:
			return 0, err
		case info.IsDir():
			n, err := sizeOf(fsys, path.Join(dir, name))
			if err != nil {
				return 0, err
			}
			total += n
		default:
			total += uint64(info.Size())
		}
	}
	return total, nil
}

// make makes the new store in a directory.
func (r *repair) make(work string) error {
	if err := makeDirs(r.o.fs, work, path.Join(work, journalName)); err != nil {
		return openError("made", err)
	}
	var err error
	if r.source, err = r.open(r.dir, forRepair); err != nil {
		return unopened(err)
	}
	r.target, err = r.open(work, forUse)
	if err == nil {
		r.target.tables.Load().fs.release() // it is new
		r.mend = &mender{
			t: r.target.tables.Load(), b: new(pebble.Batch), now: r.ro.Now.UnixMilli(),
			dropped: make(map[byte]*droppedRecords),
		}
		err = r.fill()
	}
	if r.target != nil {
		err = errors.Join(err, r.target.endRead())
	}
	err = errors.Join(err, r.source.endRead())
	if err != nil {
		return err
	}
	r.completed("the new store is written")
	return r.prove(work)
}

func (r *repair) open(dir string, what purpose) (*store, error) {
	s := &store{dir: dir, o: r.o, notices: &notices{}, cache: pebble.NewCache(r.o.CacheBytes)}
	t, err := s.openTables(what)
	if err != nil {
		s.cache.Unref()
		return nil, openError("read", err)
	}
	s.tables.Store(t)
	return s, nil
}

// fill puts all that can be kept into the new store.
func (r *repair) fill() error {
	t := r.source.tables.Load()
	bad, err := t.damagedFiles(r.source)
	if err != nil {
		return err
	}
	var ranges []keyRange
	for i := range bad {
		if len(bad[i].keys) > 0 {
			ranges = append(ranges, bad[i].keys...)
			r.kept = append(r.kept, bad[i])
		}
	}
	r.mend.lost = joinRanges(ranges)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"copying what can be read", r.copyTables},
		{"applying the journal", r.applyJournal},
		{"setting back what lies in the future", r.setBack},
		{"being careful about what is lost", r.assumeTheWorst},
		{"ending sessions", r.endSessions},
		{"making the rest agree", r.mendAll},
		{"writing the store", func() error { return r.target.tables.Load().flush() }},
	} {
		r.progress(step.what)
		if err := step.do(); err != nil {
			return err
		}
		if err := errors.Join(r.mend.err, r.mend.flush()); err != nil {
			return err
		}
	}
	return r.reportLosses()
}

// prove opens the new store as an engine, erases users whose erasure was lost, and checks the store.
func (r *repair) prove(work string) error {
	r.progress("opening the new store")
	e, err := Open(work, *r.o)
	if err != nil {
		return err
	}
	e.settings = rollcall.Settings{EventsCount: 1 << 40}
	e.events.keep = e.settings.EventsCount
	e.state.Ready.Store(true)
	for user := range r.erase {
		if err == nil {
			err = e.Erase(r.ctx, r.ro.Now, user, rollcall.BanKey{})
		}
	}
	if err := errors.Join(err, e.Close()); err != nil {
		return err
	}
	lock, err := lockDir(work, r.o.fs)
	if err != nil {
		return err
	}
	report, err := checkStore(work, r.o, r.ro.Now)
	if err == nil && report.Faulty > 0 {
		err = fmt.Errorf("the new store is not sound: %s", strings.Join(report.Faults[:min(3, len(report.Faults))], "; "))
	}
	r.out.Kept = report
	return errors.Join(err, lock.Close())
}

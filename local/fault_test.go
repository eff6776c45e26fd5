package local

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// soon is how long a test waits for what a slow machine may take long for.
const soon = time.Minute

// faultyDisk is a disk that fails as long as it is told which operations do.
type faultyDisk struct {
	mem   *vfs.MemFS
	fault atomic.Pointer[diskFault]
}

type diskFault struct {
	err  error
	hits func(op errorfs.Op) bool
	met  atomic.Int64
}

func newFaultyDisk() (*faultyDisk, vfs.FS) {
	d := &faultyDisk{mem: vfs.NewCrashableMem()}
	return d, errorfs.Wrap(d.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if f := d.fault.Load(); f != nil && f.hits(op) {
			f.met.Add(1)
			return f.err
		}
		return nil
	}))
}

func changes(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

func syncs(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// faultRig is an engine on a faulty disk.
type faultRig struct {
	*require.Assertions
	t       *testing.T
	disk    *faultyDisk
	clock   *rollcall.ManualClock
	eng     *Engine
	roll    *rollcall.Roll
	live    map[string]rollcall.LoggedIn // what was acknowledged
	ended   map[string]rollcall.LoggedIn
	doubt   map[string]bool // answered with an error: either may be
	counter int
}

func newFaultRig(t *testing.T) *faultRig {
	disk, fs := newFaultyDisk()
	eng, err := Open("data", Options{fs: fs, ReserveBytes: -1})
	require.NoError(t, err)
	r := &faultRig{
		Assertions: require.New(t), t: t, disk: disk, eng: eng, clock: rollcall.NewManualClock(startOfTests()),
		live: map[string]rollcall.LoggedIn{}, ended: map[string]rollcall.LoggedIn{}, doubt: map[string]bool{},
	}
	r.roll, err = rollcall.New(eng, rollcall.Options{Clock: r.clock, Secret: make([]byte, 32)})
	require.NoError(t, err)
	return r
}

func (r *faultRig) login() error {
	r.counter++
	user := fmt.Sprint("user", r.counter)
	in, err := r.roll.Login(r.t.Context(), rollcall.Login{User: user})
	if err == nil {
		r.live[user] = in
	}
	return err
}

// kick ends the session of some user.
func (r *faultRig) kick() error {
	for user, in := range r.live {
		delete(r.live, user)
		_, err := r.roll.Kick(r.t.Context(), rollcall.Kick{Session: in.Session.ID})
		if err == nil {
			r.ended[user] = in
		} else {
			r.doubt[user] = true
		}
		return err
	}
	return nil
}

// until tries again until something holds.
func (r *faultRig) until(what string, holds func() bool) {
	r.Eventually(holds, soon, 2*time.Millisecond, "waited until %s", what)
}

// holds compares what a service says with what was acknowledged.
// While writes are refused an end that cannot be made durable is answered with
// that, if it may be the one that is asked for: nobody gets in by it.
func (r *faultRig) holds(roll *rollcall.Roll, when string) {
	refused := roll.Ready(r.t.Context())
	for user, in := range r.live {
		_, err := roll.Verify(r.t.Context(), rollcall.SessionRef{Token: in.Token})
		r.NoError(err, "%s: the session of %s was acknowledged", when, user)
	}
	for user, in := range r.ended {
		_, err := roll.Verify(r.t.Context(), rollcall.SessionRef{Token: in.Token})
		if refused != nil && rollcall.CodeOf(err) == rollcall.CodeOf(refused) {
			continue
		}
		r.Equal(rollcall.CodeSessionEnded, rollcall.CodeOf(err), "%s: the end of %s was acknowledged: %v", when, user, err)
	}
}

// crash looks at what a crash at this moment would leave.
func (r *faultRig) crash(when string) {
	fs := r.disk.mem.CrashClone(vfs.CrashCloneCfg{})
	eng, err := Open("data", Options{fs: fs, ReserveBytes: -1})
	r.NoError(err, when)
	roll, err := rollcall.New(eng, rollcall.Options{Clock: r.clock, Secret: make([]byte, 32)})
	r.NoError(err)
	r.holds(roll, when+", after a crash")
	r.NoError(eng.Close())
	report, err := Check("data", Options{fs: fs}, time.Time{})
	r.NoError(err)
	r.Empty(report.Faults, when)
}

// TestWritesResumeWhenTheDiskIsWellAgain makes every kind of write fail that
// the journal and Pebble make.
func TestWritesResumeWhenTheDiskIsWellAgain(t *testing.T) {
	of := func(part string, kind func(errorfs.Op) bool) func(errorfs.Op) bool {
		return func(op errorfs.Op) bool { return strings.Contains(op.Path, part) && kind(op) }
	}
	is := func(kinds ...errorfs.OpKind) func(errorfs.Op) bool {
		return func(op errorfs.Op) bool {
			for _, k := range kinds {
				if op.Kind == k {
					return true
				}
			}
			return false
		}
	}
	either := func(a, b func(errorfs.Op) bool) func(errorfs.Op) bool {
		return func(op errorfs.Op) bool { return a(op) || b(op) }
	}
	table := of(".sst", syncs)
	for name, hits := range map[string]func(errorfs.Op) bool{
		"everything":           changes,
		"every sync":           syncs,
		"journal: write":       of("/journal/", is(errorfs.OpFileWriteAt, errorfs.OpFileWrite)),
		"journal: sync":        of("", func(op errorfs.Op) bool { return syncs(op) && strings.Contains(op.Path, "/journal/") }),
		"journal: new segment": of(".free", changes),
		"journal: rename":      of(".free", is(errorfs.OpRename)),
		"table: create":        of(".sst", is(errorfs.OpCreate)),
		"table: write":         of(".sst", is(errorfs.OpFileWrite)),
		"table: sync":          table,
		"manifest: write":      of("MANIFEST", is(errorfs.OpFileWrite)),
		"manifest: sync":       of("MANIFEST", syncs),
		"manifest: create":     either(table, of("MANIFEST", is(errorfs.OpCreate))),
		"marker":               either(table, of("marker.", changes)),
		"options":              either(table, of("OPTIONS", changes)),
		"directory":            either(table, func(op errorfs.Op) bool { return syncs(op) && !strings.Contains(op.Path, ".") }),
	} {
		for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
			t.Run(name+": "+cause.Error(), func(t *testing.T) {
				t.Parallel()
				r := newFaultRig(t)
				for range 2 {
					r.goThrough(hits, cause)
				}
				r.NoError(r.eng.Close())
				r.crash("in the end")
			})
		}
	}
}

// goThrough takes an engine through a fault and out of it.
func (r *faultRig) goThrough(hits func(errorfs.Op) bool, cause error) {
	for range 8 {
		r.NoError(r.login())
	}
	r.NoError(r.kick())
	fault := &diskFault{err: cause, hits: hits}
	r.disk.fault.Store(fault)

	// Commands, a new segment and new tables, until something hits the fault.
	begun := make(chan error, 1)
	go func() { begun <- r.eng.store.journal.Replace() }()
	var err error
	r.until("the fault is met", func() bool {
		r.eng.store.signal()
		if err = r.login(); err == nil {
			err = r.kick()
		}
		return err != nil
	})
	<-begun
	want := rollcall.CodeUnavailable
	if errors.Is(cause, syscall.ENOSPC) {
		want = rollcall.CodeStorageFull
	}
	r.Equal(want, rollcall.CodeOf(err), "%v", err)
	r.Positive(fault.met.Load())
	r.holds(r.roll, "while writes are refused")
	r.crash("while writes are refused")

	r.disk.fault.Store(nil)
	r.until("writes are taken again", func() bool { return r.login() == nil })
	r.NoError(r.kick())
	r.NoError(r.roll.Ready(r.t.Context()))
	r.holds(r.roll, "when writes are taken again")
	r.crash("when writes are taken again")
}

func TestAnEngineCanBeClosedWhileTheDiskFails(t *testing.T) {
	for name, hits := range map[string]func(errorfs.Op) bool{
		"everything": changes,
		"tables":     func(op errorfs.Op) bool { return strings.Contains(op.Path, ".sst") && changes(op) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newFaultRig(t)
			r.NoError(r.login())
			r.NoError(r.login())
			r.NoError(r.kick())
			r.disk.fault.Store(&diskFault{err: syscall.EIO, hits: hits})
			r.until("the fault is met", func() bool {
				r.eng.store.signal()
				return r.login() != nil
			})
			closed := make(chan error, 1)
			go func() { closed <- r.eng.Close() }()
			select {
			case <-closed:
			case <-time.After(soon):
				t.Fatal("waited for Close to end")
			}
			r.disk.fault.Store(nil)
			r.crash("after Close")
		})
	}
}

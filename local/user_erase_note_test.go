package local

import (
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rollcall/rollcall"
)

// erasable makes a user of whom much is known.
func (r *faultRig) erasable(user string) rollcall.LoggedIn {
	ctx := r.t.Context()
	in, err := r.roll.Login(ctx, rollcall.Login{User: user})
	r.NoError(err)
	for _, other := range []string{"bob", "carol"} {
		r.NoError(r.roll.AddFriends(ctx, other, true, rollcall.Friend{User: user}))
	}
	return in
}

// requireErased requires that a user is gone whole.
func (r *faultRig) requireErased(roll *rollcall.Roll, user string, in rollcall.LoggedIn, when string) {
	ctx := r.t.Context()
	_, err := roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	r.Equal(rollcall.CodeSessionEnded, rollcall.CodeOf(err), "%s: %v", when, err)
	for _, one := range []string{"bob", "carol", user} {
		page, err := roll.Friends(ctx, one, rollcall.PageRequest{Limit: 10})
		r.NoError(err)
		r.Empty(page.Items, "%s: friends of %s", when, one)
	}
}

// TestAnErasureThatACrashCutShortAnywhereIsFinishedOnOpening cuts the power ahead of each sync
// of an erasure.
func TestAnErasureThatACrashCutShortAnywhereIsFinishedOnOpening(t *testing.T) {
	t.Parallel()
	r := newFaultRig(t)
	defer func() { r.NoError(r.eng.Close()) }()
	in := r.erasable("alice")
	var mu sync.Mutex
	var left []*vfs.MemFS
	r.disk.fault.Store(&diskFault{hits: func(op errorfs.Op) bool {
		if syncs(op) {
			mu.Lock()
			defer mu.Unlock()
			left = append(left, r.disk.mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return false
	}})
	r.NoError(r.roll.Erase(t.Context(), "alice"))
	r.disk.fault.Store(nil)
	r.Greater(len(left), 3, "an erasure has several steps")
	for i, fs := range left {
		eng, err := Open("data", Options{fs: fs, ReserveBytes: -1})
		r.NoError(err)
		roll, err := rollcall.New(eng, rollcall.Options{Clock: r.clock, Secret: make([]byte, 32)})
		r.NoError(err)
		if i == 0 { // the note was not durable yet
			_, err := roll.Verify(t.Context(), rollcall.SessionRef{Token: in.Token})
			r.NoError(err)
		} else {
			r.requireErased(roll, "alice", in, "after a crash")
		}
		r.NoError(eng.Close())
		report, err := Check("data", Options{fs: fs}, time.Time{})
		r.NoError(err)
		r.Empty(report.Faults)
	}
}

// TestAnErasureThatTheDiskCutShortIsFinishedByATick has the disk fail from some sync of
// an erasure on, until it is well again.
func TestAnErasureThatTheDiskCutShortIsFinishedByATick(t *testing.T) {
	t.Parallel()
	r := newFaultRig(t)
	defer func() { r.NoError(r.eng.Close()) }()
	ctx := t.Context()
	for first, cut := int64(1), true; cut; first++ {
		in := r.erasable("alice")
		var met atomic.Int64
		r.disk.fault.Store(&diskFault{err: syscall.EIO, hits: func(op errorfs.Op) bool { return syncs(op) && met.Add(1) >= first }})
		err := r.roll.Erase(ctx, "alice")
		r.disk.fault.Store(nil)
		cut = met.Load() >= first
		r.until("writes are taken again", func() bool { return r.roll.Ready(ctx) == nil })
		r.until("a tick goes well", func() bool {
			r.clock.Advance(time.Second)
			return r.roll.Tick(ctx) == nil
		})
		if err == nil || cut {
			r.requireErased(r.roll, "alice", in, "after a fault of the disk")
		}
	}
}

// TestALoginDuringAnErasureIsThatOfANewUser meets an erasure that has begun.
func TestALoginDuringAnErasureIsThatOfANewUser(t *testing.T) {
	t.Parallel()
	r := newFaultRig(t)
	defer func() { r.NoError(r.eng.Close()) }()
	old := r.erasable("alice")
	r.eng.setCurrent(&erasure{part: r.eng.partitionOf("alice").index, user: "alice", lastEvent: stillThere, at: r.clock.Now().UnixMilli()})
	in, err := r.roll.Login(t.Context(), rollcall.Login{User: "alice"})
	r.NoError(err)
	r.requireErased(r.roll, "alice", old, "behind the login")
	r.NoError(r.roll.Tick(t.Context()))
	_, err = r.roll.Verify(t.Context(), rollcall.SessionRef{Token: in.Token})
	r.NoError(err)
}

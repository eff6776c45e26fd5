package local

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/enginetest"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// eagerStore is a memStore whose every flush is worth a snapshot.
type eagerStore struct{ memStore }

func newEagerStore(testing.TB) enginetest.Store {
	return &eagerStore{memStore{vfs.NewCrashableMem()}}
}

func (s *eagerStore) Open() (rollcall.Engine, error) {
	return Open("data", Options{fs: s.fs, ReserveBytes: -1, minDelta: 1})
}

// TestConformanceWithEagerSnapshots leaves the long cases to TestConformance, and but in
// a long run two of three others: what is left writes enough to have snapshots in the
// midst of it.
func TestConformanceWithEagerSnapshots(t *testing.T) {
	nth := 3
	if testbudget.Long() {
		nth = 1
	}
	enginetest.RunShort(t, newEagerStore, 0, nth)
}

func TestModelWithEagerSnapshots(t *testing.T) { enginetest.RunModel(t, newEagerStore, 40) }

// rig is an engine on files that can crash, and a service over it.
type rig struct {
	*require.Assertions
	t     *testing.T
	fs    *vfs.MemFS
	delta int
	clock *rollcall.ManualClock
	eng   *Engine
	roll  *rollcall.Roll
	ctx   context.Context
}

func startOfTests() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

// neverWithin is how long a test looks for what must not happen.
const neverWithin = 50 * time.Millisecond

func newRig(t *testing.T, minDelta int) *rig {
	r := &rig{
		Assertions: require.New(t), t: t, fs: vfs.NewCrashableMem(), delta: minDelta, ctx: t.Context(),
		clock: rollcall.NewManualClock(startOfTests()),
	}
	r.open()
	t.Cleanup(func() { r.NoError(r.eng.Close()) })
	return r
}

func (r *rig) open() {
	eng, err := Open("data", Options{fs: r.fs, ReserveBytes: -1, minDelta: r.delta})
	r.NoError(err)
	r.eng = eng
	r.configure()
}

func (r *rig) configure() {
	var err error
	r.roll, err = rollcall.New(r.eng, rollcall.Options{Clock: r.clock, Secret: make([]byte, 32)})
	r.NoError(err)
}

// restart closes the engine, checks the files, and opens them again.
func (r *rig) restart() {
	r.NoError(r.eng.Close())
	r.check()
	r.open()
}

// crash loses what was not durable.
func (r *rig) crash() {
	left := r.eng
	r.fs = r.fs.CrashClone(vfs.CrashCloneCfg{})
	r.NoError(left.Close())
	r.check()
	r.open()
}

func (r *rig) check() {
	report, err := Check("data", Options{fs: r.fs}, time.Time{})
	r.NoError(err)
	r.Empty(report.Faults)
}

func (r *rig) second() { r.clock.Advance(time.Second) }

func (r *rig) login(user string) rollcall.LoggedIn {
	in, err := r.roll.Login(r.ctx, rollcall.Login{User: user})
	r.NoError(err)
	return in
}

func (r *rig) logout(in rollcall.LoggedIn) {
	_, err := r.roll.Kick(r.ctx, rollcall.Kick{Session: in.Session.ID, Cause: rollcall.CauseLogout})
	r.NoError(err)
}

// neighbours returns users of one partition.
func (r *rig) neighbours(n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if u := fmt.Sprintf("user%d", i); r.eng.partitionOf(u).index == 7 {
			out = append(out, u)
		}
	}
	return out
}

func TestALastSeenTimeThatOnlyASessionKnewIsFlushedAfterACrash(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2)
	first := r.login(users[0])
	seen := r.clock.Now()
	r.second()
	r.login(users[1])
	r.crash()
	r.logout(first)
	r.restart()
	last, _, err := r.roll.LastSeen(r.ctx, users[0])
	r.NoError(err)
	r.True(seen.Equal(last), "last seen %v, not %v", last, seen)
}

func TestAGoneMarkWithoutALastSeenTimeDoesNotOutliveTheNextBeat(t *testing.T) {
	r := newRig(t, 0)
	r.logout(r.login("alice"))
	r.crash()
	r.second()
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	known, err := r.roll.KnownCount(r.ctx)
	r.NoError(err)
	r.Equal(1, known)
	r.restart()
	n, err := r.roll.OnlineCount(r.ctx, 0)
	r.NoError(err)
	r.Equal(1, n, "a beat ends being gone, also past a restart")
}

func TestASnapshotForgetsAUserAsOfTheLatestOfTheirSessions(t *testing.T) {
	r := newRig(t, 1)
	older := r.login("alice")
	r.second()
	r.login("alice")
	r.second()
	_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: older.Token})
	r.NoError(err)
	r.second()
	_, err = r.roll.ClearPresence(r.ctx, 0)
	r.NoError(err)
	// Enough neighbours beat for the next flush to be a snapshot.
	var others []string
	for i := 0; len(others) < 8; i++ {
		if u := fmt.Sprintf("other%d", i); r.eng.partitionOf(u) == r.eng.partitionOf("alice") {
			others = append(others, u)
		}
	}
	for range 3 {
		r.second()
		r.NoError(r.roll.Beat(r.ctx, others...))
		r.NoError(r.eng.Flush(r.ctx))
	}
	r.restart()
	_, _, err = r.roll.LastSeen(r.ctx, "alice")
	r.ErrorIs(err, rollcall.ErrNotFound)
}

func TestAnErasedUserWhoWasNeverFlushedIsInNoBlockOfIDs(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2)
	r.NoError(r.roll.Beat(r.ctx, users[0]))
	r.NoError(r.eng.Flush(r.ctx))
	r.NoError(r.roll.Beat(r.ctx, users[1]))
	r.NoError(r.roll.Erase(r.ctx, users[0]))
	r.NoError(r.roll.Erase(r.ctx, users[1]))
	r.restart()
	st, err := r.roll.Stats(r.ctx)
	r.NoError(err)
	r.Zero(st.Users)
}

func TestABanMadeWhileAnOldOneIsTrimmedIsStored(t *testing.T) {
	r := newRig(t, 0)
	for range 100 {
		_, err := r.roll.Ban(r.ctx, "mallory", time.Second, "", "")
		r.NoError(err)
		r.clock.Advance(2 * time.Second)
		ticked := make(chan error)
		go func() { ticked <- r.roll.Tick(r.ctx) }()
		_, err = r.roll.Ban(r.ctx, "mallory", time.Hour, "", "")
		r.NoError(err)
		r.NoError(<-ticked)
		key := r.eng.partitionOf("mallory").anyBan()
		_, stored, err := r.eng.store.get(banKey(r.eng.partitionOf("mallory").index, key))
		r.NoError(err)
		r.True(stored)
		r.NoError(r.roll.Unban(r.ctx, "mallory"))
	}
}

func (p *partition) anyBan() (key rollcall.BanKey) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for key = range p.users.bans {
		break
	}
	return key
}

func TestBeatsBeforeTheDiskFilledSurviveAClose(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	r.Error(r.eng.store.refuse(rollcall.CodeStorageFull, false, "no room", nil))
	r.Error(r.roll.Beat(r.ctx, "bob"))
	r.restart()
	n, err := r.roll.KnownCount(r.ctx)
	r.NoError(err)
	r.Equal(1, n)
}

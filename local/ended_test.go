package local

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rollcall/rollcall"
)

// lastSeconds logs alice in and lives until a moment before her deadline, with a
// tick then, and moves the clock just past it.
func lastSeconds(r *rig, user string) rollcall.LoggedIn {
	r.NoError(r.roll.Tick(r.ctx))
	in := r.login(user)
	for range rollcall.DefaultIdleTimeout/time.Second - 1 {
		r.second()
		r.NoError(r.roll.Tick(r.ctx))
	}
	r.clock.Advance(950 * time.Millisecond)
	r.NoError(r.roll.Tick(r.ctx)) // the last stamp, 50 ms before the deadline
	r.clock.Advance(100 * time.Millisecond)
	return in
}

// crashAndReturn loses what was not durable; ten seconds later the engine ticks.
func (r *rig) crashAndReturn() {
	r.crash()
	r.clock.Advance(10 * time.Second)
	r.tick()
}

// onSmallDisk opens the data anew on a disk that says how much room it has.
func (r *rig) onSmallDisk() *smallDisk {
	disk := &smallDisk{FS: r.fs}
	disk.free.Store(1 << 30)
	r.NoError(r.eng.Close())
	eng, err := Open("data", Options{fs: disk, ReserveBytes: 1 << 20})
	r.NoError(err)
	r.eng = eng
	r.configure()
	return disk
}

func (r *rig) tokenEnded(in rollcall.LoggedIn) {
	r.t.Helper()
	_, err := r.roll.Verify(r.ctx, rollcall.SessionRef{Token: in.Token})
	r.ErrorIs(err, rollcall.ErrSessionEnded)
	_, err = r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in.Token})
	r.ErrorIs(err, rollcall.ErrSessionEnded)
}

func TestWhatAClientWasToldHasEndedStaysEndedAcrossACrash(t *testing.T) {
	for name, tell := range map[string]func(r *rig, in rollcall.LoggedIn) error{
		"verify": func(r *rig, in rollcall.LoggedIn) error {
			_, err := r.roll.Verify(r.ctx, rollcall.SessionRef{Token: in.Token})
			return err
		},
		"touch": func(r *rig, in rollcall.LoggedIn) error {
			_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in.Token})
			return err
		},
		"rotate": func(r *rig, in rollcall.LoggedIn) error {
			_, _, err := r.roll.Rotate(r.ctx, in.Session.ID)
			return err
		},
		"a change of its name": func(r *rig, in rollcall.LoggedIn) error {
			name := "x"
			_, err := r.roll.UpdateSession(r.ctx, in.Session.ID, rollcall.SessionPatch{Name: &name})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 0)
			in := lastSeconds(r, "alice")
			r.ErrorIs(tell(r, in), rollcall.ErrSessionEnded)
			r.crashAndReturn()
			r.tokenEnded(in)
		})
	}
}

func TestWhatNobodyWasToldOfIsPutOffByACrash(t *testing.T) {
	r := newRig(t, 0)
	in := lastSeconds(r, "alice")
	r.crashAndReturn()
	_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in.Token})
	r.NoError(err, "its deadline fell into the outage")
}

func TestALaterSignOfLifeOnDiskIsAStamp(t *testing.T) {
	r := newRig(t, 0)
	in := lastSeconds(r, "alice")
	r.login("bob") // durable, of another partition perhaps
	r.crashAndReturn()
	r.tokenEnded(in)
}

func TestTimeInWhichTheDiskIsFullIsAnOutage(t *testing.T) {
	r := newRig(t, 0)
	disk := r.onSmallDisk()
	r.NoError(r.roll.Tick(r.ctx))
	in := r.login("alice")
	r.second()
	r.NoError(r.roll.Tick(r.ctx))

	disk.free.Store(0)
	for range 40 * 60 {
		r.second()
		r.ErrorIs(r.roll.Tick(r.ctx), rollcall.ErrStorageFull)
		_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in.Token})
		r.ErrorIs(err, rollcall.ErrStorageFull)
		_, err = r.roll.Verify(r.ctx, rollcall.SessionRef{Token: in.Token})
		r.NoError(err, "she could not be heard")
	}
	online, err := r.roll.OnlineCount(r.ctx, 0)
	r.NoError(err)
	r.Equal(1, online, "who was online is not taken for gone")
	page, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10}})
	r.NoError(err)
	r.Equal(1, page.Total)

	for _, killed := range []bool{true, false} {
		if killed { // the server is killed, and its disk has room again
			left := r.eng
			r.fs = r.fs.CrashClone(vfs.CrashCloneCfg{})
			disk.free.Store(1 << 30)
			r.NoError(left.Close())
			r.open()
			r.clock.Advance(10 * time.Second)
		}
		r.NoError(r.roll.Tick(r.ctx))
		_, err = r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in.Token})
		r.NoError(err)
		stats, err := r.roll.Stats(r.ctx)
		r.NoError(err)
		r.Equal(1, stats.Outages)
	}
}

func TestADiskThatIsFullForAMomentEndsNothingInBulk(t *testing.T) {
	r := newRig(t, 0)
	disk := r.onSmallDisk()
	in := lastSeconds(r, "alice") // due, and nobody was told
	disk.free.Store(0)
	r.ErrorIs(r.roll.Tick(r.ctx), rollcall.ErrStorageFull)
	_, err := r.roll.Verify(r.ctx, rollcall.SessionRef{Token: in.Token})
	r.NoError(err, "its end can no longer be made to last")
	disk.free.Store(1 << 30)
	r.NoError(r.roll.Tick(r.ctx))
	_, err = r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in.Token})
	r.NoError(err)
}

func TestWhatWasHeardBeforeTheDiskWasFullSurvivesACrash(t *testing.T) {
	r := newRig(t, 0)
	disk := r.onSmallDisk()
	r.tick()
	r.second()
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	seen := r.clock.Now()
	disk.free.Store(0)
	for range 60 {
		r.second()
		r.ErrorIs(r.roll.Tick(r.ctx), rollcall.ErrStorageFull)
	}
	r.crash()
	last, _, err := r.roll.LastSeen(r.ctx, "alice")
	r.NoError(err, "a minute has passed: beats are durable within seconds")
	r.Equal(seen.Unix(), last.Unix())
}

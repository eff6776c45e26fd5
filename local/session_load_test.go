package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestASessionSeenBeforeTheClockWentBackIsListed opens a store whose latest time stands in the
// record of a session alone, with a clock that is set back to before it.
func TestASessionSeenBeforeTheClockWentBackIsListed(t *testing.T) {
	fs := vfs.NewCrashableMem()
	now := startOfTests()
	open := func(fs vfs.FS, at time.Time) (*rollcall.Roll, func()) {
		eng, err := Open("data", Options{fs: fs, ReserveBytes: -1})
		require.NoError(t, err)
		roll, err := rollcall.New(eng, rollcall.Options{Clock: rollcall.NewManualClock(at), Secret: []byte("the secret of a test of clocks that go back")})
		require.NoError(t, err)
		return roll, func() {
			require.NoError(t, roll.Close())
			require.NoError(t, eng.Close())
		}
	}
	roll, closed := open(fs, now)
	login, seen := now.Add(-2*time.Hour), now.Truncate(time.Second).Add(-time.Minute+700*time.Millisecond)
	s := rollcall.SessionSnapshot{Token: rollcall.TokenKey{1}, Idle: 3 * time.Hour, Session: rollcall.Session{
		ID: rollcall.NewSessionID(login, "alice", 1), User: "alice", Kind: rollcall.DefaultKind,
		LoginAt: login, SeenAt: seen, ExpiresAt: seen.Add(3 * time.Hour),
	}}
	require.NoError(t, roll.Import(t.Context(), rollcall.UserSnapshot{User: "alice", Sessions: []rollcall.SessionSnapshot{s}}))
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	closed()

	roll, closed = open(after, now.Add(-time.Hour))
	page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: rollcall.PageRequest{Limit: 10}})
	require.NoError(t, err)
	require.Equal(t, 1, page.Total)
	require.Len(t, page.Items, 1)
	closed()
}

// TestASessionWhoseRecordCannotBeTrueIsRefusedOnOpening opens stores in which a session has what
// none can have. Each is well-formed, so that only what it says is wrong.
func TestASessionWhoseRecordCannotBeTrueIsRefusedOnOpening(t *testing.T) {
	for what, wrong := range map[string]func(st *sessionRecord){
		"the slot of another":  func(st *sessionRecord) { st.slot = 0 },
		"a slot there is not":  func(st *sessionRecord) { st.slot = 1 << 24 },
		"a slot of five bytes": func(st *sessionRecord) { st.slot = 1<<32 - 1 },
		"an end":               func(st *sessionRecord) { st.End = &rollcall.End{At: st.SeenAt, Cause: rollcall.CauseLogout} },
	} {
		t.Run(what, func(t *testing.T) {
			eng, roll, _ := openSmall(t, 1000)
			var last rollcall.Session
			for range 2 {
				in, err := roll.Login(t.Context(), rollcall.Login{User: "alice"})
				require.NoError(t, err)
				last = in.Session
			}
			p := eng.partitionOf("alice")
			slot := slotOf(t, &p.sessions, last.ID)
			require.EqualValues(t, 1, slot)
			st := p.sessions.record(slot, p.sessions.session(slot))
			wrong(&st)
			k := sessionKey(p.index, last.ID)
			require.NoError(t, eng.store.put(k, st.encode(nil)))
			require.NoError(t, eng.Close())

			again, err := Open("data", Options{fs: eng.opts.fs, ReserveBytes: -1})
			if err == nil {
				require.NoError(t, again.Close())
			}
			require.ErrorContains(t, err, "damaged session")
			require.ErrorContains(t, err, fmt.Sprintf("%x", []byte(k)))
		})
	}
}

func TestAnIDWhoseNumberCannotBeIsRefusedOnOpening(t *testing.T) {
	eng, _, _ := openSmall(t, 1000)
	k := idKey(0, 1<<24-1)
	require.NoError(t, eng.store.put(k, []byte("zoe")))
	require.NoError(t, eng.Close())

	again, err := Open("data", Options{fs: eng.opts.fs, ReserveBytes: -1})
	if err == nil {
		require.NoError(t, again.Close())
	}
	require.ErrorContains(t, err, fmt.Sprintf("damaged id at key %x", []byte(k)))
}

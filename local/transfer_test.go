package local

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/enginetest"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// newCheckedStore makes a store in which check must find no fault in the end.
func newCheckedStore(t testing.TB) enginetest.Store {
	s := &memStore{vfs.NewCrashableMem()}
	t.Cleanup(func() {
		report, err := Check("data", Options{fs: s.fs, ReserveBytes: -1}, time.Time{})
		require.NoError(t, err)
		require.Empty(t, report.Faults)
	})
	return s
}

func TestTransfer(t *testing.T) {
	enginetest.RunTransfer(t, newCheckedStore, newCheckedStore)
	enginetest.RunRoundTrip(t, newCheckedStore, newCheckedStore)
}

// TestBansThatLeaveThePartitionOpen enters bans of erased users from an engine
// of fewer partitions.
func TestBansThatLeaveThePartitionOpen(t *testing.T) {
	const until = time.Hour
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	for bits := range uint8(8) {
		roll := openTransfer(t, now)
		key := roll.banKeyOf("alice")
		home := uint16(rollcall.HashUser("alice")) & (1<<bits - 1)
		kept := rollcall.BanSnapshot{Ban: rollcall.Ban{Key: key, At: now, Until: now.Add(until)}, Home: home, Bits: bits}
		require.NoError(t, roll.engine.Import(t.Context(), now, []rollcall.UserSnapshot{{Bans: []rollcall.BanSnapshot{kept}}}))
		_, err := roll.Login(t.Context(), rollcall.Login{User: "alice"})
		require.Equal(t, rollcall.CodeUserBanned, rollcall.CodeOf(err), "%d bits", bits)
		page, err := roll.Bans(t.Context(), rollcall.PageRequest{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, 1, page.Total)

		_, err = roll.Ban(t.Context(), "alice", until, "again", "")
		require.NoError(t, err)
		page, err = roll.Bans(t.Context(), rollcall.PageRequest{Limit: 10})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		require.Equal(t, "alice", page.Items[0].User)
		require.NoError(t, roll.Unban(t.Context(), "alice"))
		page, err = roll.Bans(t.Context(), rollcall.PageRequest{Limit: 10})
		require.NoError(t, err)
		require.Empty(t, page.Items)
	}
}

// opened is a Roll and the engine under it.
type opened struct {
	*rollcall.Roll
	engine rollcall.Engine
	keys   *keyCatcher
	ctx    context.Context
}

// keyCatcher notes the key under which a ban was last looked for.
type keyCatcher struct {
	rollcall.Engine
	key rollcall.BanKey
}

func (c *keyCatcher) BanOf(ctx context.Context, at time.Time, user string, key rollcall.BanKey) (rollcall.Ban, bool, error) {
	c.key = key
	return c.Engine.BanOf(ctx, at, user, key)
}

// banKeyOf returns the key of a user's ban, which only the Roll can make.
func (o *opened) banKeyOf(user string) rollcall.BanKey {
	_, _ = o.BanOf(o.ctx, user)
	return o.keys.key
}

func openTransfer(t *testing.T, now time.Time) *opened {
	t.Helper()
	engine, err := Open("data", Options{fs: vfs.NewMem(), ReserveBytes: -1})
	require.NoError(t, err)
	keys := &keyCatcher{Engine: engine}
	roll, err := rollcall.New(keys, rollcall.Options{Clock: rollcall.NewManualClock(now), Secret: []byte("the secret of the tests of transfer")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return &opened{roll, engine, keys, t.Context()}
}

// TestMovingAmidLife exports and imports while all else goes on.
func TestMovingAmidLife(t *testing.T) {
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	from, to := openTransfer(t, now), openTransfer(t, now)
	users := 1000
	if testbudget.Long() {
		users = 3000
	}
	name := func(i int) string { return fmt.Sprintf("u%d", i) }
	for i := range users {
		_, err := from.Login(t.Context(), rollcall.Login{User: name(i)})
		require.NoError(t, err)
		if i%10 == 0 {
			require.NoError(t, from.AddFriends(t.Context(), name(i), false, rollcall.Friend{User: name(i + 1)}, rollcall.Friend{User: "both"}))
		}
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; !done.Load(); i++ {
				for _, at := range []*opened{from, to} {
					_, err := at.Login(t.Context(), rollcall.Login{User: fmt.Sprintf("new%d", i%500)})
					require.NoError(t, err)
					require.NoError(t, at.Beat(t.Context(), "both", name(i%users)+"x"))
					_, err = at.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 20}, Sort: rollcall.NewestSeen})
					require.NoError(t, err)
					require.NoError(t, at.AddFriends(t.Context(), "both", false, rollcall.Friend{User: name(i % users)}))
					require.NoError(t, at.Tick(t.Context()))
				}
			}
		})
	}
	var some []rollcall.UserSnapshot
	moved := 0
	flush := func() {
		require.NoError(t, to.engine.Import(t.Context(), now, some))
		moved += len(some)
		some = some[:0]
	}
	require.NoError(t, from.engine.Export(t.Context(), now, 0, func(d rollcall.UserSnapshot) error {
		if d.User[0] != 'u' || d.User[len(d.User)-1] == 'x' {
			return nil
		}
		if some = append(some, d); len(some) == 100 {
			flush()
		}
		return nil
	}, nil))
	flush()
	done.Store(true)
	wg.Wait()
	require.Equal(t, users, moved)
	for i := 0; i < users; i += 100 {
		page, err := to.Sessions(t.Context(), rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{name(i)}}, Page: rollcall.PageRequest{Limit: 10}})
		require.NoError(t, err)
		require.Equal(t, 1, page.Total)
	}
}

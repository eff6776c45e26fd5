package local

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// smallDisk is a file system that says how much room it has.
type smallDisk struct {
	vfs.FS
	free atomic.Uint64
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: d.free.Load(), TotalBytes: 1 << 30}, nil
}

func TestAFullDiskRefusesWritesUntilThereIsRoom(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.free.Store(1 << 30)
	e, err := Open("data", Options{fs: disk, ReserveBytes: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	clock := rollcall.NewManualClock(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC))
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	ctx := context.Background()
	in, err := roll.Login(ctx, rollcall.Login{User: "alice"})
	require.NoError(t, err)

	disk.free.Store(1<<20 - 1)
	require.ErrorIs(t, roll.Tick(ctx), rollcall.ErrStorageFull)
	require.ErrorIs(t, roll.Ready(ctx), rollcall.ErrStorageFull)
	_, err = roll.Login(ctx, rollcall.Login{User: "bob"})
	require.ErrorIs(t, err, rollcall.ErrStorageFull)
	_, err = roll.Kick(ctx, rollcall.Kick{User: "alice"})
	require.ErrorIs(t, err, rollcall.ErrStorageFull)
	_, err = roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err, "reads go on, and nothing acknowledged is lost")

	disk.free.Store(1 << 30)
	require.NoError(t, roll.Tick(ctx))
	require.NoError(t, roll.Ready(ctx))
	_, err = roll.Login(ctx, rollcall.Login{User: "bob"})
	require.NoError(t, err, "without a restart")
}

func TestAStoreWithoutRoomIsOpenedForReads(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewMem()}
	disk.free.Store(1 << 30)
	open := func() (*Engine, *rollcall.Roll) {
		e, err := Open("data", Options{fs: disk, ReserveBytes: 1 << 20})
		require.NoError(t, err)
		roll, err := rollcall.New(e, rollcall.Options{})
		require.NoError(t, err)
		return e, roll
	}
	ctx := t.Context()
	e, roll := open()
	in, err := roll.Login(ctx, rollcall.Login{User: "alice"})
	require.NoError(t, err)
	require.NoError(t, errors.Join(roll.Close(), e.Close()))

	disk.free.Store(1<<20 - 1)
	e, roll = open()
	require.ErrorIs(t, roll.Ready(ctx), rollcall.ErrStorageFull)
	_, err = roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err, "who is logged in gets in")
	_, err = roll.Login(ctx, rollcall.Login{User: "bob"})
	require.ErrorIs(t, err, rollcall.ErrStorageFull)

	disk.free.Store(1 << 30)
	require.Eventually(t, func() bool { return roll.Ready(ctx) == nil }, time.Minute, 10*time.Millisecond, "writes go on when there is room")
	_, err = roll.Login(ctx, rollcall.Login{User: "bob"})
	require.NoError(t, err)
	require.NoError(t, errors.Join(roll.Close(), e.Close()))
}

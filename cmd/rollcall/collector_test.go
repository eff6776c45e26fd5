package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALargeHeapHoldsLittleGarbage(t *testing.T) {
	last := mostRoom
	for live := uint64(0); live < 64<<30; live = live*5/4 + 1<<20 {
		room := roomOf(live)
		require.LessOrEqual(t, room, last, "%d bytes", live)
		require.GreaterOrEqual(t, room, leastRoom, "%d bytes", live)
		last = room
	}
	require.Equal(t, mostRoom, roomOf(roomBytes), "a small heap is collected as Go does by itself")
	require.Equal(t, 80, roomOf(roomBytes*5/4))
	require.Equal(t, leastRoom, last)
}

func TestTheServerLetsLittleGarbagePileUp(t *testing.T) {
	before := debug.SetGCPercent(mostRoom)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	kept := make([][1 << 20]byte, 300)

	(&app{ctx: t.Context(), environ: []string{"GOGC=100"}}).keepHeapSmall()()
	require.Equal(t, mostRoom, debug.SetGCPercent(mostRoom), "the variable has the last word")
	(&app{ctx: t.Context()}).keepHeapSmall()()
	require.Equal(t, leastRoom, debug.SetGCPercent(mostRoom))
	runtime.KeepAlive(kept)
}

package recency

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTallyAllocatesNothingWhenUsedAgain(t *testing.T) {
	var tally Tally
	var counts Seconds
	batch := func() {
		for i := range uint32(1000) {
			tally.Add(epoch+i*977, 1)
			tally.Add(epoch+i*311, -1)
		}
		tally.Flush(&counts)
	}
	batch()
	require.Zero(t, testing.AllocsPerRun(100, batch))
	require.Zero(t, counts.Sum(0, 1<<32-1))
	require.EqualValues(t, 102, counts.Sum(epoch+977, epoch+977))
}

func TestTallyGivesUpALargeIndex(t *testing.T) {
	var tally Tally
	var counts Seconds
	for i := range uint32(50_000) {
		tally.Add(epoch+i, 2)
	}
	tally.Flush(&counts)
	require.EqualValues(t, 100_000, counts.Sum(epoch, epoch+49_999))
	require.Empty(t, tally.index)
	tally.Add(epoch, -2)
	tally.Flush(&counts)
	require.Zero(t, counts.Sum(epoch, epoch))
}

func TestTallyNamesASecondOnce(t *testing.T) {
	var tally Tally
	for range 3 {
		for i := range uint32(1000) {
			tally.Add(epoch+i, 1)
		}
	}
	require.Len(t, tally.changes, 1000)
}

func TestTallyReset(t *testing.T) {
	var tally Tally
	var counts Seconds
	tally.Add(epoch, 5)
	tally.Reset()
	tally.Add(epoch+1, 1)
	tally.Flush(&counts)
	require.EqualValues(t, 1, counts.Sum(0, 1<<32-1))
}

package udpbeat_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/udpbeat"
)

// counterModel knows every counter that a sender was accepted with.
type counterModel struct {
	top      uint64
	accepted map[uint64]bool
}

func (m *counterModel) accept(counter uint64) bool {
	if m.accepted == nil {
		m.accepted = map[uint64]bool{}
	}
	tooOld := len(m.accepted) > 0 && counter < m.top && m.top-counter >= 64
	if tooOld || m.accepted[counter] {
		return false
	}
	m.accepted[counter] = true
	m.top = max(m.top, counter)
	return true
}

func TestACounterIsAcceptedOnceAndOutOfOrderWithinSixtyFour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_000_000, 0)
		counters := udpbeat.NewCounters(now, 1000)
		models := map[byte]*counterModel{}
		base := rapid.SampledFrom([]uint64{0, 1, 1 << 31, 1<<64 - 200}).Draw(t, "base")
		for range rapid.IntRange(1, 200).Draw(t, "datagrams") {
			id := rapid.Byte().Draw(t, "sender") % 3
			counter := base + rapid.Uint64Range(0, 150).Draw(t, "counter")
			if models[id] == nil {
				models[id] = &counterModel{}
			}
			require.Equal(t, models[id].accept(counter), counters.Accept(now, id, counter), "sender %d, counter %d", id, counter)
		}
	})
}

func TestACounterIsKeptWhileItsDatagramIsGood(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	counters := udpbeat.NewCounters(now, 1000)
	require.True(t, counters.Accept(now, 1, 5))

	// A datagram that was 60 s ahead is good for two minutes.
	for range 120 {
		now = now.Add(time.Second)
		require.False(t, counters.Accept(now, 1, 5), "after %v", now.Sub(time.Unix(1_000_000, 0)))
	}
	now = now.Add(2 * udpbeat.Generation)
	require.True(t, counters.Accept(now, 1, 5), "a sender that was silent for long starts again")
}

func TestCountersOfManySendersAreBounded(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	counters := udpbeat.NewCounters(now, 10)
	for id := range 255 {
		require.True(t, counters.Accept(now, byte(id), 1))
		require.LessOrEqual(t, counters.Kept(), 20)
	}
}

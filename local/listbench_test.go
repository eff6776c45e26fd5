package local

import (
	"encoding/binary"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// BenchmarkListAtTheInstantAllAreDue has 500,000 sessions reach their deadline at one
// instant, and lists the first page right then: it has to leave all of them out.
func BenchmarkListAtTheInstantAllAreDue(b *testing.B) {
	const n = 500_000
	for b.Loop() {
		b.StopTimer()
		e, err := Open("", Options{InMemory: true})
		require.NoError(b, err)
		clock := rollcall.NewManualClock(startOfTests())
		roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
		require.NoError(b, err)
		importSessions(b, roll, clock.Now(), n)
		for range rollcall.DefaultIdleTimeout / (4 * time.Second) {
			clock.Advance(4 * time.Second)
			_, err := roll.KnownCount(b.Context())
			require.NoError(b, err)
		}
		b.StartTimer()
		page, err := roll.Sessions(b.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 20}})
		b.StopTimer()
		require.NoError(b, err)
		require.Zero(b, page.Total)
		require.NoError(b, roll.Close())
		require.NoError(b, e.Close())
		b.StartTimer()
	}
}

// importSessions gives n users a session each.
func importSessions(b *testing.B, roll *rollcall.Roll, at time.Time, n int) {
	some := make([]rollcall.UserSnapshot, 0, rollcall.MaxSnapshots)
	for i := range n {
		user := strconv.Itoa(i)
		s := rollcall.SessionSnapshot{Idle: rollcall.DefaultIdleTimeout, Session: rollcall.Session{
			ID: rollcall.NewSessionID(at, user, uint64(i)), User: user, Kind: rollcall.DefaultKind, App: "due",
			LoginAt: at, SeenAt: at, ExpiresAt: at.Add(rollcall.DefaultIdleTimeout),
		}}
		binary.BigEndian.PutUint64(s.Token[:], rollcall.HashNumber(uint64(i)))
		some = append(some, rollcall.UserSnapshot{User: user, Sessions: []rollcall.SessionSnapshot{s}})
		if len(some) == cap(some) || i == n-1 {
			require.NoError(b, roll.Import(b.Context(), some...))
			some = some[:0]
		}
	}
}

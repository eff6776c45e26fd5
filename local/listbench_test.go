package local

import (
	"encoding/binary"
	"fmt"
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

// BenchmarkAFilterWithoutAnIndex looks for sessions among 500,000, in the order of their slots
// and in that of a few positions.
func BenchmarkAFilterWithoutAnIndex(b *testing.B) {
	const n = 500_000
	roll := withSessions(b, n)
	for name, f := range map[string]rollcall.SessionFilter{
		"name":                {Name: "name 7"},
		"name, shared by few": {Name: "name 777"},
		"attribute":           {Attrs: map[string]string{"city": "city-7"}},
		"common attribute":    {Attrs: map[string]string{"plan": "plan-7"}},
		"unique attribute":    {Attrs: map[string]string{"trace": "00000007"}},
		"seen":                {SeenWithin: time.Minute},
		"name and app":        {Name: "name 7", App: "due"},
		"name and user":       {Name: "name 7", Users: []string{"7"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := roll.Sessions(b.Context(), rollcall.SessionQuery{Filter: f, Page: rollcall.PageRequest{Limit: 20}})
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/session")
		})
	}
}

// BenchmarkAnyPageByNumber takes pages of 20 of 1,000,000 sessions, here and there.
func BenchmarkAnyPageByNumber(b *testing.B) {
	const n = 1_000_000
	roll := withSessions(b, n)
	for i := 0; b.Loop(); i++ {
		_, err := roll.Sessions(b.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 20, Number: 1 + i*7919%(n/20)}})
		require.NoError(b, err)
	}
}

// withSessions returns a Roll in memory with n sessions, which lasts as long as the benchmark.
func withSessions(b *testing.B, n int) *rollcall.Roll {
	e, err := Open("", Options{InMemory: true})
	require.NoError(b, err)
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(e, rollcall.Options{Clock: clock})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, roll.Close())
		require.NoError(b, e.Close())
	})
	importSessions(b, roll, clock.Now(), n)
	return roll
}

// importSessions gives n users a session each.
func importSessions(b *testing.B, roll *rollcall.Roll, at time.Time, n int) {
	some := make([]rollcall.UserSnapshot, 0, rollcall.MaxSnapshots)
	for i := range n {
		user := strconv.Itoa(i)
		login := at.Add(-time.Duration(i) * time.Millisecond)
		s := rollcall.SessionSnapshot{Idle: rollcall.DefaultIdleTimeout, Session: rollcall.Session{
			ID: rollcall.NewSessionID(login, user, uint64(i)), User: user, Kind: rollcall.DefaultKind, App: "due",
			LoginAt: login, SeenAt: at, ExpiresAt: at.Add(rollcall.DefaultIdleTimeout),
			Name: fmt.Sprint("name ", i%1000),
			Attrs: map[string]string{
				"city": fmt.Sprint("city-", i%997), "plan": fmt.Sprint("plan-", i%10), "ref": fmt.Sprint("campaign-", i%991),
				"ver": fmt.Sprint("2.", i%97), "req": fmt.Sprintf("%08x", i*7), "trace": fmt.Sprintf("%08x", i),
			},
		}}
		binary.BigEndian.PutUint64(s.Token[:], rollcall.HashNumber(uint64(i)))
		some = append(some, rollcall.UserSnapshot{User: user, Sessions: []rollcall.SessionSnapshot{s}})
		if len(some) == cap(some) || i == n-1 {
			require.NoError(b, roll.Import(b.Context(), some...))
			some = some[:0]
		}
	}
}

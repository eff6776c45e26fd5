package local

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// BenchmarkTheBacklogIsSorted sorts what 500 first logins leave for the tables.
func BenchmarkTheBacklogIsSorted(b *testing.B) {
	eng, err := Open("", Options{InMemory: true})
	require.NoError(b, err)
	roll, err := rollcall.New(eng, rollcall.Options{})
	require.NoError(b, err)
	l := &eng.store.backlog
	var queue []byte
	var entries uint32
	l.applying.Lock()
	for i := range 500 {
		_, err := roll.Login(b.Context(), rollcall.Login{User: fmt.Sprint("user", i), App: "shop", Device: "ios"})
		require.NoError(b, err)
	}
	queue, entries, _ = l.take()
	require.NotZero(b, entries)
	for b.Loop() {
		require.NoError(b, l.sort(queue, entries))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/login")
	l.ended = errors.New("taken away for the benchmark")
	l.applying.Unlock()
	_ = roll.Close()
	_ = eng.Close()
}

package coldcache_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/coldcache"
)

func fill(n uint32) func(*coldcache.Month) error {
	return func(m *coldcache.Month) error {
		for i := range n {
			m.Add(int(i%2), int32(i%3), i)
		}
		return nil
	}
}

func TestLoadFillsOnce(t *testing.T) {
	months := coldcache.New(2, 1<<20)
	var fills atomic.Int32
	var work sync.WaitGroup
	for range 20 {
		work.Go(func() {
			m, err := months.Load(coldcache.Key{Kind: "user", Month: 202601}, func(m *coldcache.Month) error {
				fills.Add(1)
				return fill(6)(m)
			})
			if err != nil || !m.Set(1, 0).Contains(3) || m.Set(0, 0).Contains(3) || m.Set(0, 9) != nil {
				t.Error("a month is not what it was filled with")
			}
		})
	}
	work.Wait()
	require.EqualValues(t, 1, fills.Load())
	require.Positive(t, months.Bytes())
	months.Forget(func(coldcache.Key) bool { return false })
	require.Zero(t, months.Bytes())
	_, err := months.Load(coldcache.Key{Kind: "user", Month: 202601}, func(*coldcache.Month) error {
		fills.Add(1)
		return nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, fills.Load())
}

func TestFailureIsNotHeld(t *testing.T) {
	months := coldcache.New(2, 1<<20)
	k := coldcache.Key{Month: 202601}
	_, err := months.Load(k, func(*coldcache.Month) error { return errors.New("away") })
	require.Error(t, err)
	m, err := months.Load(k, fill(6))
	require.NoError(t, err)
	require.NotNil(t, m.Set(0, 0))
}

func TestBudget(t *testing.T) {
	months := coldcache.New(2, 1000)
	for i := range int32(100) {
		_, err := months.Load(coldcache.Key{Month: i}, fill(60))
		require.NoError(t, err)
		require.LessOrEqual(t, months.Bytes(), int64(2000))
	}
	fills := 0
	_, err := months.Load(coldcache.Key{Month: 99}, func(*coldcache.Month) error { fills++; return nil })
	require.NoError(t, err)
	require.Zero(t, fills, "the one used last is held")
}

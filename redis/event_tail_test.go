package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestTheLogHasOneOrderOnAllServers has readers go on at another server with each
// page, behind the last event alone, while all servers write.
func TestTheLogHasOneOrderOnAllServers(t *testing.T) {
	t.Parallel()
	for _, d := range deployments[:2] {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			oneOrder(t, rollsOn(t, d.shared(t), 3))
		})
	}
}

// rollsOn opens a store as several servers do.
func rollsOn(t *testing.T, url string, servers int) []*rollcall.Roll {
	t.Helper()
	store := on(url, 16)(t)
	rolls := make([]*rollcall.Roll, servers)
	for i := range rolls {
		e, err := store.Open()
		require.NoError(t, err)
		rolls[i], err = rollcall.New(e, rollcall.Options{Secret: make([]byte, 32)})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, rolls[i].Close())
			require.NoError(t, e.Close())
		})
	}
	return rolls
}

func oneOrder(t *testing.T, rolls []*rollcall.Roll) {
	const readers, writers, bans, lastUser = 3, 6, 60, "the last one"
	var all sync.WaitGroup
	got := make([][]rollcall.EventID, readers)
	for n := range readers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			rng, after := rand.New(rand.NewPCG(7, uint64(n))), rollcall.EventID("")
			for {
				at, limit := rolls[rng.IntN(len(rolls))], 1+rng.IntN(10)
				read := at.EventsAfter
				if rng.IntN(2) == 0 {
					read = at.Tail
				}
				events, err := read(ctx, after, limit)
				if !assert.NoError(t, err, "reader %d behind %q", n, after) {
					return
				}
				for _, e := range events {
					got[n] = append(got[n], e.ID)
					if after = e.ID; e.User == lastUser {
						return
					}
				}
			}
		})
	}
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for n := range bans {
				_, err := rolls[w%len(rolls)].Ban(t.Context(), fmt.Sprintf("u%d-%d", w, n), time.Hour, "", "")
				assert.NoError(t, err)
			}
		})
	}
	writing.Wait()
	_, err := rolls[0].Ban(t.Context(), lastUser, time.Hour, "", "")
	require.NoError(t, err)
	all.Wait()

	log, err := rolls[0].EventsAfter(t.Context(), "", rollcall.MaxLimit)
	require.NoError(t, err)
	ids := make([]rollcall.EventID, len(log))
	for i, e := range log {
		ids[i] = e.ID
	}
	require.Len(t, ids, writers*bans+1)
	require.IsIncreasing(t, ids)
	for n := range got {
		require.True(t, slices.Equal(ids, got[n]), "reader %d got %d events, and not the %d of the log in their order", n, len(got[n]), len(ids))
	}
}

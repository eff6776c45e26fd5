package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestOneOfManyGetsTheLease(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		servers := []*DB{open(t, dsn), open(t, dsn)}
		for round := range 5 {
			var mu sync.Mutex
			var won []*Lease
			var racers sync.WaitGroup
			for i := range 12 {
				racers.Go(func() {
					l, err := servers[i%2].Acquire(t.Context(), fmt.Sprintf("racer %d", i), time.Hour)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won = append(won, l)
					} else if !errors.Is(err, ErrHeld) || rollcall.CodeOf(err) != rollcall.CodeConflict {
						t.Errorf("racer %d: %v", i, err)
					}
				})
			}
			racers.Wait()
			require.Len(t, won, 1, "round %d", round)
			_, err := servers[0].Acquire(t.Context(), "late", time.Hour)
			require.ErrorContains(t, err, won[0].Owner())
			require.NoError(t, won[0].Renew(t.Context()))
			require.NoError(t, won[0].Release(t.Context()))
			require.ErrorIs(t, won[0].Renew(t.Context()), ErrLeaseLost)
			require.NoError(t, won[0].Release(t.Context()))
		}
	})
}

func TestALostLeaseWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		late, err := open(t, dsn).Acquire(t.Context(), "late", 100*time.Millisecond)
		require.NoError(t, err)
		run, err := late.BeginRun(t.Context())
		require.NoError(t, err)
		db := open(t, dsn)
		takeOver(t, db)
		change := []Change{{Row: Row{"u", "user", 202601, 1}}}
		offload := []OffloadedDay{{Kind: "user", Day: day(t, "2026-01-01")}}
		for name, write := range map[string]func(ctx context.Context) error{
			"Renew":     late.Renew,
			"Merge":     func(ctx context.Context) error { return late.Merge(ctx, change) },
			"BeginRun":  func(ctx context.Context) error { _, err := late.BeginRun(ctx); return err },
			"Progress":  func(ctx context.Context) error { return late.Progress(ctx, run.ID, "p", 1) },
			"FinishRun": func(ctx context.Context) error { return late.FinishRun(ctx, run.ID, "") },
			"Offload":   func(ctx context.Context) error { return late.Offload(ctx, run.ID, offload) },
			"Restore":   func(ctx context.Context) error { return late.Restore(ctx, offload) },
		} {
			err := write(t.Context())
			requireCode(t, rollcall.CodeConflict, err)
			require.ErrorIs(t, err, ErrLeaseLost, name)
		}
		require.NoError(t, late.Release(t.Context()))
		_, err = db.Acquire(t.Context(), "third", time.Hour)
		require.ErrorIs(t, err, ErrHeld, "the old lease gave up the new one")
		require.Empty(t, all(t.Context(), t, db))
		offloaded, err := db.OffloadedDays(t.Context())
		require.NoError(t, err)
		require.Empty(t, offloaded)
	})
}

func TestALeaseOutlastsItsTimeUntilItIsTaken(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		db := open(t, dsn)
		l, err := db.Acquire(t.Context(), "slow", 100*time.Millisecond)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			var n int
			lapsed := "SELECT count(*) FROM rollcall_archive_lease WHERE expires_at <= " + db.dialect.now
			require.NoError(t, db.sql.QueryRowContext(t.Context(), lapsed).Scan(&n))
			return n == 1
		}, patience, 5*time.Millisecond, "the lease lapses")
		require.NoError(t, l.Merge(t.Context(), []Change{{Row: Row{"u", "user", 202601, 1}}}))
		l.ttl = time.Hour
		require.NoError(t, l.Renew(t.Context()))
		_, err = open(t, dsn).Acquire(t.Context(), "other", time.Hour)
		require.ErrorIs(t, err, ErrHeld)
	})
}

func TestTakingTheLeaseWaitsForAWriteUnderWay(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		dsn := fresh()
		slow, err := open(t, dsn).Acquire(t.Context(), "slow", 100*time.Millisecond)
		require.NoError(t, err)
		other := open(t, dsn)
		taken := make(chan error, 1)
		require.NoError(t, slow.write(t.Context(), func(s session) error {
			go func() {
				for {
					_, err := other.Acquire(t.Context(), "other", time.Hour)
					if !errors.Is(err, ErrHeld) {
						taken <- err
						return
					}
				}
			}()
			select {
			case err := <-taken:
				t.Errorf("the lease was taken in the middle of a write: %v", err)
			case <-time.After(300 * time.Millisecond): // the lease lapses meanwhile
			}
			return nil
		}))
		select {
		case err := <-taken:
			require.NoError(t, err)
		case <-time.After(patience):
			require.FailNow(t, "the lease cannot be taken")
		}
		require.ErrorIs(t, slow.Renew(t.Context()), ErrLeaseLost)
	})
}

func TestAcquireChecksWhatItIsGiven(t *testing.T) {
	db := open(t, "sqlite:"+t.TempDir()+"/a.db")
	for owner, ttl := range map[string]time.Duration{
		"": time.Hour, strings.Repeat("o", 129): time.Hour, "a\nb": time.Hour, "brief": time.Millisecond, "long": MaxLease + 1,
	} {
		_, err := db.Acquire(t.Context(), owner, ttl)
		requireCode(t, rollcall.CodeInvalidArgument, err)
	}
}

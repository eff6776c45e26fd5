package archive_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// listing is an archive that lists days, and counts how often it is asked.
type listing struct {
	rollcall.Archive
	days  []rollcall.OffloadedDay
	err   error
	asked int
	hangs chan struct{} // if set, a question waits for it to be closed
}

func (a *listing) OffloadedDays(context.Context) ([]rollcall.OffloadedDay, error) {
	a.asked++
	if a.hangs != nil {
		<-a.hangs
	}
	return a.days, a.err
}

func TestTheListOfOffloadedDaysIsReadAgainWhenItIsOldOrOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &listing{days: []rollcall.OffloadedDay{{Kind: "user", Day: 7}}}
		v := rollcall.NewArchiveView(a)
		for range 3 {
			days, err := v.OffloadedDays(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, map[rollcall.KindDay]bool{{Kind: "user", Day: 7}: true}, days)
		}
		require.Equal(t, map[rollcall.Day]bool{7: true}, v.OffloadedDates(t.Context()))
		require.Equal(t, 1, a.asked)
		require.True(t, v.UpToDate())
		again := func(asked int, anew bool) {
			_, err := v.OffloadedDays(t.Context(), anew)
			require.NoError(t, err)
			require.Equal(t, asked, a.asked)
		}
		v.Outdate()
		require.False(t, v.UpToDate())
		again(2, false)
		again(3, true)
		<-time.After(11 * time.Second) // time of the bubble
		again(4, false)
	})
}

func TestAnArchiveThatFailsOrIsNotConfiguredIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &listing{days: []rollcall.OffloadedDay{{Kind: "user", Day: 7}}}
		v := rollcall.NewArchiveView(a)
		require.Len(t, v.OffloadedDates(t.Context()), 1)
		a.err = errors.New("away")
		v.Outdate()
		_, err := v.OffloadedDays(t.Context(), false)
		require.ErrorIs(t, err, rollcall.ErrArchiveAway)
		require.ErrorIs(t, err, rollcall.ErrUnavailable)
		require.ErrorIs(t, err, a.err)
		require.Len(t, v.OffloadedDates(t.Context()), 1, "what was known before is used")
		require.Equal(t, 2, a.asked, "an archive that just failed is not asked again")

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = v.OffloadedDays(ended, true)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, rollcall.ErrArchiveAway)

		for _, none := range []*rollcall.ArchiveView{nil, rollcall.NewArchiveView(nil)} {
			require.False(t, none.Configured())
			_, err = none.OffloadedDays(t.Context(), false)
			require.ErrorIs(t, err, rollcall.ErrUnavailable)
			require.ErrorIs(t, none.EraseUser(t.Context(), "alice"), rollcall.ErrUnavailable)
			require.Empty(t, none.OffloadedDates(t.Context()))
		}
	})
}

func TestAnArchiveThatHangsIsWaitedForTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &listing{hangs: make(chan struct{})}
		v := rollcall.NewArchiveView(a)
		read := make(chan error)
		go func() {
			_, err := v.OffloadedDays(t.Context(), false)
			read <- err
		}()
		synctest.Wait()
		began := time.Now()
		require.Empty(t, v.OffloadedDates(t.Context()), "another caller's reading is not waited for longer")
		require.Equal(t, 2*time.Second, time.Since(began))
		close(a.hangs)
		require.NoError(t, <-read)

		began = time.Now()
		away, err := v.Patiently(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		require.NoError(t, err)
		require.True(t, away)
		require.Equal(t, 2*time.Second, time.Since(began))

		away, err = v.Patiently(t.Context(), func(context.Context) error { return rollcall.ErrArchiveAway })
		require.NoError(t, err)
		require.True(t, away)
		wrong := errors.New("something else")
		away, err = v.Patiently(t.Context(), func(context.Context) error { return wrong })
		require.ErrorIs(t, err, wrong)
		require.False(t, away)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		away, err = v.Patiently(ended, func(ctx context.Context) error { return ctx.Err() })
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, away)
	})
}

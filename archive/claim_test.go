package archive

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// dieHolding has a runner take the lease and then be no more: what it locked is free,
// and what it told the database stands.
func dieHolding(t *testing.T, r *Runner) {
	t.Helper()
	_, c, err := r.acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.close())
}

func claimant(t *testing.T, db *DB, log *OffloadLog) *Runner {
	t.Helper()
	r, err := NewRunner(db, newHotStore(), RunnerOptions{OffloadLog: log, Lease: time.Hour})
	require.NoError(t, err)
	return r
}

func offloadLogIn(t *testing.T, dir string) *OffloadLog {
	t.Helper()
	log, err := OpenOffloadLog(dir)
	require.NoError(t, err)
	return log
}

func TestTheLeaseOfADeadProcessWithTheSameLogIsTakenAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, fresh func() string) {
		db := open(t, fresh())
		dir := t.TempDir()
		dieHolding(t, claimant(t, db, offloadLogIn(t, dir)))

		_, err := claimant(t, db, offloadLogIn(t, t.TempDir())).Run(t.Context())
		require.ErrorIs(t, err, ErrHeld, "another server cannot know that it is dead")
		_, err = db.Acquire(t.Context(), "somebody", time.Hour)
		require.ErrorIs(t, err, ErrHeld)

		run, err := claimant(t, db, offloadLogIn(t, dir)).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, Completed, run.State)
		_, err = claimant(t, db, offloadLogIn(t, t.TempDir())).Run(t.Context())
		require.NoError(t, err, "the lease was given up")
	})
}

func TestTheLeaseOfALivingProcessWithTheSameLogIsRespected(t *testing.T) {
	db := open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	dir := t.TempDir()
	living := claimant(t, db, offloadLogIn(t, dir))
	l, c, err := living.acquire(t.Context())
	require.NoError(t, err)
	for range 2 {
		_, err = claimant(t, db, offloadLogIn(t, dir)).Run(t.Context())
		require.ErrorIs(t, err, ErrHeld)
		_, err = claimant(t, db, offloadLogIn(t, dir)).Restore(t.Context(), rollcall.DayRange{To: 1})
		require.ErrorIs(t, err, ErrHeld)
	}
	require.NoError(t, l.Renew(t.Context()))
	require.NoError(t, living.release(t.Context(), l, c))
	_, err = claimant(t, db, offloadLogIn(t, dir)).Run(t.Context())
	require.NoError(t, err)
}

// TestWhoDiedIsRememberedUntilTheDatabaseAnswers lets processes die one after the
// other, of which the database heard of the first alone.
func TestWhoDiedIsRememberedUntilTheDatabaseAnswers(t *testing.T) {
	db := open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	dir := t.TempDir()
	dieHolding(t, claimant(t, db, offloadLogIn(t, dir)))
	away, cancel := context.WithCancel(t.Context())
	cancel()
	for range maxClaims - 1 {
		_, _, err := claimant(t, db, offloadLogIn(t, dir)).acquire(away)
		requireCode(t, rollcall.CodeUnavailable, err)
	}
	_, err := claimant(t, db, offloadLogIn(t, dir)).Run(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(dir, claimName)) //nolint:gosec // the test's own
	require.NoError(t, err)
	require.Len(t, holdersIn(string(text)), 1, "the database has answered: %s", text)
}

func TestADamagedClaimNamesNobody(t *testing.T) {
	db := open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, claimName), []byte("\x00\xff'; --\nABCDEFGHIJKLMNOPQRSTUVWXY\x00\n"), 0o600))
	_, err := claimant(t, db, offloadLogIn(t, dir)).Run(t.Context())
	require.NoError(t, err)
}

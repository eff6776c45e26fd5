package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// backedUp is a file system with a store under "data" and the copies of it.
type backedUp struct {
	*require.Assertions
	t     *testing.T
	fs    vfs.FS
	clock *rollcall.ManualClock
}

func (b *backedUp) open(dir string) (*Engine, *rollcall.Roll) {
	eng, err := Open(dir, Options{fs: b.fs, ReserveBytes: -1})
	b.NoError(err)
	roll, err := rollcall.New(eng, rollcall.Options{Clock: b.clock, Secret: []byte("the secret of the tests of backup")})
	b.NoError(err)
	return eng, roll
}

// copyTo writes a backup into a directory.
func (b *backedUp) copyTo(ctx context.Context, roll *rollcall.Roll, dir string) error {
	return roll.Backup(ctx, func(f rollcall.BackupFile) error {
		name := path.Join(dir, f.Name)
		if err := b.fs.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		out, err := b.fs.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		n, err := io.Copy(out, f.Content)
		if n != f.Size {
			err = errors.Join(err, fmt.Errorf("%s has %d bytes, not %d", f.Name, n, f.Size))
		}
		return errors.Join(err, out.Close())
	})
}

// backupLogins is how many users log in beside one backup. Each copy is checked record by
// record, so the work of the test is not to grow with the speed of the logins.
const backupLogins = 400

// acknowledged are sessions of which a caller was told.
type acknowledged struct {
	mu           sync.Mutex
	live, kicked []rollcall.SessionID
}

// loginsAndKicks logs users in, and shows out a third of them.
func (a *acknowledged) loginsAndKicks(ctx context.Context, roll *rollcall.Roll, worker int) error {
	for i := range backupLogins / 4 {
		in, err := roll.Login(ctx, rollcall.Login{User: fmt.Sprintf("u%d", i), Attrs: map[string]string{"pad": strings.Repeat("x", 200)}})
		if err != nil {
			return err
		}
		list := &a.live
		if i%3 == worker%3 {
			if _, err := roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID}); err != nil {
				return err
			}
			list = &a.kicked
		}
		a.mu.Lock()
		*list = append(*list, in.Session.ID)
		a.mu.Unlock()
	}
	return nil
}

// soFar returns the sessions known by now.
func (a *acknowledged) soFar() (live, kicked []rollcall.SessionID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.live), slices.Clone(a.kicked)
}

// TestABackupHasAllThatWasAcknowledgedBeforeIt makes backups while users log in and are
// shown out, and opens each.
func TestABackupHasAllThatWasAcknowledgedBeforeIt(t *testing.T) {
	b := &backedUp{require.New(t), t, vfs.NewMem(), rollcall.NewManualClock(startOfTests())}
	eng, roll := b.open("data")
	var told acknowledged
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 3, Most: 20, Time: 2 * time.Second}) {
		results := make(chan error, 4)
		for worker := range cap(results) {
			go func() { results <- told.loginsAndKicks(t.Context(), roll, worker) }()
		}
		live, kicked := told.soFar()
		dir := fmt.Sprintf("copy%d", round)
		b.NoError(b.copyTo(t.Context(), roll, dir))
		for range cap(results) {
			b.NoError(<-results)
		}
		b.holds(dir, live, kicked)
		b.NoError(b.fs.RemoveAll(dir))
	}
	_, err := b.fs.Stat(eng.store.backupDir())
	b.Error(err, "nothing of a copy is left")
	b.NoError(roll.Close())
	b.NoError(eng.Close())
}

// holds checks and opens a copy, in which some sessions live and others have ended.
func (b *backedUp) holds(dir string, live, kicked []rollcall.SessionID) {
	report, err := Check(dir, Options{fs: b.fs}, b.clock.Now())
	b.NoError(err)
	b.Empty(report.Faults)
	eng, roll := b.open(dir)
	for _, id := range live {
		s, err := roll.Session(b.t.Context(), id)
		b.NoError(err)
		b.Nil(s.End, "a session that began before the backup")
	}
	for _, id := range kicked {
		s, err := roll.Session(b.t.Context(), id)
		b.NoError(err)
		b.NotNil(s.End, "a session that ended before the backup")
	}
	_, err = roll.Login(b.t.Context(), rollcall.Login{User: "later"})
	b.NoError(err, "a copy can be written")
	b.NoError(roll.Close())
	b.NoError(eng.Close())
}

// TestOneBackupAtATime also shows that commands go on while a reader of a backup rests, and
// that what an ended process left of a copy is removed.
func TestOneBackupAtATime(t *testing.T) {
	b := &backedUp{require.New(t), t, vfs.NewMem(), rollcall.NewManualClock(startOfTests())}
	eng, roll := b.open("data")
	in, err := roll.Login(t.Context(), rollcall.Login{User: "alice"})
	b.NoError(err)
	stopped := errors.New("the reader has had enough")
	err = roll.Backup(t.Context(), func(rollcall.BackupFile) error {
		b.Equal(rollcall.CodeConflict, rollcall.CodeOf(b.copyTo(t.Context(), roll, "second")))
		_, err := roll.Kick(t.Context(), rollcall.Kick{Session: in.Session.ID})
		b.NoError(err)
		b.NoError(eng.store.checkpoint(), "the tables are written meanwhile")
		return stopped
	})
	b.ErrorIs(err, stopped)
	b.NoError(b.copyTo(t.Context(), roll, "third"))
	b.holds("third", nil, []rollcall.SessionID{in.Session.ID})
	b.NoError(roll.Close())
	b.NoError(eng.Close())

	b.NoError(b.fs.MkdirAll("data/backup/journal", 0o700))
	eng, roll = b.open("data")
	_, err = b.fs.Stat("data/backup")
	b.Error(err)
	b.NoError(roll.Close())
	b.NoError(eng.Close())
}

func TestAStoreInMemoryHasNoBackup(t *testing.T) {
	eng, err := Open("", Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(eng, rollcall.Options{Clock: rollcall.NewManualClock(startOfTests())})
	require.NoError(t, err)
	err = roll.Backup(t.Context(), func(rollcall.BackupFile) error { return nil })
	require.Equal(t, rollcall.CodeConflict, rollcall.CodeOf(err))
	require.NoError(t, roll.Close())
	require.NoError(t, eng.Close())
}

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
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

// TestABackupHasAllThatWasAcknowledgedBeforeIt makes backups while users log in and are
// shown out, and opens each.
func TestABackupHasAllThatWasAcknowledgedBeforeIt(t *testing.T) {
	b := &backedUp{require.New(t), t, vfs.NewMem(), rollcall.NewManualClock(startOfTests())}
	eng, roll := b.open("data")
	var done atomic.Bool
	var wg sync.WaitGroup
	t.Cleanup(func() {
		done.Store(true)
		wg.Wait()
		b.NoError(roll.Close())
		b.NoError(eng.Close())
	})
	var mu sync.Mutex
	live, kicked := map[rollcall.SessionID]bool{}, map[rollcall.SessionID]bool{}
	for worker := range 4 {
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				in, err := roll.Login(t.Context(), rollcall.Login{User: fmt.Sprintf("u%d", i%500), Attrs: map[string]string{"pad": strings.Repeat("x", 200)}})
				if err != nil {
					t.Errorf("login: %v", err)
					return
				}
				if i%3 == worker%3 {
					_, err := roll.Kick(t.Context(), rollcall.Kick{Session: in.Session.ID})
					if err != nil {
						t.Errorf("kick: %v", err)
						return
					}
				}
				mu.Lock()
				if i%3 == worker%3 {
					kicked[in.Session.ID] = true
				} else {
					live[in.Session.ID] = true
				}
				mu.Unlock()
			}
		})
	}
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 4, Most: 40, Time: 2 * time.Second}) {
		mu.Lock()
		wantLive, wantKicked := len(live), len(kicked)
		lives, kicks := make([]rollcall.SessionID, 0, wantLive), make([]rollcall.SessionID, 0, wantKicked)
		for id := range live {
			lives = append(lives, id)
		}
		for id := range kicked {
			kicks = append(kicks, id)
		}
		mu.Unlock()
		dir := fmt.Sprintf("copy%d", round)
		b.NoError(b.copyTo(t.Context(), roll, dir))
		b.holds(dir, lives, kicks)
		b.NoError(b.fs.RemoveAll(dir))
	}
	_, err := b.fs.Stat(eng.store.backupDir())
	b.Error(err, "nothing of a copy is left")
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

package local

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// smallStore is a store of a few users, and what it knows.
type smallStore struct {
	t     *testing.T
	clock *rollcall.ManualClock
	files map[string][]byte
	live  []rollcall.LoggedIn
	ended []rollcall.LoggedIn
}

func newSmallStore(t *testing.T, close bool) *smallStore {
	s := &smallStore{t: t, clock: rollcall.NewManualClock(startOfTests()), files: map[string][]byte{}}
	fs := vfs.NewCrashableMem()
	for round := range 3 {
		eng, roll, err := s.open(fs)
		require.NoError(t, err)
		for i := range 3 {
			in, err := roll.Login(t.Context(), rollcall.Login{User: fmt.Sprint("user", round, i)})
			require.NoError(t, err)
			s.live = append(s.live, in)
		}
		_, err = roll.Kick(t.Context(), rollcall.Kick{Session: s.live[0].Session.ID})
		require.NoError(t, err)
		s.ended, s.live = append(s.ended, s.live[0]), s.live[1:]
		_, err = roll.Ban(t.Context(), fmt.Sprint("banned", round), time.Hour, "", "")
		require.NoError(t, err)
		require.NoError(t, roll.AddFriends(t.Context(), "user00", false, rollcall.Friend{User: fmt.Sprint("user", round, 2)}))
		require.NoError(t, eng.Flush(t.Context()))
		if round == 2 && !close {
			crashed := fs.CrashClone(vfs.CrashCloneCfg{})
			require.NoError(t, eng.Close())
			fs = crashed
			break
		}
		require.NoError(t, eng.Close())
	}
	s.read(fs, "data")
	return s
}

func (s *smallStore) open(fs vfs.FS) (*Engine, *rollcall.Roll, error) {
	eng, err := Open("data", Options{fs: fs, ReserveBytes: -1})
	if err != nil {
		return nil, nil, err
	}
	roll, err := rollcall.New(eng, rollcall.Options{Clock: s.clock, Secret: make([]byte, 32)})
	if err != nil {
		_ = eng.Close() // it may be damaged
	}
	return eng, roll, err
}

func (s *smallStore) read(fs vfs.FS, dir string) {
	names, err := fs.List(dir)
	require.NoError(s.t, err)
	for _, name := range names {
		info, err := fs.Stat(dir + "/" + name)
		require.NoError(s.t, err)
		if info.IsDir() {
			s.read(fs, dir+"/"+name)
			continue
		}
		f, err := fs.Open(dir + "/" + name)
		require.NoError(s.t, err)
		b, err := io.ReadAll(f)
		require.NoError(s.t, err)
		require.NoError(s.t, f.Close())
		s.files[dir+"/"+name] = b
	}
}

// with returns the files with another content of one.
func (s *smallStore) with(name string, content []byte) vfs.FS {
	fs := vfs.NewMem()
	require.NoError(s.t, fs.MkdirAll("data/journal", 0o700))
	for other, b := range s.files {
		if other == name {
			b = content
		}
		f, err := fs.Create(other, vfs.WriteCategoryUnspecified)
		require.NoError(s.t, err)
		_, err = f.Write(append([]byte(nil), b...))
		require.NoError(s.t, err)
		require.NoError(s.t, f.Close())
	}
	return fs
}

// try opens the damaged store: it is refused, or it answers rightly.
func (s *smallStore) try(name string, content []byte, what string) (refused bool) {
	eng, roll, err := s.open(s.with(name, content))
	if err != nil {
		return true
	}
	defer eng.Close() // it may be damaged
	var lost []string
	for _, in := range s.live {
		if _, err := roll.Verify(s.t.Context(), rollcall.SessionRef{Token: in.Token}); err != nil && !s.isRefusal(err) {
			lost = append(lost, err.Error())
		}
	}
	for _, in := range s.ended {
		_, err := roll.Verify(s.t.Context(), rollcall.SessionRef{Token: in.Token})
		require.Error(s.t, err, "%s: an ended session lives", what)
		if rollcall.CodeOf(err) != rollcall.CodeSessionEnded && !s.isRefusal(err) {
			lost = append(lost, err.Error())
		}
	}
	for round := range 3 {
		if _, err := roll.Login(s.t.Context(), rollcall.Login{User: fmt.Sprint("banned", round)}); err == nil {
			lost = append(lost, "a ban")
		}
	}
	if len(lost) > 0 {
		// Only what nothing confirms may be missing, and that is reported.
		require.NotNil(s.t, eng.store.torn, "%s: silently lost: %s", what, lost)
		require.Equal(s.t, name, eng.store.torn.File, what)
	}
	return false
}

func (*smallStore) isRefusal(err error) bool {
	code := rollcall.CodeOf(err)
	return code == rollcall.CodeUnavailable || code == rollcall.CodeInternal
}

func TestADamagedByteIsRefusedOrChangesNoAnswer(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprint("closed: ", closed), func(t *testing.T) {
			t.Parallel()
			s := newSmallStore(t, closed)
			rng := rand.New(rand.NewPCG(1, 9)) //nolint:gosec // chance, not secrets
			var names []string
			for name := range s.files {
				names = append(names, name)
			}
			refused := 0
			for range testbudget.Rounds(t, testbudget.Budget{Least: 60, Time: 300 * time.Millisecond}) {
				name := names[rng.IntN(len(names))]
				b := s.files[name]
				if len(b) == 0 {
					continue
				}
				used := len(b)
				if strings.Contains(name, "/journal/") { // most of it is zeros
					used = min(used, 12<<10)
				}
				at := rng.IntN(used)
				bad := append([]byte(nil), b...)
				what := fmt.Sprintf("%s cut at %d", name, at)
				if rng.IntN(2) == 0 {
					bad = bad[:at]
				} else {
					bad[at] ^= 1 << rng.IntN(8)
					what = fmt.Sprintf("%s: byte %d flipped", name, at)
				}
				if s.try(name, bad, what) {
					refused++
				}
			}
			require.Positive(t, refused)
		})
	}
}

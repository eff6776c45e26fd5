package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// onRealDisk is the environment variable that makes the test binary play the
// part of a server on a disk that fails, and says in which way.
const onRealDisk = "ROLLCALL_TEST_DISK"

// TestWritesResumeOnARealDisk runs this binary again for each way in which a
// real file system refuses writes, as limits hold for a whole process.
func TestWritesResumeOnARealDisk(t *testing.T) {
	if how := os.Getenv(onRealDisk); how != "" {
		playServer(t, how, os.Getenv(onRealDisk+"_DIR"))
		return
	}
	for _, how := range []string{"full tmpfs", "size of files", "descriptors"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			if how == "full tmpfs" {
				if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
					require.Empty(t, os.Getenv("CI"), "a tmpfs has to be mounted where the project is tested: %v", err)
					t.Skipf("a tmpfs cannot be mounted here: %v", err)
				}
				defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestWritesResumeOnARealDisk$")
			cmd.Env = append(os.Environ(), onRealDisk+"="+how, onRealDisk+"_DIR="+dir)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			require.NoError(t, cmd.Run(), "%s", &out)
		})
	}
}

func playServer(t *testing.T, how, dir string) {
	data := filepath.Join(dir, "data")
	eng, err := Open(data, Options{ReserveBytes: -1})
	require.NoError(t, err)
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(eng, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	live := make(map[string]string)
	n := 0
	login := func() error {
		n++
		user := fmt.Sprint("user", n)
		in, err := roll.Login(t.Context(), rollcall.Login{User: user, UserAgent: strings.Repeat("x", 500)})
		if err == nil {
			live[user] = in.Token
		}
		return err
	}
	for range 100 {
		require.NoError(t, login())
	}

	undo, want := breakDisk(t, how, dir)
	require.Eventually(t, func() bool {
		eng.store.signal() // tables are written too
		err = login()
		return err != nil
	}, soon, time.Microsecond, "waited until a write is refused")
	require.Contains(t, want, rollcall.CodeOf(err), "%v", err)
	for user, token := range live {
		_, err := roll.Verify(t.Context(), rollcall.SessionRef{Token: token})
		require.NoError(t, err, "%s: reads go on", user)
	}
	undo()
	require.Eventually(t, func() bool { return login() == nil }, soon, time.Millisecond, "waited until writes are taken again")

	// All that was acknowledged is on the disk.
	require.NoError(t, eng.Close())
	if eng, err = Open(data, Options{ReserveBytes: -1}); err != nil {
		t.Fatal(err)
	}
	roll, err = rollcall.New(eng, rollcall.Options{Clock: clock})
	require.NoError(t, err)
	for user, token := range live {
		_, err := roll.Verify(t.Context(), rollcall.SessionRef{Token: token})
		require.NoError(t, err, "%s was acknowledged", user)
	}
	require.NoError(t, eng.Close())
}

// breakDisk makes the disk refuse writes in a way, until undo is called.
func breakDisk(t *testing.T, how, dir string) (undo func(), want []rollcall.Code) {
	full := []rollcall.Code{rollcall.CodeStorageFull}
	limit := func(resource int, value uint64) func() {
		var old syscall.Rlimit
		require.NoError(t, syscall.Getrlimit(resource, &old))
		require.NoError(t, syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: old.Max}))
		return func() { require.NoError(t, syscall.Setrlimit(resource, &old)) }
	}
	switch how {
	case "full tmpfs":
		ballast, err := os.Create(filepath.Join(dir, "ballast"))
		require.NoError(t, err)
		for err == nil {
			_, err = ballast.Write(make([]byte, 4096))
		}
		require.NoError(t, ballast.Close())
		return func() { require.NoError(t, os.Remove(ballast.Name())) }, full
	case "size of files":
		return limit(syscall.RLIMIT_FSIZE, 64<<10), full
	case "descriptors":
		var held []*os.File
		var err error
		for err == nil {
			var f *os.File
			if f, err = os.Open(os.DevNull); err == nil {
				held = append(held, f)
			}
		}
		require.True(t, errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE), "%v", err)
		return func() {
			for _, f := range held {
				require.NoError(t, f.Close())
			}
		}, []rollcall.Code{rollcall.CodeUnavailable}
	}
	t.Fatalf("no way called %q", how)
	return nil, nil
}

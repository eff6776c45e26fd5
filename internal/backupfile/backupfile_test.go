package backupfile

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

var files = map[string]string{
	"store/MANIFEST-000001":   "a manifest",
	"store/journal/1.journal": strings.Repeat("\x00", 100_000),
	"archive.db":              strings.Repeat("days ", 5000),
}

// packed returns a stream of the files.
func packed(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out)
	require.NoError(t, err)
	for _, name := range []string{"store/MANIFEST-000001", "store/journal/1.journal", "archive.db"} {
		require.NoError(t, w.Add(name, int64(len(files[name])), time.Unix(1, 0), strings.NewReader(files[name])))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestWhatIsPackedComesOut(t *testing.T) {
	dir := t.TempDir()
	found, err := Extract(bytes.NewReader(packed(t)), dir)
	require.NoError(t, err)
	require.Equal(t, Summary{Files: 3, Bytes: 125_010}, found)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err = Extract(bytes.NewReader(packed(t)), dir)
	require.ErrorIs(t, err, os.ErrExist, "nothing is overwritten")
}

// TestTarAndSha256sumReadABackup is for who has no Rollcall at hand.
func TestTarAndSha256sumReadABackup(t *testing.T) {
	dir := t.TempDir()
	unpacked, err := zstd.NewReader(bytes.NewReader(packed(t)))
	require.NoError(t, err)
	defer unpacked.Close()
	for _, command := range []struct {
		args  []string
		stdin io.Reader
	}{
		{[]string{"tar", "-xf", "-"}, unpacked},
		{[]string{"sha256sum", "-c", "SHA256SUMS"}, nil},
	} {
		c := exec.CommandContext(t.Context(), command.args[0], command.args[1:]...)
		c.Dir, c.Stdin = dir, command.stdin
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

// TestEveryByteOfABackupCounts cuts a stream at every byte, and flips a bit of every byte.
func TestEveryByteOfABackupCounts(t *testing.T) {
	whole := packed(t)
	for i := range whole {
		_, err := Verify(bytes.NewReader(whole[:i]))
		require.ErrorIs(t, err, ErrIncomplete, "cut at %d of %d", i, len(whole))
		flipped := bytes.Clone(whole)
		flipped[i] ^= 0x10
		if found, err := Verify(bytes.NewReader(flipped)); err == nil {
			require.Equal(t, Summary{Files: 3, Bytes: 125_010}, found, "flipped at %d: what the packing does not use", i)
		} else {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrIncomplete), "flipped at %d: %v", i, err)
		}
	}
}

func TestAnErrorBelowIsNoDamage(t *testing.T) {
	whole, failed := packed(t), errors.New("the network is gone")
	_, err := Verify(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), iotest.ErrReader(failed)))
	require.ErrorIs(t, err, failed)
	require.NotErrorIs(t, err, ErrDamaged)
}

func TestAFileOfAnotherSizeIsNotPacked(t *testing.T) {
	w, err := NewWriter(io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, w.Add("a", 5, time.Time{}, strings.NewReader("1234")), "has 4 bytes, not 5")
	require.Error(t, w.Close())
}

// TestNoFileLeavesItsDirectory takes streams that another program made.
func TestNoFileLeavesItsDirectory(t *testing.T) {
	for _, head := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "../out"},
		{Typeflag: tar.TypeReg, Name: "/etc/out"},
		{Typeflag: tar.TypeReg, Name: "a/../../out"},
		{Typeflag: tar.TypeReg, Name: "."},
		{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc"},
		{Typeflag: tar.TypeDir, Name: "dir"},
		{Typeflag: tar.TypeReg, Name: strings.Repeat("n", maxName+1)},
	} {
		var out bytes.Buffer
		z, err := zstd.NewWriter(&out)
		require.NoError(t, err)
		a := tar.NewWriter(z)
		require.NoError(t, a.WriteHeader(&head))
		require.NoError(t, errors.Join(a.Close(), z.Close()))
		dir := t.TempDir()
		_, err = Extract(&out, filepath.Join(dir, "in"))
		require.ErrorIs(t, err, ErrDamaged, head.Name)
		require.NoFileExists(t, filepath.Join(dir, "out"))
	}
}

func FuzzVerify(f *testing.F) {
	whole := packed(f)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > 4<<10 { // a few bytes may unpack to megabytes
			return
		}
		if _, err := Verify(bytes.NewReader(stream)); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrIncomplete) {
			t.Fatalf("an error of another kind: %v", err)
		}
	})
}

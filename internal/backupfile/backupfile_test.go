package backupfile

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// pack packs files of another program.
func pack(t *testing.T, files ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	a := tar.NewWriter(z)
	for _, head := range files {
		head.Typeflag = tar.TypeReg
		require.NoError(t, a.WriteHeader(head))
		_, err := a.Write(make([]byte, head.Size))
		require.NoError(t, err)
	}
	require.NoError(t, errors.Join(a.Close(), z.Close()))
	return out.Bytes()
}

// TestABackupHoldsEachFileOnceAndWithoutHoles takes streams that another program made.
func TestABackupHoldsEachFileOnceAndWithoutHoles(t *testing.T) {
	for name, stream := range map[string][]byte{
		"twice":        pack(t, &tar.Header{Name: "a"}, &tar.Header{Name: "a"}),
		"of two lines": pack(t, &tar.Header{Name: "a\nb"}),
	} {
		_, err := Verify(bytes.NewReader(stream))
		require.ErrorIs(t, err, ErrDamaged, name)
	}
	_, err := Verify(bytes.NewReader(sparse(t)))
	require.ErrorContains(t, err, "it holds what no backup does")
	w, err := NewWriter(io.Discard)
	require.NoError(t, err)
	require.Error(t, w.Add("a\nb", 0, time.Time{}, strings.NewReader("")))
	w.Abort()
}

// sparse is a stream of a file that is all hole, of 2^60 bytes.
func sparse(t *testing.T) []byte {
	t.Helper()
	records := ""
	for _, record := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=a", "GNU.sparse.realsize=1152921504606846976"} {
		length := len(record) + 4
		records += fmt.Sprintf("%d %s\n", length, record)
	}
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	block := func(kind byte, name, content string) {
		head := make([]byte, 512)
		copy(head, name)
		copy(head[100:], "0000600\x000000000\x000000000\x00")
		copy(head[124:], fmt.Sprintf("%011o\x00%011o\x00", len(content), 0))
		copy(head[148:], "        ")
		head[156] = kind
		copy(head[257:], "ustar\x0000")
		sum := 0
		for _, b := range head {
			sum += int(b)
		}
		copy(head[148:], fmt.Sprintf("%06o\x00 ", sum))
		_, err := z.Write(append(head, append([]byte(content), make([]byte, (512-len(content)%512)%512)...)...))
		require.NoError(t, err)
	}
	block('x', "PaxHeaders/a", records)
	block('0', "GNUSparseFile/a", "1\n1152921504606846976\n0\n"+strings.Repeat("\x00", 512-24))
	_, err = z.Write(make([]byte, 1024))
	require.NoError(t, errors.Join(err, z.Close()))
	return out.Bytes()
}

// TestABackupEndsWithItsEnd cuts the last bytes of a stream of many blocks, and puts something
// behind it.
func TestABackupEndsWithItsEnd(t *testing.T) {
	random := make([]byte, 3<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(random) // never fails
	var out bytes.Buffer
	w, err := NewWriter(&out)
	require.NoError(t, err)
	require.NoError(t, w.Add("a", int64(len(random)), time.Time{}, bytes.NewReader(random)))
	require.NoError(t, w.Close())
	whole := out.Bytes()
	_, err = Verify(bytes.NewReader(whole))
	require.NoError(t, err)
	for cut := 1; cut < 300; cut++ {
		_, err := Verify(bytes.NewReader(whole[:len(whole)-cut]))
		require.ErrorIs(t, err, ErrIncomplete, "cut by %d", cut)
	}
	for _, behind := range [][]byte{[]byte("x"), []byte("some text behind it"), pack(t, &tar.Header{Name: "b", Size: 3 << 20})} {
		_, err := Verify(bytes.NewReader(append(bytes.Clone(whole), behind...)))
		require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrIncomplete), "%d bytes behind it: %v", len(behind), err)
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

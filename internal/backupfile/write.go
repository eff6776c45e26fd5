package backupfile

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/klauspost/compress/zstd"
)

// sums is the name of the last file.
const sums = "SHA256SUMS"

// Writer packs files. Close must be called for the stream to be whole.
type Writer struct {
	packed *zstd.Encoder
	tar    *tar.Writer
	sums   bytes.Buffer
}

// NewWriter returns a Writer to w. Files are packed fast rather than small, as tables of a
// store are packed already.
func NewWriter(w io.Writer) (*Writer, error) {
	packed, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return &Writer{packed: packed, tar: tar.NewWriter(packed)}, nil
}

// Add adds a file, whose content must have the size that is given.
func (w *Writer) Add(name string, size int64, at time.Time, content io.Reader) error {
	if !fits(name) {
		return fmt.Errorf("%q is not a name within a directory", name)
	}
	hash := sha256.New()
	if err := w.put(name, size, at, io.TeeReader(content, hash)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(&w.sums, "%x  %s\n", hash.Sum(nil), name)
	return nil
}

func (w *Writer) put(name string, size int64, at time.Time, content io.Reader) error {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: at.Truncate(time.Second), Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(head); err != nil {
		return err
	}
	switch n, err := io.Copy(w.tar, content); {
	case err != nil:
		return err
	case n != size:
		return fmt.Errorf("has %d bytes, not %d", n, size)
	}
	return nil
}

// Close ends the stream. The writer below stays open.
func (w *Writer) Close() error {
	err := w.put(sums, int64(w.sums.Len()), time.Time{}, &w.sums)
	return errors.Join(err, w.tar.Close(), w.packed.Close())
}

// Abort gives up what packing needs, and leaves the stream cut short.
func (w *Writer) Abort() { w.packed.Reset(nil) }

// fits reports whether a file may have a name: below its directory, not that of the sums, and
// of one line there.
func fits(name string) bool {
	return !strings.ContainsFunc(name, unicode.IsControl) && filepath.IsLocal(name) && name != "." && name != sums && filepath.ToSlash(filepath.Clean(name)) == name
}

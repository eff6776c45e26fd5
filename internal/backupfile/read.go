package backupfile

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

var (
	// ErrIncomplete is in the chain of the error for a stream whose end is missing.
	ErrIncomplete = errors.New("the end of the backup is missing")
	// ErrDamaged is in the chain of the error for a stream that is not what was written.
	ErrDamaged = errors.New("the backup is damaged")
)

// The bounds of what is read.
const (
	maxWindow = 64 << 20 // of the packing
	maxFiles  = 1 << 20
	maxName   = 512 // bytes of a name

	maxPadding = 1 << 20 // bytes behind the last file
)

// Summary is what a stream held.
type Summary struct {
	Files int
	Bytes int64
}

// Verify reads a stream to its end and compares every file with its sum.
func Verify(r io.Reader) (Summary, error) {
	return read(r, func(string, io.Reader) error { return nil })
}

// Extract is Verify, and puts the files into a directory, which only their owner can read. After
// an error some files are there and must not be used.
func Extract(r io.Reader, dir string) (Summary, error) {
	dirs := map[string]bool{dir: true}
	found, err := read(r, func(name string, content io.Reader) error {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			dirs[filepath.Join(dir, filepath.FromSlash(parent))] = true
		}
		return extract(filepath.Join(dir, filepath.FromSlash(name)), content)
	})
	if err != nil {
		return found, err
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) { // the names of the files are to last too
		if err := syncDir(dir); err != nil {
			return found, err
		}
	}
	return found, nil
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func extract(name string, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Sync(), f.Close())
}

// read calls visit with each file. What visit leaves of a file is read behind it.
func read(r io.Reader, visit func(name string, content io.Reader) error) (Summary, error) {
	in := &source{Reader: r}
	unpacked, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return Summary{}, err
	}
	defer unpacked.Close()
	s := stream{tar: tar.NewReader(unpacked), names: make(map[string]bool)}
	for done := false; !done; {
		if done, err = s.next(visit); err != nil {
			return s.found, blame(err, in.err)
		}
	}
	if err := s.end(unpacked); err != nil {
		return s.found, blame(err, in.err)
	}
	return s.found, nil
}

// source keeps the first error of a reader, its end apart.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) && s.err == nil {
		s.err = err
	}
	return n, err
}

// visitError is an error of who is given the files.
type visitError struct{ error }

// blame tells what an error means: of who is given the files, of the reader below, or of the
// stream.
func blame(err, below error) error {
	var visit visitError
	switch {
	case errors.As(err, &visit):
		return visit.error
	case below != nil:
		return below
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return ErrIncomplete
	case errors.Is(err, ErrDamaged):
		return err
	default:
		return fmt.Errorf("%w: %v", ErrDamaged, err) //nolint:errorlint // one cause to go by
	}
}

// stream is a stream that is being read.
type stream struct {
	tar   *tar.Reader
	sums  bytes.Buffer // of the files read so far
	names map[string]bool
	found Summary
}

// end expects nothing behind the sums but what ends a stream.
func (s *stream) end(unpacked io.Reader) error {
	if _, err := s.tar.Next(); !errors.Is(err, io.EOF) {
		return cmp.Or(err, fmt.Errorf("%w: something stands behind its end", ErrDamaged))
	}
	// Programs that pack fill up the last block. Reading on, the packing checks its own end.
	n, err := io.Copy(io.Discard, io.LimitReader(unpacked, maxPadding+1))
	if err == nil && n > maxPadding {
		err = fmt.Errorf("%w: something stands behind its end", ErrDamaged)
	}
	return err
}

// next reads the next file. done says that it was the sums, and that they are right.
func (s *stream) next(visit func(string, io.Reader) error) (done bool, err error) {
	head, err := s.tar.Next()
	switch {
	case err != nil:
		return false, err
	case head.Typeflag != tar.TypeReg || len(head.Name) > maxName || s.found.Files == maxFiles || isSparse(head):
		return false, fmt.Errorf("%w: it holds what no backup does", ErrDamaged)
	case head.Name == sums:
		return true, s.compare()
	case !fits(head.Name):
		return false, fmt.Errorf("%w: %.100q is not a name within a directory", ErrDamaged, head.Name)
	}
	if s.names[head.Name] {
		return false, fmt.Errorf("%w: it holds %.100q twice", ErrDamaged, head.Name)
	}
	s.names[head.Name] = true
	hash := sha256.New()
	content := &source{Reader: io.TeeReader(s.tar, hash)}
	err = visit(head.Name, content)
	switch {
	case content.err != nil:
		return false, content.err
	case err != nil:
		return false, visitError{err}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return false, err
	}
	fmt.Fprintf(&s.sums, "%x  %s\n", hash.Sum(nil), head.Name)
	s.found.Files++
	s.found.Bytes += head.Size
	return false, nil
}

// compare compares the sums in the stream with those of the files in it.
func (s *stream) compare() error {
	want, err := io.ReadAll(io.LimitReader(s.tar, int64(s.sums.Len())+1))
	if err != nil || bytes.Equal(want, s.sums.Bytes()) {
		return err
	}
	got := bytes.SplitAfter(s.sums.Bytes(), []byte{'\n'})
	for i, line := range bytes.SplitAfter(want, []byte{'\n'}) {
		if i < len(got)-1 && !bytes.Equal(line, got[i]) {
			return fmt.Errorf("%w: %s is not what was written", ErrDamaged, bytes.TrimSpace(got[i][2*sha256.Size:]))
		}
	}
	return fmt.Errorf("%w: the sums are of other files", ErrDamaged)
}

// isSparse reports whether a file has holes: a few bytes would become as many as the disk has.
func isSparse(head *tar.Header) bool {
	for name := range head.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return false
}

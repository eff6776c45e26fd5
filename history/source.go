package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Source is a file to import, or a stream.
type Source struct {
	file *os.File // nil for a stream
	in   io.Reader
	size int64 // -1 if it is not known
	id   string
	read int64 // bytes
}

// identityBlock is how much of the beginning of a file tells it from others.
const identityBlock = 64 << 10

// Open opens a file, compressed by gzip or not.
func Open(path string) (*Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Source{file: f, in: f, size: -1}
	if err := s.identify(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return s, nil
}

// Stream is a source that can be read once only, and so not be resumed.
func Stream(r io.Reader) *Source { return &Source{in: r, size: -1} }

// identify takes the size and the beginning of a regular file for its identity.
// A pipe has none.
func (s *Source) identify() error {
	info, err := s.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	s.size = info.Size()
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(s.size)))
	if _, err := io.Copy(h, io.NewSectionReader(s.file, 0, identityBlock)); err != nil {
		return err
	}
	s.id = hex.EncodeToString(h.Sum(nil))
	return nil
}

// Size returns the size of the file as it lies there, in bytes; -1 if it is not
// known.
func (s *Source) Size() int64 { return s.size }

// Close closes the file. A stream is left to its owner.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// Read implements [io.Reader], and counts.
func (s *Source) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.read += int64(n)
	return n, err
}

// from returns what the source holds from an offset on, unpacked.
func (s *Source) from(offset int64) (io.Reader, error) {
	in := bufio.NewReaderSize(s, 256<<10)
	magic, err := in.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	var unpacked io.Reader = in
	if bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if unpacked, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
	} else if offset > 0 {
		if _, err := s.file.Seek(offset, io.SeekStart); err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		s.read = offset
		return bufio.NewReaderSize(s, 256<<10), nil
	}
	if _, err := io.CopyN(io.Discard, unpacked, offset); err != nil {
		return nil, fmt.Errorf("go to where the last import stopped: %w", err)
	}
	return unpacked, nil
}

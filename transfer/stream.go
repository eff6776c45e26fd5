package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// ErrIncomplete is in the chain of the error for a stream that has no trailer:
// its end is missing.
var ErrIncomplete = errors.New("the end is missing")

// ErrDamaged is in the chain of the error for a stream that is not what was
// written.
var ErrDamaged = errors.New("this is not what was exported")

// maxLine bounds one line, in bytes: a user with 10,000 friends takes 3 MB, one with
// 100,000 sessions that ended 60 MB.
const maxLine = 64 << 20

// Stream is a stream that is being read. It must be closed.
type Stream struct {
	Header Header

	raw   *input
	in    *bufio.Reader
	close func() error
	hash  hash.Hash
	lines int // read so far
	found Counts
	end   *trailer
}

// Open reads the header. The stream may be packed with zstd or gzip, or not.
func Open(r io.Reader) (*Stream, error) {
	raw := &input{Reader: r}
	unpacked, closer, err := unpack(raw)
	if err != nil {
		return nil, err
	}
	s := &Stream{raw: raw, in: bufio.NewReaderSize(unpacked, 1<<20), close: closer, hash: sha256.New()}
	if err := s.readHeader(); err != nil {
		_ = s.Close() // it was only read
		return nil, err
	}
	return s, nil
}

func unpack(r io.Reader) (io.Reader, func() error, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	magic, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxLine))
		if err != nil {
			return nil, nil, err
		}
		return z, func() error { z.Close(); return nil }, nil
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %v", ErrDamaged, err) //nolint:errorlint // one cause to go by
		}
		return z, z.Close, nil
	default:
		return in, func() error { return nil }, nil
	}
}

// Close gives up what unpacking needs; the reader it came from stays open.
func (s *Stream) Close() error { return s.close() }

func (s *Stream) readHeader() error {
	b, err := s.next(nil)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("there is nothing: %w", ErrIncomplete)
	}
	if err != nil {
		return err
	}
	var l line
	if err := parse(b, &l); err != nil || l.Export == nil {
		return fmt.Errorf("%w: it does not begin with the header of an export", ErrDamaged)
	}
	if l.Export.Version != Version {
		return fmt.Errorf("the export has version %d of the format, this program knows %d", l.Export.Version, Version)
	}
	s.Header = *l.Export
	return nil
}

var (
	beginSnapshot = []byte(`{"snapshot":`)
	beginKey      = []byte(`{"api_key":`)
	beginWebhook  = []byte(`{"webhook":`)
	beginEnd      = []byte(`{"end":`)
)

// next appends the next line to dst; io.EOF behind a trailer that is right. The
// trailer itself is not among the lines.
func (s *Stream) next(dst []byte) ([]byte, error) {
	if s.end != nil {
		return dst, io.EOF
	}
	from := len(dst)
	for {
		part, err := s.in.ReadSlice('\n')
		dst = append(dst, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if len(dst)-from > maxLine {
				return dst, fmt.Errorf("line %d: %w: longer than %d MiB", s.lines+1, ErrDamaged, maxLine>>20)
			}
			continue
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return dst, fmt.Errorf("after line %d: %w", s.lines, ErrIncomplete)
		case err != nil:
			return dst, fmt.Errorf("after line %d: %w", s.lines, s.unpackError(err))
		}
		break
	}
	s.lines++
	b := dst[from:]
	if bytes.HasPrefix(b, beginEnd) {
		return dst[:from], s.finish(b)
	}
	s.hash.Write(b)
	switch {
	case bytes.HasPrefix(b, beginSnapshot):
		s.found.Snapshots++
	case bytes.HasPrefix(b, beginKey):
		s.found.APIKeys++
	case bytes.HasPrefix(b, beginWebhook):
		s.found.Webhooks++
	}
	return dst, nil
}

// input is what a stream is read from. It keeps its error, which tells a failure to read from
// damage that unpacking finds.
type input struct {
	io.Reader
	err error
}

func (in *input) Read(p []byte) (int, error) {
	n, err := in.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		in.err = err
	}
	return n, err
}

// unpackError tells damage from a failure to read.
func (s *Stream) unpackError(err error) error {
	if s.raw.err != nil {
		return s.raw.err
	}
	return fmt.Errorf("%w: %v", ErrDamaged, err) //nolint:errorlint // one cause to go by
}

// finish checks the trailer, and returns io.EOF if nothing is wrong.
func (s *Stream) finish(b []byte) error {
	var l line
	if err := parse(b, &l); err != nil || l.End == nil {
		return fmt.Errorf("%w: its last line cannot be read", ErrDamaged)
	}
	s.end = l.End
	sum := hex.EncodeToString(s.hash.Sum(nil))
	switch _, err := s.in.ReadByte(); {
	case sum != l.End.SHA256:
		return fmt.Errorf("%w: its checksum is %s, and should be %s", ErrDamaged, sum, l.End.SHA256)
	case s.found.Snapshots != l.End.Snapshots || s.found.APIKeys != l.End.APIKeys || s.found.Webhooks != l.End.Webhooks:
		return fmt.Errorf("%w: it has %d snapshots, %d API keys and %d webhooks, and should have %d, %d and %d",
			ErrDamaged, s.found.Snapshots, s.found.APIKeys, s.found.Webhooks, l.End.Snapshots, l.End.APIKeys, l.End.Webhooks)
	case err == nil:
		return fmt.Errorf("%w: something follows its last line", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return s.unpackError(err)
	default:
		return io.EOF
	}
}

// parse reads a line, of which every field must be known: none may be lost.
func parse(b []byte, l *line) error { return strict(b).Decode(l) }

func strict(b []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d
}

// Sum is the checksum of a stream that was read to its end, "" before: it tells this stream from
// others.
func (s *Stream) Sum() string {
	if s.end == nil {
		return ""
	}
	return s.end.SHA256
}

// Verify reads the rest of the stream and returns what it holds. It finds a
// stream that is cut short or was changed: see ErrIncomplete and ErrDamaged.
func (s *Stream) Verify() (Counts, error) {
	var buf []byte
	var err error
	for {
		buf, err = s.next(buf[:0])
		if errors.Is(err, io.EOF) {
			return s.end.Counts, nil
		}
		if err != nil {
			return s.found, err
		}
	}
}

package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// chunkReader cuts a source into chunks.
type chunkReader struct {
	source *Source
	in     io.Reader
	err    error // what ended reading
	buf    []byte
	kept   int // bytes of buf that the last chunk left over
	offset int64
	first  bool
}

func newChunkReader(s *Source, offset int64) (*chunkReader, error) {
	in, err := s.from(offset)
	if err != nil {
		return nil, err
	}
	return &chunkReader{source: s, in: in, buf: make([]byte, chunkBytes), offset: offset, first: offset == 0}, nil
}

// next returns the next chunk; its err is io.EOF if it is the last. A line that
// reading failed in the middle of is left out.
func (r *chunkReader) next() *chunk {
	c := &chunk{first: r.first, parsed: make(chan struct{})}
	r.first = false
	n := r.fill()
	end := bytes.LastIndexByte(r.buf[:n], '\n') + 1
	switch {
	case r.err == nil && end == 0:
		c.over, c.text = true, string(r.buf[:2*MaxText])
		r.skipLine(n)
	default:
		if errors.Is(r.err, io.EOF) {
			end = n
		}
		c.text = string(r.buf[:end])
		r.keep(end, n)
	}
	c.offset, c.read = r.offset, r.source.read
	if r.kept == 0 || !errors.Is(r.err, io.EOF) {
		c.err = r.err
	}
	return c
}

// fill reads until the buffer is full or reading ends, and returns how much of
// the buffer is filled.
func (r *chunkReader) fill() int {
	n := r.kept
	for n < len(r.buf) && r.err == nil {
		var m int
		m, r.err = r.in.Read(r.buf[n:])
		n += m
	}
	if r.err != nil && !errors.Is(r.err, io.EOF) {
		r.err = fmt.Errorf("read behind byte %d: %w", r.offset, r.err)
	}
	return n
}

// keep keeps what the buffer holds from end to n for the next chunk.
func (r *chunkReader) keep(end, n int) {
	r.kept = copy(r.buf, r.buf[end:n])
	r.offset += int64(end)
}

// skipLine goes to the end of the line that fills the buffer.
func (r *chunkReader) skipLine(n int) {
	for {
		end := bytes.IndexByte(r.buf[:n], '\n') + 1
		if end > 0 {
			r.keep(end, n)
			return
		}
		r.keep(n, n)
		if r.err != nil {
			return
		}
		n = r.fill()
	}
}

package transfer

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/rollcall/rollcall"
)

// How an export lies in its file.
//
// The text is packed in frames of zstd, each whole in itself, with a checksum. At the end of
// a part of the engine stands a mark, if there is enough text since the last: a frame that readers of zstd skip (RFC 8878, 3.1.2).
// It says which part is next, and the SHA-256 of all text before it. So a file that was cut
// short at any byte is good up to its last whole mark, which can be found and checked by
// reading it once, and nothing needs to be kept beside it.
//
// | cut short | what Resume finds |
// | --- | --- |
// | before the first mark | nothing: it begins anew |
// | in a frame, or between frames | the mark before them: it cuts off what follows, and goes on there |
// | in a mark | the mark before it |
// | behind the trailer | a whole export: it is found by its trailer |

const (
	// frameText is how much text is gathered before it is packed.
	frameText = 1 << 20
	// markMagic begins a mark.
	markMagic = 0x184D2A5C
	// markEvery is how much text there is between two marks at least.
	markEvery = 256 << 10
	// maxMark bounds what a mark holds, in bytes.
	maxMark = 4 << 10
	// maxFrame bounds a frame: a text of frameText and one line, packed badly.
	maxFrame = maxLine + maxLine/8 + frameText

	zstdMagic = 0xFD2FB528
)

// mark is how far an export has come.
type mark struct {
	Next      int              `json:"next"`  // part to go on with
	Parts     int              `json:"parts"` // how many there are
	Counts    Counts           `json:"counts"`
	SHA256    string           `json:"sha256"`     // of the text so far
	LastEvent rollcall.EventID `json:"last_event"` // before the export began
}

// packer packs text; it has no state.
var packer, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)) // no option is wrong

// frameWriter writes frames and marks.
type frameWriter struct {
	out    io.Writer
	packed []byte
}

func (w *frameWriter) frame(text []byte) error {
	w.packed = packer.EncodeAll(text, w.packed[:0])
	_, err := w.out.Write(w.packed)
	return err
}

func (w *frameWriter) mark(m *mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.packed = binary.LittleEndian.AppendUint32(w.packed[:0], markMagic)
	w.packed = binary.LittleEndian.AppendUint32(w.packed, uint32(len(text)))
	w.packed = append(w.packed, text...)
	_, err = w.out.Write(w.packed)
	return err
}

// errNoFrame says that what follows is no whole frame.
var errNoFrame = errors.New("no whole frame")

// frameReader reads what a frameWriter wrote.
type frameReader struct {
	in     *bufio.Reader
	unpack *zstd.Decoder
	raw    []byte
	text   []byte
	read   int64 // bytes of whole frames and marks
}

// next returns the text of the next frame, or the next mark. io.EOF is at the end, and errNoFrame
// where there is something else, or less.
func (r *frameReader) next() ([]byte, *mark, error) {
	if _, err := r.in.Peek(1); err != nil {
		return nil, nil, err
	}
	r.raw = r.raw[:0]
	if err := r.take(4); err != nil {
		return nil, nil, err
	}
	switch binary.LittleEndian.Uint32(r.raw) {
	case markMagic:
		m, err := r.readMark()
		return nil, m, err
	case zstdMagic:
		err := r.readFrame()
		return r.text, nil, err
	default:
		return nil, nil, errNoFrame
	}
}

// take appends bytes to what has been read of the frame.
func (r *frameReader) take(n int) error {
	if len(r.raw)+n > maxFrame {
		return errNoFrame
	}
	from := len(r.raw)
	r.raw = append(r.raw, make([]byte, n)...)
	_, err := io.ReadFull(r.in, r.raw[from:])
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errNoFrame
	}
	return err
}

func (r *frameReader) readMark() (*mark, error) {
	if err := r.take(4); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(r.raw[4:])
	if n > maxMark {
		return nil, errNoFrame
	}
	if err := r.take(int(n)); err != nil {
		return nil, err
	}
	m := new(mark)
	if err := strict(r.raw[8:]).Decode(m); err != nil {
		return nil, errNoFrame
	}
	r.read += int64(len(r.raw))
	return m, nil
}

// readFrame reads a frame, block by block (RFC 8878, 3.1.1), and unpacks it.
func (r *frameReader) readFrame() error {
	// The length of the header stands in its first byte.
	if err := r.take(1); err != nil {
		return err
	}
	descriptor := r.raw[4]
	single := descriptor>>5&1 == 1
	size := []int{0, 2, 4, 8}[descriptor>>6] + []int{0, 1, 2, 4}[descriptor&3]
	if single && descriptor>>6 == 0 || !single {
		size++ // of the content, or of the window
	}
	if err := r.take(size); err != nil {
		return err
	}
	for last := false; !last; {
		if err := r.take(3); err != nil {
			return err
		}
		b := r.raw[len(r.raw)-3:]
		head := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last = head&1 == 1
		n := head >> 3
		if head>>1&3 == 1 { // a byte that is repeated
			n = 1
		}
		if err := r.take(n); err != nil {
			return err
		}
	}
	if descriptor>>2&1 == 1 { // the checksum
		if err := r.take(4); err != nil {
			return err
		}
	}
	var err error
	if r.text, err = r.unpack.DecodeAll(r.raw, r.text[:0]); err != nil {
		return fmt.Errorf("%w: %w", errNoFrame, err)
	}
	r.read += int64(len(r.raw))
	return nil
}

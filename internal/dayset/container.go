package dayset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// A stored value is either a full set, which is all of the value, or a run of
// operations, oldest first, so that operations appended to operations are
// operations again. Numbers are the low 16 bits, little-endian.
//
//	array         0x01, at most 4,096 numbers, strictly ascending
//	bitmap        0x02, 8,192 bytes, a bit a number; more than 4,096 are set
//	add           0x03, count-1 in one byte, that many numbers in any order
//	remove        0x04, as add
//	add bitmap    0x05, 8,192 bytes
//	remove bitmap 0x06, 8,192 bytes
const (
	tagArray byte = 1 + iota
	tagBitmap
	tagAdd
	tagRemove
	tagAddBitmap
	tagRemoveBitmap
)

const (
	// maxArray is where an array of two-byte numbers outgrows the bitmap.
	maxArray    = 4096
	bitmapBytes = 8192
	// maxOp is how many numbers one list operation holds.
	maxOp = 256
)

// ErrDamaged is what an error of this package wraps when stored bytes are not
// a value that this package wrote.
var ErrDamaged = errors.New("dayset: damaged container")

// AppendAdd appends to dst the operation that adds the numbers of one
// container, given by their low 16 bits in any order. It costs two bytes for
// each 256 numbers or part of them, and two for each number.
func AppendAdd(dst []byte, low []uint16) []byte { return appendOps(dst, tagAdd, low) }

// AppendRemove appends to dst the operation that removes the numbers; as
// [AppendAdd] otherwise.
func AppendRemove(dst []byte, low []uint16) []byte { return appendOps(dst, tagRemove, low) }

func appendOps(dst []byte, tag byte, low []uint16) []byte {
	for len(low) > 0 {
		n := min(len(low), maxOp)
		dst = append(dst, tag, byte(n-1))
		dst = appendNumbers(dst, low[:n])
		low = low[n:]
	}
	return dst
}

func appendNumbers(dst []byte, low []uint16) []byte {
	for _, v := range low {
		dst = binary.LittleEndian.AppendUint16(dst, v)
	}
	return dst
}

// Fold appends to dst the one value that stands for all the values, oldest
// first: for each number the newest word about it wins.
//
// With full, there is nothing older than the values, and the result is a full
// set; that of no numbers is one byte long. Without, the result is a full set
// if there is one among the values, as it overrides all before it; else it is
// operations, that do to any older value what the values would have done, and
// they are no bytes at all if the values said nothing. Equal outcomes are equal
// bytes.
//
// Damaged values answer an error that wraps [ErrDamaged], and dst as it was.
func Fold(dst []byte, full bool, values ...[]byte) ([]byte, error) {
	var f folding
	for _, value := range values {
		if err := f.apply(value); err != nil {
			return dst, err
		}
	}
	if full || f.known {
		return f.added.appendSet(dst), nil
	}
	dst = f.added.appendOps(dst, tagAdd)
	return f.removed.appendOps(dst, tagRemove), nil
}

// Decode adds to the set the numbers of a stored container: base*65,536 plus
// each number of the value. Operations without a full set are taken to work on
// an empty one. A damaged value, or a base over 65,535, answers an error that
// wraps [ErrDamaged] and leaves the set as it was.
func Decode(value []byte, base uint32, into *roaring.Bitmap) error {
	if base > 0xFFFF {
		return fmt.Errorf("%w: index %d is out of range", ErrDamaged, base)
	}
	if len(value) == 0 || value[0] > tagBitmap {
		folded, err := Fold(nil, true, value)
		if err != nil {
			return err
		}
		value = folded
	}
	count, err := checkSet(value)
	if err != nil || count == 0 {
		return err
	}
	return addContainer(value[1:], uint16(base), count, into)
}

// addContainer adds a container whose payload is that of the portable format
// of Roaring (https://github.com/RoaringBitmap/RoaringFormatSpec), as arrays
// and bitmaps here are, by putting the header of a one-container file before
// it.
func addContainer(payload []byte, base uint16, count int, into *roaring.Bitmap) error {
	const cookieNoRuns, headerBytes = 12346, 16
	file := make([]byte, 0, headerBytes+len(payload))
	file = binary.LittleEndian.AppendUint32(file, cookieNoRuns)
	file = binary.LittleEndian.AppendUint32(file, 1)
	file = binary.LittleEndian.AppendUint16(file, base)
	file = binary.LittleEndian.AppendUint16(file, uint16(count-1))
	file = binary.LittleEndian.AppendUint32(file, headerBytes)
	file = append(file, payload...)
	container := roaring.New()
	if _, err := container.ReadFrom(bytes.NewReader(file)); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	into.Or(container)
	return nil
}

// checkSet tells how many numbers a full set holds, or what is wrong with it.
func checkSet(value []byte) (int, error) {
	tag, payload := value[0], value[1:]
	if tag == tagBitmap {
		if len(payload) != bitmapBytes {
			return 0, fmt.Errorf("%w: a bitmap of %d bytes", ErrDamaged, len(payload))
		}
		count := 0
		for i := 0; i < bitmapBytes; i += 8 {
			count += bits.OnesCount64(binary.LittleEndian.Uint64(payload[i:]))
		}
		if count <= maxArray {
			return 0, fmt.Errorf("%w: a bitmap of %d numbers", ErrDamaged, count)
		}
		return count, nil
	}
	if tag != tagArray || len(payload)%2 != 0 || len(payload) > 2*maxArray {
		return 0, fmt.Errorf("%w: tag %d with %d bytes", ErrDamaged, tag, len(payload))
	}
	before := -1
	for i := 0; i < len(payload); i += 2 {
		v := int(binary.LittleEndian.Uint16(payload[i:]))
		if v <= before {
			return 0, fmt.Errorf("%w: %d follows %d", ErrDamaged, v, before)
		}
		before = v
	}
	return len(payload) / 2, nil
}

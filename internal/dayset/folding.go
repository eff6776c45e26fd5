package dayset

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// folding is what a run of values says about each number of a container: that
// it is added, that it is removed, or, in neither set, nothing yet. Once known,
// a full set was among the values, and what is not added is not there.
type folding struct {
	added, removed bitset
	known          bool
}

// apply takes in the next newer value.
func (f *folding) apply(value []byte) error {
	if len(value) > 0 && value[0] <= tagBitmap {
		if _, err := checkSet(value); err != nil {
			return err
		}
		*f = folding{known: true}
		if value[0] == tagBitmap {
			f.added.readBits(value[1:])
		} else {
			f.added.readList(value[1:])
		}
		return nil
	}
	for len(value) > 0 {
		n, err := f.applyOp(value)
		if err != nil {
			return err
		}
		value = value[n:]
	}
	return nil
}

// applyOp takes in the operation that value begins with and tells its length.
func (f *folding) applyOp(value []byte) (int, error) {
	on, off := &f.added, &f.removed
	tag := value[0]
	if tag == tagRemove || tag == tagRemoveBitmap {
		on, off = off, on
	}
	switch tag {
	case tagAdd, tagRemove:
		if len(value) < 2 {
			return 0, fmt.Errorf("%w: an operation without its count", ErrDamaged)
		}
		end := 2 + 2*(int(value[1])+1)
		if len(value) < end {
			return 0, fmt.Errorf("%w: %d of %d bytes of an operation", ErrDamaged, len(value), end)
		}
		for i := 2; i < end; i += 2 {
			v := binary.LittleEndian.Uint16(value[i:])
			on[v>>6] |= 1 << (v & 63)
			off[v>>6] &^= 1 << (v & 63)
		}
		return end, nil
	case tagAddBitmap, tagRemoveBitmap:
		if len(value) < 1+bitmapBytes {
			return 0, fmt.Errorf("%w: a bitmap operation of %d bytes", ErrDamaged, len(value))
		}
		for i := range on {
			word := binary.LittleEndian.Uint64(value[1+8*i:])
			on[i] |= word
			off[i] &^= word
		}
		return 1 + bitmapBytes, nil
	}
	return 0, fmt.Errorf("%w: tag %d", ErrDamaged, tag)
}

// bitset is a set of the 65,536 numbers of a container.
type bitset [bitmapBytes / 8]uint64

func (b *bitset) readBits(payload []byte) {
	for i := range b {
		b[i] = binary.LittleEndian.Uint64(payload[8*i:])
	}
}

func (b *bitset) readList(payload []byte) {
	for i := 0; i < len(payload); i += 2 {
		v := binary.LittleEndian.Uint16(payload[i:])
		b[v>>6] |= 1 << (v & 63)
	}
}

// appendSet appends the set as a full value.
func (b *bitset) appendSet(dst []byte) []byte {
	var list [maxArray]uint16
	if low, fits := b.list(&list); fits {
		return appendNumbers(append(dst, tagArray), low)
	}
	return b.appendBits(append(dst, tagBitmap))
}

// appendOps appends the set as one operation or more, of the list tag or the
// bitmap tag that belongs to it.
func (b *bitset) appendOps(dst []byte, tag byte) []byte {
	var list [maxArray]uint16
	if low, fits := b.list(&list); fits {
		return appendOps(dst, tag, low)
	}
	return b.appendBits(append(dst, tag+tagAddBitmap-tagAdd))
}

func (b *bitset) appendBits(dst []byte) []byte {
	for _, word := range b {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst
}

// list writes the numbers in ascending order, unless they are more than fit.
func (b *bitset) list(into *[maxArray]uint16) (low []uint16, fits bool) {
	n := 0
	for i, word := range b {
		if n+bits.OnesCount64(word) > maxArray {
			return nil, false
		}
		for ; word != 0; word &= word - 1 {
			into[n] = uint16(i<<6 | bits.TrailingZeros64(word))
			n++
		}
	}
	return into[:n], true
}

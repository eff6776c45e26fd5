package directory

import (
	"strconv"

	"github.com/rollcall/rollcall/internal/arena"
)

// key is what the directory holds by number:
//
//	0vvv…  the number id v
//	10ff…  a text id: 30 bits of its hash, then its arena handle
//	110l…  a padded number id: how many digits it has in 5 bits, its value in 56
//	111……  a free number: the next free one in the low 24 bits
type key uint64

const (
	textBit     key = 1 << 63
	paddedBits  key = 6 << 61
	freeBits    key = 7 << 61
	digitsShift     = 56
	digitsMask      = 1<<5 - 1
	maxPadded       = 1<<digitsShift - 1
	handleBits      = 32
	hashMask        = 1<<30 - 1

	// noFree ends the chain of free numbers. MaxNumbers keeps it out of reach.
	noFree = 1<<24 - 1
)

// keyOf returns the key of id, without a handle if it is a text.
func keyOf(hash uint64, id string) key {
	if k, ok := numberKey(id); ok {
		return k
	}
	return textKey(hash)
}

// numberKey returns the key of an id that is a number, perhaps padded with zeros before it.
func numberKey(id string) (key, bool) {
	if len(id) > 1 && id[0] == '0' {
		v, ok := parseDigits(id)
		return paddedBits | key(len(id))<<digitsShift | key(v), ok && v <= maxPadded
	}
	v, ok := ParseNumber(id)
	return key(v), ok
}

// textKey returns the key of a text id, without a handle.
func textKey(hash uint64) key {
	// The table's positions and tags come from other bits mostly, so that a
	// text that differs is hardly ever compared.
	return textBit | key(hash>>24&hashMask)<<handleBits
}

func freeKey(next uint32) key { return freeBits | key(next) }

func (k key) isText() bool { return k>>62 == 2 }

func (k key) isPadded() bool { return k>>61 == paddedBits>>61 }

func (k key) isFree() bool { return k>>61 == freeBits>>61 }

// appendNumber appends the id that the key of a number stands for.
func (k key) appendNumber(dst []byte) []byte {
	if !k.isPadded() {
		return strconv.AppendUint(dst, uint64(k), 10)
	}
	var room [maxDigits]byte
	digits := room[:k>>digitsShift&digitsMask]
	for i, v := len(digits)-1, k&maxPadded; i >= 0; i-- {
		digits[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, digits...)
}

func (k key) next() uint32 { return uint32(k & noFree) }

func (k key) handle() arena.Handle { return arena.Handle(k) }

func (k key) withHandle(h arena.Handle) key { return k | key(h) }

// like reports whether both may be keys of one id: surely so for numbers, very
// likely for texts.
func (k key) like(other key) bool {
	return k == other || k.isText() && k>>handleBits == other>>handleBits
}

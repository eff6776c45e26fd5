package directory

import "github.com/rollcall/rollcall/internal/arena"

// key is what the directory holds by number:
//
//	0vvv…  the number id v
//	10ff…  a text id: 30 bits of its hash, then its arena handle
//	11……  a free number: the next free one in the low 24 bits
type key uint64

const (
	textBit    key = 1 << 63
	freeBits   key = 3 << 62
	handleBits     = 32
	hashMask       = 1<<30 - 1

	// noFree ends the chain of free numbers. MaxNumbers keeps it out of reach.
	noFree = 1<<24 - 1
)

// keyOf returns the key of id, without a handle if it is a text.
func keyOf(hash uint64, id string) key {
	if v, ok := ParseNumber(id); ok {
		return key(v)
	}
	return textKey(hash)
}

// textKey returns the key of a text id, without a handle.
func textKey(hash uint64) key {
	// The table's positions and tags come from other bits mostly, so that a
	// text that differs is hardly ever compared.
	return textBit | key(hash>>24&hashMask)<<handleBits
}

func freeKey(next uint32) key { return freeBits | key(next) }

func (k key) isText() bool { return k>>62 == 2 }

func (k key) isFree() bool { return k>>62 == 3 }

func (k key) next() uint32 { return uint32(k & noFree) }

func (k key) handle() arena.Handle { return arena.Handle(k) }

func (k key) withHandle(h arena.Handle) key { return k | key(h) }

// like reports whether both may be keys of one id: surely so for numbers, very
// likely for texts.
func (k key) like(other key) bool {
	return k == other || k.isText() && k>>handleBits == other>>handleBits
}

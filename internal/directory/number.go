package directory

import "math"

const (
	zeros  = 0x3030303030303030 // eight times '0'
	digits = 8                  // parsed at once

	// maxDigits is how many digits a number id has at most.
	maxDigits = 19
)

// ParseNumber returns the number that id is the canonical decimal of: digits
// only, no leading zero except in "0", below 1<<63. ok is false for any other
// id. So "7" is a number, "007", "+7" and "" are not.
func ParseNumber(id string) (v uint64, ok bool) {
	if len(id) > 1 && id[0] == '0' {
		return 0, false
	}
	return parseDigits(id)
}

// parseDigits is ParseNumber of digits that may have zeros before them.
func parseDigits(id string) (v uint64, ok bool) {
	n := len(id)
	switch {
	case n == 0 || n > maxDigits:
		return 0, false
	case n < digits:
		return parseShort(id)
	case n == digits:
		x := load8(id, 0)
		return value8(x ^ zeros), isDigits(x)
	case n <= 2*digits:
		// Two loads that overlap; shifting the first drops what the second has.
		head, tail := load8(id, 0), load8(id, n-digits)
		v = value8((head^zeros)<<(8*(2*digits-n)))*1e8 + value8(tail^zeros)
		return v, isDigits(head) && isDigits(tail)
	}
	rest := n - 2*digits
	v, ok = parseShort(id[:rest])
	mid, tail := load8(id, rest), load8(id, rest+digits)
	v = (v*1e8+value8(mid^zeros))*1e8 + value8(tail^zeros)
	return v, ok && v <= math.MaxInt64 && isDigits(mid) && isDigits(tail)
}

func parseShort(s string) (v uint64, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + uint64(c)
	}
	return v, true
}

// load8 returns the eight bytes of s from i on, the first one lowest. Compilers
// make one load of it.
func load8(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// isDigits reports whether all eight bytes of x are ASCII digits: those whose
// upper half is 3, and still is when 6 is added.
func isDigits(x uint64) bool {
	const upper, sixes = 0xf0f0f0f0f0f0f0f0, 0x0606060606060606
	return x&upper == zeros && (x+sixes)&upper == zeros
}

// value8 returns the value of eight digits, one a byte, the first lowest: pairs
// are joined to two digits, then all four pairs weighed in two multiplications.
func value8(x uint64) uint64 {
	const (
		pair = 0x000000ff000000ff
		low  = 100 + 1000000<<32
		high = 1 + 10000<<32
	)
	x = x*10 + x>>8
	return (x&pair*low + x>>16&pair*high) >> 32
}

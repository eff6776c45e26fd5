package column

import (
	"math"
	"slices"
)

// Times is a list of instants in milliseconds. While all lie within the 49 days from the first one
// on they take 4 bytes each, else 8. The zero Times is empty. It is not safe for use while it is
// changed; reading at the same time is.
type Times struct {
	base int64
	near []uint32 // from base on
	wide []int64  // instead of near, once an instant does not fit
}

// MakeTimes returns an empty list with room for n instants.
func MakeTimes(n int) Times { return Times{near: make([]uint32, 0, n)} }

// At returns the i-th instant.
func (t *Times) At(i int) int64 {
	if t.wide != nil {
		return t.wide[i]
	}
	return t.base + int64(t.near[i])
}

// Append adds an instant.
func (t *Times) Append(at int64) {
	if t.wide == nil && len(t.near) == 0 {
		t.base = at
	}
	switch {
	case t.fits(at):
		t.near = append(t.near, uint32(at-t.base))
	default:
		t.widen()
		t.wide = append(t.wide, at)
	}
}

// Set puts an instant in the place of the i-th.
func (t *Times) Set(i int, at int64) {
	switch {
	case t.fits(at):
		t.near[i] = uint32(at - t.base)
	default:
		t.widen()
		t.wide[i] = at
	}
}

// Truncate leaves the first n instants. With none the list is narrow again.
func (t *Times) Truncate(n int) {
	switch {
	case t.wide == nil:
		t.near = t.near[:n]
	case n > 0:
		t.wide = t.wide[:n]
	default:
		*t = Times{near: t.near[:0]}
	}
}

// fits reports whether an instant can be held in four bytes.
func (t *Times) fits(at int64) bool {
	return t.wide == nil && at >= t.base && uint64(at)-uint64(t.base) <= math.MaxUint32
}

func (t *Times) widen() {
	if t.wide != nil {
		return
	}
	t.wide = slices.Grow([]int64{}, cap(t.near))
	for i := range t.near {
		t.wide = append(t.wide, t.base+int64(t.near[i]))
	}
	t.near = nil
}

// Bytes returns the memory held.
func (t *Times) Bytes() int { return 4*cap(t.near) + 8*cap(t.wide) }

package order

import "math/bits"

// fenwick counts by place, with sums over a prefix in logarithmic time
// (Fenwick: A New Data Structure for Cumulative Frequency Tables, 1994).
type fenwick struct{ tree []int32 }

// grow adds a place, the count of which is 0.
func (f *fenwick) grow() {
	i := len(f.tree) + 1
	n := int32(0)
	for step := 1; step < i&-i; step <<= 1 {
		n += f.tree[i-step-1]
	}
	f.tree = append(f.tree, n)
}

func (f *fenwick) add(place int, delta int32) {
	for i := place + 1; i <= len(f.tree); i += i & -i {
		f.tree[i-1] += delta
	}
}

// sum returns the counts of the first n places together.
func (f *fenwick) sum(n int) int {
	total := 0
	for i := min(n, len(f.tree)); i > 0; i &= i - 1 {
		total += int(f.tree[i-1])
	}
	return total
}

// find returns the place at which the k-th of all, from 0, is counted, and
// which of that place it is.
func (f *fenwick) find(k int) (place, rest int) {
	for step := 1 << bits.Len(uint(len(f.tree))); step > 0; step >>= 1 {
		if next := place + step; next <= len(f.tree) && int(f.tree[next-1]) <= k {
			place = next
			k -= int(f.tree[next-1])
		}
	}
	return place, k
}

package dayset

// ActiveDays adds to into[k] how many numbers were seen on exactly k days of
// [from, to], for k from 1; into[0] stays as it is. It makes into long enough
// for the highest k there is. Of a longer range the last 65,535 days count.
func ActiveDays(into []int64, src Source, from, to int32) []int64 {
	from = max(from, to-maxSpan+1)
	var days table[uint16]
	for day := from; day <= to; day++ {
		days.visit(src.Set(day), func(n *uint16) { *n++ })
	}
	days.all(func(_ uint32, n *uint16) {
		if *n > 0 {
			into = grown(into, int(*n)+1)
			into[*n]++
		}
	})
	return into
}

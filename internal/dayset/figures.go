package dayset

// Figures is how many different numbers were seen on a day, in the 7 days that end
// with it, and in each [MAU] that ends with it.
type Figures struct{ DAU, WAU, MAU28, MAU30, Month int64 }

// AllFigures returns the figures of the days of [from, to], one a day. It reads each
// set once, if the numbers are few.
func AllFigures(src Source, from, to int32) []Figures {
	if to < from {
		return nil
	}
	if out, ok := figuresInWords(src, from, to); ok {
		return out
	}
	out := make([]Figures, int(to-from)+1)
	m28, m30, month := Series(nil, src, from, to, MAU28), Series(nil, src, from, to, MAU30), Series(nil, src, from, to, MAUMonth)
	for i := range out {
		out[i] = Figures{m28[i].DAU, m28[i].WAU, m28[i].MAU, m30[i].MAU, month[i].MAU}
	}
	return out
}

// figuresInWords is AllFigures in words; false if a set is too large.
func figuresInWords(src Source, from, to int32) ([]Figures, bool) {
	out := make([]Figures, int(to-from)+1)
	week, m28, m30 := wordWindow{width: daysOfWAU}, wordWindow{width: int(MAU28.width())}, wordWindow{width: int(MAU30.width())}
	var month words
	firstOfMonth := Month.Start(from)
	for day := min(from-MAU30.width()+1, firstOfMonth); day <= to; day++ {
		set, ok := wordsOf(src.Set(day))
		if !ok {
			return nil, false
		}
		week.push(set)
		m28.push(set)
		m30.push(set)
		if Month.Start(day) == day {
			clear(month)
		}
		if day >= firstOfMonth {
			month = month.with(set)
		}
		if day >= from {
			out[day-from] = Figures{set.count(), week.count(), m28.count(), m30.count(), month.count()}
		}
	}
	return out, true
}

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

package enginekit

import (
	"cmp"
	"slices"

	"github.com/rollcall/rollcall"
)

// MostCounted puts counts by value into the order of an answer, most first and ties by
// value, without the zeros, and no more than limit.
func MostCounted(counts map[string]int, limit int) []rollcall.ValueCount {
	out := make([]rollcall.ValueCount, 0, len(counts))
	for v, n := range counts {
		if n > 0 {
			out = append(out, rollcall.ValueCount{Value: v, Sessions: n})
		}
	}
	slices.SortFunc(out, func(a, b rollcall.ValueCount) int {
		return cmp.Or(cmp.Compare(b.Sessions, a.Sessions), cmp.Compare(a.Value, b.Value))
	})
	return out[:min(limit, len(out))]
}

// CountsOf makes the answer from the counts by value and of all sessions. If the counts
// are of all values, the sessions that are in none have no value.
func CountsOf(counts map[string]int, total, limit int, partial bool) rollcall.SessionCounts {
	if !partial {
		without := total
		for _, n := range counts {
			without -= n
		}
		counts[""] += max(0, without)
	}
	out := rollcall.SessionCounts{Items: MostCounted(counts, limit), Total: total, Other: total, Partial: partial}
	for _, item := range out.Items {
		out.Other -= item.Sessions
	}
	out.Other = max(0, out.Other)
	return out
}

package redis

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/casefold"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// needsRecords reports whether the filter has a condition that only the session's record
// decides.
func (l *listing) needsRecords() bool {
	f := &l.q.Filter
	return f.Name != "" || len(f.Attrs) > 0 || f.SeenWithin > 0 || (f.IP.IsValid() && !f.IP.IsSingleIP())
}

// keepMatching keeps the candidates that meet the conditions which only the record decides.
func (l *listing) keepMatching(ctx context.Context, items []enginekit.SessionSeen) ([]enginekit.SessionSeen, error) {
	ids := make([]rollcall.SessionID, len(items))
	for i, s := range items {
		ids[i] = s.ID
	}
	kept := items[:0]
	since := int64(math.MinInt64)
	if w := l.q.Filter.SeenWithin; w > 0 {
		since = l.at.UnixMilli() - w.Milliseconds()
	}
	name := casefold.Fold(l.q.Filter.Name)
	const step = 10_000
	for some := range slices.Chunk(ids, step) {
		records, err := l.e.records(ctx, l.at, some)
		if err != nil {
			return nil, err
		}
		for i := range records {
			r := &records[i]
			if seen := r.SeenAt.UnixMilli(); seen >= since && l.matches(r, name) {
				kept = append(kept, enginekit.SessionSeen{At: seen, ID: r.ID})
			}
		}
	}
	return kept, nil
}

func (l *listing) matches(r *record, name string) bool {
	f := &l.q.Filter
	if f.IP.IsValid() && !(r.IP.IsValid() && f.IP.Contains(r.IP)) {
		return false
	}
	if name != "" && !strings.HasPrefix(casefold.Fold(r.Name), name) {
		return false
	}
	for k, v := range f.Attrs {
		if have, ok := r.Attrs[k]; !ok || have != v {
			return false
		}
	}
	return true
}

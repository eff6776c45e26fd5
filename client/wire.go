package client

import (
	"time"

	"github.com/rollcall/rollcall"
)

// instant writes a time as the API takes it; "" for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// span writes a duration; "" for none.
func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// sessionID writes an id; "" for none.
func sessionID(id rollcall.SessionID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}

// page is a part of a list of W.
type page[W any] struct {
	Items             []W
	Total             int
	Next              string
	TotalIsLowerBound bool `json:"total_is_lower_bound"`
}

func pageOf[W, T any](p page[W], domain func(W) T) rollcall.Page[T] {
	return rollcall.Page[T]{Items: each(p.Items, domain), Total: p.Total, Next: p.Next, TotalIsLowerBound: p.TotalIsLowerBound}
}

// items is a list that is always whole.
type items[W any] struct{ Items []W }

// each maps a list; nil stands for one without items, as in the library.
func each[W, T any](in []W, domain func(W) T) []T {
	if len(in) == 0 {
		return nil
	}
	out := make([]T, len(in))
	for i, w := range in {
		out[i] = domain(w)
	}
	return out
}

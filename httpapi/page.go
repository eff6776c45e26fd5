package httpapi

import (
	"github.com/rollcall/rollcall"
)

// Paging is the part of a query that chooses a page.
type Paging struct {
	Limit  int    `query:"limit" default:"20" minimum:"0" maximum:"1000" doc:"items on a page; 0 for the total only"`
	Page   int    `query:"page" minimum:"1" doc:"the page, from 1"`
	Cursor string `query:"cursor" doc:"next of the page before, instead of page"`
}

func (p Paging) request() rollcall.PageRequest {
	return rollcall.PageRequest{Limit: p.Limit, Number: p.Page, Cursor: p.Cursor}
}

// page is a part of a list.
type page[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Total int    `json:"total" doc:"of the whole list"`
	Next  string `json:"next,omitempty" doc:"cursor to what follows; absent on the last page"`

	TotalIsLowerBound bool `json:"total_is_lower_bound,omitempty" doc:"there are more than the filter may look at"`
}

func pageOf[T, U any](p rollcall.Page[T], show func(T) U) page[U] {
	return page[U]{Items: each(p.Items, show), Total: p.Total, Next: p.Next, TotalIsLowerBound: p.TotalIsLowerBound}
}

// items is a list that is always whole.
type items[T any] struct {
	Items []T `json:"items" nullable:"false"`
}

// each maps a list; the result is never nil, so that it is never null.
func each[T, U any](in []T, show func(T) U) []U {
	out := make([]U, len(in))
	for i, v := range in {
		out[i] = show(v)
	}
	return out
}

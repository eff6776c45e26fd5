package rollcall

// Limits of lists.
const (
	DefaultLimit   = 20
	MaxLimit       = 1000
	MaxMovingPages = 100  // pages by number in an order that moves
	MaxQueryUsers  = 1000 // users named in one query
)

// PageRequest chooses a part of a list: either page Number, from 1, or what
// follows Cursor. Both empty is the first page.
type PageRequest struct {
	Limit  int // items on a page, 1 to MaxLimit; 0 means total only
	Number int
	Cursor string // from Page.Next of the same query
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T
	Total int // of the whole list, exact
	// TotalIsLowerBound is set when the filter looked at as many candidates as
	// it may and there are more.
	TotalIsLowerBound bool
	Next              string // cursor to what follows; "" on the last page
}

package rollcall

import (
	"crypto/hmac"
	"encoding/base64"
	"math"
)

const cursorTagLen = 16

var cursorCoding = base64.RawURLEncoding

// sealCursor makes an engine's position opaque and binds it to the query it
// came from, so that a cursor cannot be forged or used with another query.
func (r *Roll) sealCursor(position, query string) string {
	if position == "" {
		return ""
	}
	tag := r.keyed("cursor", []byte(query), []byte(position))
	return cursorCoding.EncodeToString(append(tag[:cursorTagLen:cursorTagLen], position...))
}

// openCursor returns the engine's position.
func (r *Roll) openCursor(cursor, query string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := cursorCoding.DecodeString(cursor)
	if err != nil || len(raw) <= cursorTagLen {
		return "", Invalid("cursor", "is not a cursor of this list")
	}
	position := string(raw[cursorTagLen:])
	tag := r.keyed("cursor", []byte(query), []byte(position))
	if !hmac.Equal(tag[:cursorTagLen], raw[:cursorTagLen]) {
		return "", Invalid("cursor", "is not a cursor of this list: filter, sort and role must be those it was made with")
	}
	return position, nil
}

// openPage checks a page request and opens its cursor. A moving order serves
// only the first MaxMovingPages by number.
func (r *Roll) openPage(p PageRequest, query string, moving bool) (PageRequest, error) {
	switch {
	case p.Limit < 0 || p.Limit > MaxLimit:
		return p, Invalid("limit", "must be between 0 and %d, is %d", MaxLimit, p.Limit)
	case p.Number < 0:
		return p, Invalid("page", "must be 1 or more, is %d", p.Number)
	case p.Number > 0 && p.Cursor != "":
		return p, Invalid("page", "cannot be combined with cursor")
	case moving && p.Number > MaxMovingPages:
		return p, Invalid("page", "must be at most %d in an order that moves, is %d: use the cursor", MaxMovingPages, p.Number)
	}
	p.Number = min(p.Number, math.MaxInt/MaxLimit) // the place it stands for must be a number too
	position, err := r.openCursor(p.Cursor, query)
	p.Cursor = position
	return p, err
}

// sealPage gives a page's cursor its public form.
func sealPage[T any](r *Roll, page Page[T], query string) Page[T] {
	page.Next = r.sealCursor(page.Next, query)
	return page
}

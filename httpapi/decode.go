package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/rollcall/rollcall"
)

// decode reads a JSON body of at most limit bytes into v; an empty one leaves v
// as it is. Unknown fields and whatever follows the value are refused.
func decode(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, limit) + bytes.MinRead))
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit)); err != nil {
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			return tooLarge(limit)
		}
		return rollcall.Invalid("body", "could not be read to its end")
	}
	if buf.Len() == 0 {
		return nil
	}
	return decodeStrict(buf.Bytes(), v)
}

func decodeStrict(data []byte, v any) error {
	if !utf8.Valid(data) {
		return rollcall.Invalid("body", "is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return rollcall.Invalid("body", "has something after the JSON value")
	}
	return nil
}

func decodeError(err error) error {
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		return rollcall.Invalid(cmp.Or(mismatch.Field, "body"), "must not be a JSON %s", mismatch.Value)
	}
	// encoding/json has no type for this error.
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return rollcall.Invalid(clip(strings.Trim(name, `"`)), "is not a field of this request")
	}
	return rollcall.Invalid("body", "is not valid JSON: %v", err)
}

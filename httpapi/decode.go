package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rollcall/rollcall"
)

// decode reads JSON that the gate has checked into v; an empty body leaves v as
// it is.
func decode(data []byte, v any) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return decodeError(err)
	}
	return nil
}

func decodeError(err error) error {
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		return rollcall.Invalid(cmp.Or(mismatch.Field, "body"), "must not be a JSON %s", mismatch.Value)
	}
	return rollcall.Invalid("body", "is not valid JSON: %v", strings.TrimPrefix(err.Error(), "json: "))
}

package httpapi

import (
	"fmt"

	"github.com/rollcall/rollcall"
)

func forbidden(format string, args ...any) error {
	return &rollcall.Error{Code: rollcall.CodeForbidden, Detail: fmt.Sprintf(format, args...)}
}

func unauthenticated(detail string) error {
	return &rollcall.Error{Code: rollcall.CodeUnauthenticated, Detail: detail}
}

func tooLarge(limit int64) error {
	return &rollcall.Error{
		Code: rollcall.CodeTooLarge, Field: "body",
		Detail: fmt.Sprintf("the body is too large: the limit is %d bytes", limit),
	}
}

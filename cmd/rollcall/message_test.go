package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestMessage(t *testing.T) {
	disk := &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "cannot write", Err: errors.Join(errors.New("a"), errors.New("b"))}
	for want, err := range map[string]error{
		"plain":                  errors.New("plain"),
		"ttl must be short":      rollcall.Invalid("ttl", "must be short"),
		"cannot write: a\nb":     fmt.Errorf("wrapped: %w", disk),
		"one\nttl is bad\nthree": usageError{errors.Join(errors.New("one"), rollcall.Invalid("ttl", "is bad"), errors.New("three"))},
	} {
		require.Equal(t, want, message(err))
	}
}

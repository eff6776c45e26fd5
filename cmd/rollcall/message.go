package main

import (
	"errors"
	"strings"

	"github.com/rollcall/rollcall"
)

// message words an error for a person: what went wrong, where, and why.
func message(err error) string {
	var e *rollcall.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	var parts []string
	if e.Field != "" {
		parts = append(parts, e.Field+" "+e.Detail)
	} else {
		parts = append(parts, e.Detail)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

package main

import (
	"errors"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/rollcall/rollcall"
)

// message words an error for a person: what went wrong, where, and why. Errors
// that were joined stand on a line each.
func message(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		switch e := inner.(type) { //nolint:errorlint // the outermost of either decides
		case *rollcall.Error:
			return explained(e)
		case interface{ Unwrap() []error }:
			var lines []string
			for _, one := range e.Unwrap() {
				lines = append(lines, message(one))
			}
			return strings.Join(lines, "\n")
		}
	}
	return err.Error()
}

func explained(e *rollcall.Error) string {
	text := e.Detail
	if e.Field != "" {
		text = e.Field + " " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// counted says how many there are of a thing: "1 mark", "2,000 marks".
func counted(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return humanize.Comma(n) + " " + thing
}

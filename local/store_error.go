package local

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/journal"
)

var errClosed = &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the engine is closed"}

// runRepair says what to do about a damaged store.
const runRepair = "\"rollcall check\" names every fault, \"rollcall check --repair\" keeps all that can be read, a backup has the rest"

// openError words a failure to open the store.
func openError(what string, err error) error {
	if wrong := new(journal.Damage); errors.As(err, &wrong) {
		return &rollcall.Error{
			Code: rollcall.CodeInternal, Err: err,
			Detail: "the data is damaged in " + wrong.Error() + ": " + runRepair,
		}
	}
	e := faultError(err)
	detail := "the data directory cannot be " + what
	if pebble.IsCorruptionError(err) || errors.Is(err, errDamaged) {
		detail = "the data is damaged: " + runRepair
	}
	return &rollcall.Error{Code: e.Code, Detail: detail, Err: plainError{err}}
}

// ErrInUse is in the chain of the error that Open and Check return for a
// directory that another process, or this one, has open.
var ErrInUse = errors.New("stop the server first")

// faultError words a failed write.
func faultError(err error) *rollcall.Error {
	var own *rollcall.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, journal.ErrClosed):
		return errClosed
	case errors.Is(err, journal.ErrBehind):
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the disk is slower than what is to be written: try again later", Err: err}
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG):
		return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "the disk has no room: writes are refused until it has", Err: err}
	default:
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the disk cannot be written: writes are refused until it can", Err: err}
	}
}

// storeError words a failed read.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	detail := "the store cannot be read"
	if pebble.IsCorruptionError(err) {
		detail = "the store is damaged: stop the server; " + runRepair
	}
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: detail, Err: plainError{err}}
}

// plainError is an error in one line, without details for its makers.
type plainError struct{ error }

func (e plainError) Unwrap() error { return e.error }

func (e plainError) Error() string {
	text, _, _ := strings.Cut(e.error.Error(), "\n")
	return text
}

// damaged names a record that a decoder refused.
func damaged(what string, k []byte, err error) error {
	return &rollcall.Error{
		Code:   rollcall.CodeInternal,
		Detail: fmt.Sprintf("damaged %s at key %x: stop the server; %s", what, k, runRepair), Err: err,
	}
}

package redis

import (
	"errors"
	"strings"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
)

// outcome is what became of a command that was answered by an error, or not at all: see
// call.go.
type outcome int

const (
	failed   outcome = iota // and would fail again
	refused                 // not carried out; it may work in a moment
	lost                    // perhaps carried out
	noScript                // not carried out: the server does not know the script
)

// outcomeOf tells the outcome of a command by its error.
func outcomeOf(err error) outcome {
	var re *rueidis.RedisError
	if !errors.As(err, &re) {
		return lost
	}
	if re.IsNoScript() {
		return noScript
	}
	code, _, _ := strings.Cut(re.Error(), " ")
	switch code {
	case "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "BUSY", "NOREPLICAS", "MOVED", "ASK", "UNKILLABLE":
		return refused
	default:
		return failed
	}
}

// refusesWrites reports whether Redis takes no writes, though it may answer questions.
func refusesWrites(err error) bool {
	var re *rueidis.RedisError
	if !errors.As(err, &re) {
		return false
	}
	code, _, _ := strings.Cut(re.Error(), " ")
	switch code {
	case "OOM", "MISCONF", "READONLY", "NOREPLICAS":
		return true
	default:
		return false
	}
}

// errorOf turns an error of Redis into one that callers know.
func errorOf(err error) error {
	var re *rueidis.RedisError
	if !errors.As(err, &re) {
		return unavailable(err)
	}
	code, _, _ := strings.Cut(re.Error(), " ")
	switch code {
	case "OOM":
		return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "Redis has no memory left", Err: err}
	case "MISCONF":
		return &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "Redis cannot write to its disk and refuses changes", Err: err}
	case "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY", "BUSY", "NOREPLICAS", "MOVED", "ASK", "UNKILLABLE":
		return unavailable(err)
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "Redis refuses the user of redis.url: see the operations guide for what it must be allowed", Err: err}
	default:
		return &rollcall.Error{
			Code:   rollcall.CodeUnavailable,
			Detail: "Redis refuses a command; its user may lack a right that the operations guide names", Err: err,
		}
	}
}

// unavailable is the error of a Redis that does not answer.
func unavailable(err error) error {
	return &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "Redis does not answer", Err: err}
}

package respapi

import (
	"iter"
	"strings"
	"sync/atomic"

	"github.com/rollcall/rollcall"
)

// Outcome is what became of a command.
type Outcome uint8

// The outcomes.
const (
	Answered Outcome = iota // as asked
	Refused                 // the client's doing
	Failed                  // the server's
	outcomes
)

// String returns the outcome as metrics name it.
func (o Outcome) String() string {
	return [outcomes]string{"answered", "refused", "failed"}[o]
}

func outcomeOf(code rollcall.Code) Outcome {
	switch code {
	case "":
		return Answered
	case rollcall.CodeUnavailable, rollcall.CodeStorageFull, rollcall.CodeInternal:
		return Failed
	default:
		return Refused
	}
}

type commandCount [outcomes]atomic.Uint64

// counts are what the listener tells of itself.
type counts struct {
	accepted, refused, cut atomic.Uint64
	commands               []commandCount // by the number of the command
}

// run is how often the same came of the same command, and has not been counted yet: that
// is done once for many.
type run struct {
	command int
	outcome Outcome
	n       uint64
}

func (c *conn) count(command int, outcome Outcome, n int) {
	if c.ran.command != command || c.ran.outcome != outcome {
		c.countRun()
		c.ran = run{command: command, outcome: outcome}
	}
	c.ran.n += uint64(n) //nolint:gosec // of one batch
}

func (c *conn) countRun() {
	if c.ran.n > 0 {
		c.l.counts.commands[c.ran.command][c.ran.outcome].Add(c.ran.n)
		c.ran.n = 0
	}
}

// Commands yields how many commands there were, by verb and outcome. A verb that is not
// known counts under "unknown".
func (l *Listener) Commands() iter.Seq2[CommandCount, uint64] {
	return func(yield func(CommandCount, uint64) bool) {
		for i, cmd := range l.verbs.all {
			for o := range outcomes {
				if !yield(CommandCount{strings.ToLower(cmd.name), o}, l.counts.commands[i][o].Load()) {
					return
				}
			}
		}
	}
}

// CommandCount says of what there is a count.
type CommandCount struct {
	Verb    string
	Outcome Outcome
}

// Accepted returns how many connections were served, how many of them were cut off
// by a limit, and how many were turned away as there was no room.
func (l *Listener) Accepted() (served, cut, turnedAway uint64) {
	return l.counts.accepted.Load(), l.counts.cut.Load(), l.counts.refused.Load()
}

package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/rollcall/rollcall"
)

// Format is the form of a log.
type Format string

// The formats.
const (
	// Edges is "source target seconds" a line: the source acts. Everyone it
	// ever acts on is its friend.
	Edges Format = "edges"
	// CLF is the common or combined log format of web servers. A visitor is the
	// address, "-", and the first 16 hex digits of the SHA-256 of the user
	// agent (of nothing, in the common format, which has none).
	CLF Format = "clf"
	// CSV is "time,user[,kind]" a line, the time as RFC 3339 or unix seconds.
	CSV Format = "csv"
)

// row is one line of a log.
type row struct {
	at     int64 // unix seconds
	user   string
	kind   string
	friend string
}

// Rejected is a line that could not be read.
type Rejected struct {
	Line   int
	Reason string
}

// keptRejected bounds the rejected lines that a report names.
const keptRejected = 20

// Latest is the last time a log may hold, and a probe ask for, in unix seconds:
// engines keep when someone was last seen in 32 bits.
const Latest = 1<<32 - 1 // 2106-02-07T06:28:15Z

// earliestIn is the first time a log may hold, so that no day lies before 1970
// in the zone; second 0 stands for never.
func earliestIn(zone *time.Location) int64 {
	return max(1, time.Date(1970, 1, 1, 0, 0, 0, 0, zone).Unix())
}

type parser func(line string) (row, error)

// parserOf returns the parser of a format, and what its header line looks like.
func parserOf(f Format) (parser, error) {
	switch f {
	case Edges:
		return parseEdge, nil
	case CLF:
		return parseCLF, nil
	case CSV:
		return parseCSV, nil
	default:
		return nil, rollcall.Invalid("format", "must be edges, clf or csv, is %q", f)
	}
}

// check refuses what Rollcall would refuse.
func (r *row) check(earliest int64) error {
	if r.at < earliest || r.at > Latest {
		return fmt.Errorf("the time %d lies outside of 1970 to 2106", r.at)
	}
	if r.friend != "" {
		if err := rollcall.CheckUser(r.friend); err != nil {
			return plain(err)
		}
	}
	return plain(errors.Join(rollcall.CheckUser(r.user), rollcall.CheckKind(r.kind)))
}

// plain words an error of Rollcall's for a list of lines.
func plain(err error) error {
	var e *rollcall.Error
	if errors.As(err, &e) {
		return fmt.Errorf("the %s %s", e.Field, e.Detail)
	}
	return err
}

package local

import (
	"encoding/binary"
	"fmt"

	"github.com/axiomhq/hyperloglog"
)

// The sketches have sketchLen registers, of a byte each.
const (
	sketchPrecision = 14
	sketchLen       = 1 << sketchPrecision
	sketchForm      = 2 // of the record
)

// lastHour is the last second of the year 9999.
const lastHour = 253_402_300_799

// encodeSketch returns the record of a sketch. Sketches of the same visitors
// have the same record if they have the same representation.
func encodeSketch(s *hyperloglog.Sketch) ([]byte, error) {
	s.Estimate() // sorts what a sparse sketch has not sorted yet
	return s.MarshalBinary()
}

func decodeSketch(b []byte) (*hyperloglog.Sketch, error) {
	// The library takes any precision, and an older form, which no record has.
	if len(b) < 2 || b[0] != sketchForm || b[1] != sketchPrecision {
		return nil, fmt.Errorf("%w: a sketch of another form or of another precision", errDamaged)
	}
	s := new(hyperloglog.Sketch)
	if err := s.UnmarshalBinary(b); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return s, nil
}

func visitPrefix(name string) key {
	return newKey(tabVisit, 10+len(name)).u8(uint8(len(name))).raw([]byte(name))
}

func visitKey(name string, hour int64) key { return visitPrefix(name).u64(uint64(max(0, hour))) }

// visitOfKey returns what a key of the table holds; false if it is none.
func visitOfKey(k []byte) (name string, hour int64, ok bool) {
	if len(k) < 10 || len(k) != 10+int(k[1]) {
		return "", 0, false
	}
	at := len(k) - 8
	since := binary.BigEndian.Uint64(k[at:])
	return string(k[2:at]), int64(since), since <= lastHour
}

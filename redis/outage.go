package redis

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/rollcall/rollcall"
)

// unpackOutages reads the outages of a partition, as the scripts pack them.
func unpackOutages(packed string) []rollcall.Outage {
	const size = 16
	var out []rollcall.Outage
	for ; len(packed) >= size; packed = packed[size:] {
		at := func(from int) time.Time {
			return time.UnixMilli(int64(binary.BigEndian.Uint64([]byte(packed[from : from+8])))).UTC() //nolint:gosec // milliseconds
		}
		out = append(out, rollcall.Outage{From: at(0), Until: at(8)})
	}
	return out
}

// joinOutages makes one list of those of all partitions: each partition notes the same
// outage by its own signs of life.
func joinOutages(all []rollcall.Outage) []rollcall.Outage {
	slices.SortFunc(all, func(a, b rollcall.Outage) int { return a.From.Compare(b.From) })
	var out []rollcall.Outage
	for _, o := range all {
		if n := len(out); n > 0 && !o.From.After(out[n-1].Until) {
			if o.Until.After(out[n-1].Until) {
				out[n-1].Until = o.Until
			}
			continue
		}
		out = append(out, o)
	}
	return out[max(0, len(out)-keptOutages):]
}

// keptOutages is how many the scripts keep of each partition.
const keptOutages = 16

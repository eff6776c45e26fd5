package local

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// The index of timelines.
//
// The log of events is in the order of all users. The timeline of one of them must not cost
// a look at the events of all. A beat must stay cheap, of which thousands may bring an event
// each in one flush: so they cannot have a record each. Memory must not grow with users.
//
// So users share buckets, by bits of their hash: the bits that choose their partition, and 5
// more. A record of the log has one record of the index for each bucket of its users. That lists
// which events are theirs: where each stands in the record of the log, its second, its type
// and audience, and a tag, which are other bits of the user's hash. The presence events of one
// flush are of one partition, so up to 256 of them share at most 32 records.
//
// Invariants:
//   - What the index holds of a record of the log follows from that record alone
//     (lineEntries), and is in the same batch. Check compares the two.
//   - The two go together: trimming removes both, redacting an event rewrites both.
//   - A tag may be that of another user too: who reads looks at the event's user.
//   - How far one look goes depends on the bucket alone, not on the user (timeline.go). So a
//     reader cannot tell a user of whom all is hidden from one who never was.

// Tables of the index, by family.
var lineTables = [2]byte{sessionFamily: tabSessionLine, presenceFamily: tabPresLine}

// lineBuckets is how many buckets there are: 32 in each of 64 partitions.
const lineBuckets = 1 << 11

// lineOf returns the bucket and the tag of a user.
func lineOf(user string) (bucket uint16, tag uint32) {
	h := rollcall.HashUser(user)
	return uint16(h & (lineBuckets - 1)), uint32(h >> 32)
}

// lineKey is the key of a bucket's part of the record of the log that begins with an event.
func lineKey(family int, bucket uint16, record uint64) key {
	return newKey(lineTables[family], lineKeyLen).u16(bucket).u64(record)
}

const lineKeyLen = 1 + 2 + 8

// lineEntryLen is the length of an entry: place in the record, tag, type and audience, second.
const lineEntryLen = 1 + 4 + 1 + 4

// lineEntry is what the index holds of an event.
type lineEntry struct {
	offset   uint8 // behind the first event of the record
	tag      uint32
	typ      rollcall.EventType
	audience enginekit.Audience
	sec      uint32
}

func appendLineEntry(v []byte, offset int, tag uint32, e *event) []byte {
	v = binary.BigEndian.AppendUint32(append(v, uint8(offset)), tag)
	v = append(v, eventHead(e.Type, e.audience))
	return binary.BigEndian.AppendUint32(v, uint32(max(0, e.At.Unix())))
}

// decodeLine reads what a record of the index holds. The entries ascend.
func decodeLine(v []byte) ([]lineEntry, error) {
	if len(v) == 0 || len(v)%lineEntryLen != 0 {
		return nil, errDamaged
	}
	out := make([]lineEntry, 0, len(v)/lineEntryLen)
	for ; len(v) > 0; v = v[lineEntryLen:] {
		typ, ok := enginekit.EventTypeOf(v[5] >> 2)
		if !ok {
			return nil, errDamaged
		}
		out = append(out, lineEntry{
			offset: v[0], tag: binary.BigEndian.Uint32(v[1:]), typ: typ,
			audience: enginekit.Audience(v[5] & 3), sec: binary.BigEndian.Uint32(v[6:]),
		})
	}
	return out, nil
}

// lineEntries returns what the index holds of the events of one record, by bucket.
func lineEntries(events []event) map[uint16][]byte {
	out := make(map[uint16][]byte)
	for i := range events {
		if events[i].User == "" {
			continue
		}
		bucket, tag := lineOf(events[i].User)
		out[bucket] = appendLineEntry(out[bucket], i, tag, &events[i])
	}
	return out
}

// putLines puts into a batch what the index holds of the record that begins with an event.
func putLines(b *pebble.Batch, family int, record uint64, events []event) error {
	if len(events) == 1 { // as each session event is
		if events[0].User == "" {
			return nil
		}
		var room [lineEntryLen]byte
		bucket, tag := lineOf(events[0].User)
		return b.Set(lineKey(family, bucket, record), appendLineEntry(room[:0], 0, tag, &events[0]), nil)
	}
	var err error
	for bucket, v := range lineEntries(events) {
		err = errors.Join(err, b.Set(lineKey(family, bucket, record), v, nil))
	}
	return err
}

// removeLines removes what the index holds of a record that is trimmed.
func removeLines(b *pebble.Batch, family int, events []event) error {
	var done [lineBuckets / 64]uint64 // buckets, so that none is removed for each of its events
	var err error
	for i := range events {
		if events[i].User == "" {
			continue
		}
		bucket, _ := lineOf(events[i].User)
		if bit := uint64(1) << (bucket & 63); done[bucket>>6]&bit == 0 {
			done[bucket>>6] |= bit
			err = errors.Join(err, b.Delete(lineKey(family, bucket, events[0].seq), nil))
		}
	}
	return err
}

// redactLine rewrites the index of a record whose events have lost a user.
func redactLine(b *pebble.Batch, family int, events []event, user string) error {
	bucket, _ := lineOf(user)
	k := lineKey(family, bucket, events[0].seq)
	if left := lineEntries(events)[bucket]; len(left) > 0 {
		return b.Set(k, left, nil)
	}
	return b.Delete(k, nil)
}

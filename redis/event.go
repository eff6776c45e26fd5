package redis

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// An event's id has the number that tells this store from others, the event's place in its
// partition, and the partition. A place is the time of the Redis server in microseconds, made
// unique: so places tell about when an event was written, also across partitions.
const eventIDLen = 4 + 8 + 2

type place struct {
	at   int64
	part int
}

// before orders events of all partitions.
func (p place) before(q place) bool { return p.at < q.at || (p.at == q.at && p.part < q.part) }

func (e *Engine) eventID(p place) rollcall.EventID {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, eventIDLen), e.store)
	b = binary.BigEndian.AppendUint64(b, uint64(p.at))
	b = binary.BigEndian.AppendUint16(b, uint16(p.part))
	return rollcall.EventID(hex.EncodeToString(b))
}

func (e *Engine) parseEventID(id rollcall.EventID) (place, bool) {
	b, err := hex.DecodeString(string(id))
	if err != nil || len(b) != eventIDLen || binary.BigEndian.Uint32(b) != e.store {
		return place{}, false
	}
	p := place{at: int64(binary.BigEndian.Uint64(b[4:])), part: int(binary.BigEndian.Uint16(b[12:]))}
	return p, p.at >= 0 && p.part < len(e.keyPrefixes)
}

// event is an event and its place.
type event struct {
	rollcall.Event
	place    place
	audience enginekit.Audience
}

func unpackEvent(blob string, p place) (event, error) {
	u := unpacker{s: blob}
	typ, ok := enginekit.EventTypeOf(uint8(u.num(1)))
	if !ok {
		return event{}, damaged("an event")
	}
	out := event{place: p, audience: enginekit.Audience(u.num(1))}
	out.Type, out.At, out.User = typ, enginekit.TimeOrZero(u.ms()), u.short()
	if sid := u.short(); sid != "" {
		out.Session = idOf(sid)
	}
	out.Cause, out.Reason, out.Actor = rollcall.Cause(u.short()), u.long(), u.short()
	if u.bad || u.s != "" {
		return out, damaged("an event")
	}
	return out, nil
}

// readStream reads the answer of XRANGE.
func readStream(msg rueidis.RedisMessage, part int) ([]event, error) {
	entries, err := msg.AsXRange()
	if err != nil {
		return nil, damaged("the events")
	}
	out := make([]event, 0, len(entries))
	for _, entry := range entries {
		at, err := strconv.ParseInt(strings.TrimSuffix(entry.ID, "-0"), 10, 64)
		if err != nil {
			return nil, damaged("an event")
		}
		ev, err := unpackEvent(entry.FieldValues["e"], place{at, part})
		if err != nil {
			return nil, err
		}
		out = append(out, ev)
	}
	return out, nil
}

// readRedacted reads events from which an erasure removed the user. The score is the place;
// the member is the place as text, a colon, and the event.
func readRedacted(msg rueidis.RedisMessage, part int) ([]event, error) {
	scores, err := msg.AsZScores()
	if err != nil {
		return nil, damaged("the events")
	}
	out := make([]event, 0, len(scores))
	for _, s := range scores {
		_, blob, _ := strings.Cut(s.Member, ":")
		ev, err := unpackEvent(blob, place{int64(s.Score), part})
		if err != nil {
			return nil, err
		}
		out = append(out, ev)
	}
	return out, nil
}

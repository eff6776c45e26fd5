package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// headerLen is the room a segment's header takes: a block of its own, so that
// no later write touches it.
const headerLen = 4096

// groupHead is the length of a group before its payload, tailLen of the zeros
// behind it.
const (
	groupHead = 40
	tailLen   = 16
)

var (
	headerMagic = []byte("journal1") //nolint:gochecknoglobals // a constant
	groupMagic  = []byte("grp1")     //nolint:gochecknoglobals // a constant
	castagnoli  = crc32.MakeTable(crc32.Castagnoli)
)

// header is the beginning of a segment.
type header struct {
	id    uint64
	first uint64 // number of its first record
	size  int64  // of the file, at least
}

func (h header) encode() []byte {
	b := make([]byte, 0, headerLen)
	b = append(b, headerMagic...)
	b = binary.BigEndian.AppendUint64(b, h.id)
	b = binary.BigEndian.AppendUint64(b, h.first)
	b = binary.BigEndian.AppendUint64(b, uint64(h.size))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:headerLen]
}

func decodeHeader(b []byte) (header, bool) {
	const n = 8 + 3*8
	if len(b) < headerLen || !bytes.Equal(b[:8], headerMagic) || binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return header{}, false
	}
	return header{binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), int64(binary.BigEndian.Uint64(b[24:]))}, true
}

// group is a run of records that was written and synced at once.
type group struct {
	first   uint64
	count   uint32
	durable uint64 // newest record known to be durable when it was written
	payload []byte
	end     int64 // offset behind the payload
}

// seal fills in the head of a group whose payload stands behind it in b, for
// its place in a segment.
func seal(b []byte, id uint64, offset int64, first uint64, count uint32, durable uint64) {
	copy(b, groupMagic)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-groupHead))
	binary.BigEndian.PutUint64(b[8:], first)
	binary.BigEndian.PutUint32(b[16:], count)
	binary.BigEndian.PutUint64(b[20:], id)
	binary.BigEndian.PutUint64(b[28:], durable)
	binary.BigEndian.PutUint32(b[36:], groupSum(b, offset))
}

// groupSum is the checksum of a group's head and payload at an offset.
func groupSum(b []byte, offset int64) uint32 {
	sum := crc32.Checksum(b[:36], castagnoli)
	sum = crc32.Update(sum, castagnoli, binary.BigEndian.AppendUint64(nil, uint64(offset)))
	return crc32.Update(sum, castagnoli, b[groupHead:])
}

// decodeGroup reads the group of a segment at an offset of its file.
func decodeGroup(data []byte, id uint64, offset int64) (group, bool) {
	if offset < 0 || int64(len(data)) < offset+groupHead || !bytes.Equal(data[offset:offset+4], groupMagic) {
		return group{}, false
	}
	head := data[offset:]
	n := int64(binary.BigEndian.Uint32(head[4:]))
	if binary.BigEndian.Uint64(head[20:]) != id || int64(len(head)) < groupHead+n {
		return group{}, false
	}
	whole := head[:groupHead+n]
	if binary.BigEndian.Uint32(whole[36:]) != groupSum(whole, offset) {
		return group{}, false
	}
	return group{
		first: binary.BigEndian.Uint64(whole[8:]), count: binary.BigEndian.Uint32(whole[16:]),
		durable: binary.BigEndian.Uint64(whole[28:]), payload: whole[groupHead:], end: offset + groupHead + n,
	}, true
}

// each calls fn with every record of the group.
func (g *group) each(fn func(n uint64, record []byte) error) error {
	b := g.payload
	for i := range uint64(g.count) {
		size, used := binary.Uvarint(b)
		if used <= 0 || size > uint64(len(b)-used) {
			return errForm
		}
		if err := fn(g.first+i, b[used:used+int(size):used+int(size)]); err != nil {
			return err
		}
		b = b[used+int(size):]
	}
	if len(b) != 0 {
		return errForm
	}
	return nil
}

var errForm = fmt.Errorf("the records of a group do not fill it")

// nextGroup returns the offset of the first valid group of a segment at or
// behind an offset.
func nextGroup(data []byte, id uint64, offset int64) (int64, bool) {
	for offset < int64(len(data)) {
		i := bytes.Index(data[offset:], groupMagic)
		if i < 0 {
			return 0, false
		}
		offset += int64(i)
		if _, ok := decodeGroup(data, id, offset); ok {
			return offset, true
		}
		offset++
	}
	return 0, false
}

package redis

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// packer writes the packed forms that scripts read with struct.unpack: numbers
// big-endian, texts behind their length.
type packer struct{ b []byte }

func (p *packer) u8(v uint8)   { p.b = append(p.b, v) }
func (p *packer) u16(v uint16) { p.b = binary.BigEndian.AppendUint16(p.b, v) }
func (p *packer) u32(v uint32) { p.b = binary.BigEndian.AppendUint32(p.b, v) }
func (p *packer) u64(v uint64) { p.b = binary.BigEndian.AppendUint64(p.b, v) }

func (p *packer) flag(v bool) {
	if v {
		p.u8(1)
	} else {
		p.u8(0)
	}
}

func (p *packer) short(s string) {
	p.u8(uint8(len(s)))
	p.b = append(p.b, s...)
}

func (p *packer) long(s string) {
	p.u16(uint16(len(s)))
	p.b = append(p.b, s...)
}

// text returns what was written; the packer must not be used after it.
func (p *packer) text() string { return unsafe.String(unsafe.SliceData(p.b), len(p.b)) }

// errDamaged says that what Redis holds is not what this package wrote.
var errDamaged = errors.New("redis: a record cannot be read")

func damaged(what string) error {
	return &rollcall.Error{Code: rollcall.CodeInternal, Detail: what + " in Redis cannot be read", Err: errDamaged}
}

// unpacker reads packed forms. After an error everything it reads is empty.
type unpacker struct {
	s   string
	bad bool
}

func (u *unpacker) raw(n int) string {
	if u.bad || n > len(u.s) {
		u.bad, u.s = true, ""
		return ""
	}
	out := u.s[:n]
	u.s = u.s[n:]
	return out
}

func (u *unpacker) num(n int) uint64 {
	var v uint64
	for _, c := range []byte(u.raw(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (u *unpacker) ms() int64     { return int64(u.num(8)) }
func (u *unpacker) short() string { return u.raw(int(u.num(1))) }
func (u *unpacker) long() string  { return u.raw(int(u.num(2))) }

func idText(id rollcall.SessionID) string { return string(id[:]) }

func idOf(s string) rollcall.SessionID {
	var id rollcall.SessionID
	copy(id[:], s)
	return id
}

// packIDs concatenates ids.
func packIDs(ids []rollcall.SessionID) string {
	packed := make([]byte, 0, 16*len(ids))
	for _, id := range ids {
		packed = append(packed, id[:]...)
	}
	return string(packed)
}

// idsOf splits concatenated ids.
func idsOf(packed string) []rollcall.SessionID {
	out := make([]rollcall.SessionID, len(packed)/16)
	for i := range out {
		out[i] = idOf(packed[16*i:])
	}
	return out
}

const tokenLen = 16

func tokenText(t rollcall.TokenHash) string { return string(t.Sum[:tokenLen]) }

func refText(r rollcall.Ref) string {
	if r.Token != nil {
		return "T" + tokenText(*r.Token)
	}
	return "I" + idText(r.ID)
}

// Versions of a session's record: one that keeps a deadline of its own has that
// behind the rest.
const (
	recordVersion    = 1
	postponedVersion = 2
)

// record is a session as it is stored; see session.lua.
type record struct {
	rollcall.Session
	idle, life int64
	postponed  int64 // deadline that an import brought put off; 0 for none
	token      string
}

// packRest packs what scripts do not look into, behind the name.
func packRest(s *rollcall.Session) string {
	var p packer
	p.long(s.UserAgent)
	p.u8(uint8(len(s.Attrs)))
	for _, k := range slices.Sorted(maps.Keys(s.Attrs)) {
		p.short(k)
		p.long(s.Attrs[k])
	}
	return p.text()
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return string(a.Unmap().AsSlice())
}

// pack packs a whole record.
func (r *record) pack() string {
	var p packer
	if r.postponed != 0 {
		p.u8(postponedVersion)
	} else {
		p.u8(recordVersion)
	}
	p.u64(uint64(r.idle))
	p.u64(uint64(r.life))
	p.b = append(p.b, r.token...)
	for _, s := range [...]string{r.User, r.Kind, r.App, r.Device, r.DeviceID, addrText(r.IP), r.Name} {
		p.short(s)
	}
	p.b = append(p.b, packRest(&r.Session)...)
	if r.postponed != 0 {
		p.u64(uint64(r.postponed))
	}
	return p.text()
}

// unpackRecord reads a record. seen and expires do not stand in it.
func unpackRecord(id rollcall.SessionID, blob string, seen, expires int64) (record, error) {
	u := unpacker{s: blob}
	r := record{Session: rollcall.Session{ID: id, LoginAt: id.Time(), SeenAt: enginekit.TimeOrZero(seen), ExpiresAt: enginekit.TimeOrZero(expires)}}
	version := u.num(1)
	if version != recordVersion && version != postponedVersion {
		return r, damaged("a session")
	}
	r.idle, r.life, r.token = u.ms(), u.ms(), u.raw(tokenLen)
	r.User, r.Kind, r.App, r.Device, r.DeviceID = u.short(), u.short(), u.short(), u.short(), u.short()
	if ip := u.short(); ip != "" {
		r.IP, _ = netip.AddrFromSlice([]byte(ip))
	}
	r.Name, r.UserAgent = u.short(), u.long()
	if n := int(u.num(1)); n > 0 && !u.bad {
		r.Attrs = make(map[string]string, n)
		for range n {
			k := u.short()
			r.Attrs[k] = u.long()
		}
	}
	if version == postponedVersion {
		r.postponed = u.ms()
	}
	if u.bad || u.s != "" {
		return r, damaged("a session")
	}
	if r.life > 0 {
		r.EndsAt = r.LoginAt.Add(time.Duration(r.life) * time.Millisecond)
	}
	return r, nil
}

// unpackEnd reads what is kept of a session that ended.
func unpackEnd(id rollcall.SessionID, blob string) (record, error) {
	u := unpacker{s: blob}
	end := rollcall.End{At: enginekit.TimeOrZero(u.ms())}
	seen, expires := u.ms(), u.ms()
	end.Cause, end.Reason, end.Actor = rollcall.Cause(u.short()), u.long(), u.short()
	if u.bad {
		return record{}, damaged("an ended session")
	}
	r, err := unpackRecord(id, u.s, seen, expires)
	r.End = &end
	return r, err
}

// packPolicies packs policies for policy.lua. The last is the default one.
func packPolicies(list []rollcall.Policy) string {
	var p packer
	p.u16(uint16(len(list) + 1))
	for _, policy := range append(slices.Clone(list), (*rollcall.Policies)(nil).For("", "", "")) {
		p.short(policy.Kind)
		p.short(policy.App)
		p.short(policy.Device)
		p.u64(uint64(policy.IdleTimeout.Milliseconds()))
		p.u64(uint64(policy.Lifetime.Milliseconds()))
		p.u32(uint32(policy.MaxSessions))
		p.u32(uint32(policy.MaxPerDevice))
		p.u8(map[rollcall.Overflow]uint8{rollcall.EvictIdle: 1, rollcall.Reject: 2}[policy.Overflow])
	}
	return p.text()
}

// packBan packs a ban. Its end and its start come first: an erasure keeps these 16 bytes and
// removes the rest.
func packBan(b rollcall.Ban) string {
	var p packer
	p.u64(uint64(b.Until.UnixMilli()))
	p.u64(uint64(b.At.UnixMilli()))
	p.short(b.User)
	p.long(b.Reason)
	p.short(b.Actor)
	return p.text()
}

func unpackBan(key, blob string) (rollcall.Ban, error) {
	u := unpacker{s: blob}
	b := rollcall.Ban{Key: rollcall.BanKey([]byte(key)), Until: enginekit.TimeOrZero(u.ms()), At: enginekit.TimeOrZero(u.ms())}
	b.User, b.Reason, b.Actor = u.short(), u.long(), u.short()
	if u.bad || u.s != "" {
		return b, damaged("a ban")
	}
	return b, nil
}

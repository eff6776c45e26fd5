package local

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// errDamaged is what decoders answer to bytes no encoder wrote.
var errDamaged = errors.New("damaged record")

// writer appends fields to a record.
type writer struct{ b []byte }

func (w *writer) u8(v uint8)        { w.b = append(w.b, v) }
func (w *writer) uint(v uint64)     { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)       { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) raw(b []byte)      { w.b = append(w.b, b...) }
func (w *writer) string(s string)   { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) bytes(b []byte)    { w.uint(uint64(len(b))); w.b = append(w.b, b...) }
func (w *writer) addr(a netip.Addr) { w.bytes(a.AsSlice()) }

func (w *writer) attrs(attrs map[string]string) {
	w.uint(uint64(len(attrs)))
	var room [rollcall.MaxAttrs]string
	keys := room[:0]
	for k := range attrs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		w.string(k)
		w.string(attrs[k])
	}
}

// reader takes fields off a record. After the first fault every field is zero
// and err is set.
type reader struct {
	b        []byte
	err      error
	borrowed bool // strings are not copied, so they hold as long as the record does
}

func (r *reader) fail() { r.b, r.err = nil, errDamaged }

func (r *reader) u8() uint8 {
	if len(r.b) < 1 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) raw(n int) []byte {
	if n < 0 || len(r.b) < n {
		r.fail()
		return make([]byte, max(0, min(n, 64)))
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	return r.raw(int(n))
}

func (r *reader) string() string {
	b := r.bytes()
	if r.borrowed {
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	return string(b)
}

func (r *reader) addr() netip.Addr {
	b := r.bytes()
	if len(b) == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		r.fail()
	}
	return a
}

// attrs reads attributes into a map, or into a new one if it is nil. It returns nil if there are
// none.
func (r *reader) attrs(into map[string]string) map[string]string {
	n := r.uint()
	if n > rollcall.MaxAttrs {
		r.fail()
		return nil
	}
	if n == 0 {
		return nil
	}
	if into == nil {
		into = make(map[string]string, n)
	}
	for range n {
		k := r.string()
		into[k] = r.string()
	}
	return into
}

func (r *reader) id() (id rollcall.SessionID) {
	copy(id[:], r.raw(len(id)))
	return id
}

// done reports a fault, or bytes left over.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		return errDamaged
	}
	return r.err
}

// sessionRecord is a session as it stands in the store.
type sessionRecord struct {
	rollcall.Session
	slot             uint32
	token            tokenKey
	idle             int64 // ms
	lifetime         int64 // ms, 0 for none
	importedDeadline int64 // deadline that an import brought, until the next touch; 0 for none
}

const sessionFormat = 2

func (s *sessionRecord) encode(dst []byte) []byte {
	w := writer{dst}
	w.u8(sessionFormat)
	w.uint(uint64(s.slot))
	w.raw(s.token[:])
	w.int(s.SeenAt.UnixMilli() - s.LoginAt.UnixMilli())
	w.int(s.idle)
	w.int(s.lifetime)
	w.int(s.importedDeadline)
	w.string(s.User)
	for _, f := range [...]string{s.Kind, s.Name, s.App, s.Device, s.DeviceID, s.UserAgent} {
		w.string(f)
	}
	w.addr(s.IP)
	w.attrs(s.Attrs)
	if s.End == nil {
		w.u8(0)
		return w.b
	}
	w.u8(1)
	w.int(s.End.At.UnixMilli())
	w.int(enginekit.Milliseconds(s.ExpiresAt))
	w.int(enginekit.Milliseconds(s.EndsAt))
	w.string(string(s.End.Cause))
	w.string(s.End.Reason)
	w.string(s.End.Actor)
	return w.b
}

func decodeSession(id rollcall.SessionID, b []byte) (sessionRecord, error) {
	return readSession(id, reader{b: b}, nil)
}

// readSession is decodeSession from a reader. The attributes go into a map, or into a new one if it
// is nil.
func readSession(id rollcall.SessionID, r reader, attrs map[string]string) (sessionRecord, error) {
	s := sessionRecord{}
	if r.u8() != sessionFormat {
		return s, errDamaged
	}
	s.ID, s.LoginAt = id, id.Time()
	s.slot = uint32(r.uint())
	s.token = tokenKey(r.raw(len(s.token)))
	s.SeenAt = enginekit.TimeOf(s.LoginAt.UnixMilli() + r.int())
	s.idle, s.lifetime, s.importedDeadline = r.int(), r.int(), r.int()
	s.User = r.string()
	for _, f := range [...]*string{&s.Kind, &s.Name, &s.App, &s.Device, &s.DeviceID, &s.UserAgent} {
		*f = r.string()
	}
	s.IP, s.Attrs = r.addr(), r.attrs(attrs)
	if r.u8() == 1 {
		s.End = &rollcall.End{At: enginekit.TimeOf(r.int())}
		s.ExpiresAt, s.EndsAt = enginekit.TimeOrZero(r.int()), enginekit.TimeOrZero(r.int())
		s.End.Cause, s.End.Reason, s.End.Actor = rollcall.Cause(r.string()), r.string(), r.string()
	}
	return s, r.done()
}

func encodeBan(b rollcall.Ban) []byte {
	w := writer{}
	w.string(b.User)
	w.int(b.At.UnixMilli())
	w.int(b.Until.UnixMilli())
	w.string(b.Reason)
	w.string(b.Actor)
	return w.b
}

func decodeBan(k rollcall.BanKey, v []byte) (rollcall.Ban, error) {
	r := reader{b: v}
	b := rollcall.Ban{Key: k, User: r.string()}
	b.At, b.Until = enginekit.TimeOf(r.int()), enginekit.TimeOf(r.int())
	b.Reason, b.Actor = r.string(), r.string()
	return b, r.done()
}

func encodeAPIKey(k rollcall.APIKey) []byte {
	w := writer{}
	w.raw(k.Hash[:])
	w.string(k.Name)
	w.string(string(k.Role))
	w.int(k.CreatedAt.UnixMilli())
	w.int(enginekit.Milliseconds(k.ExpiresAt))
	w.u8(0)
	if k.Configured {
		w.b[len(w.b)-1] = 1
	}
	w.int(enginekit.Milliseconds(k.RevokedAt))
	return w.b
}

func decodeAPIKey(id string, v []byte) (rollcall.APIKey, error) {
	r := reader{b: v}
	k := rollcall.APIKey{ID: id}
	k.Hash = rollcall.KeyHash(r.raw(len(k.Hash)))
	k.Name, k.Role = r.string(), rollcall.Role(r.string())
	k.CreatedAt, k.ExpiresAt = enginekit.TimeOf(r.int()), enginekit.TimeOrZero(r.int())
	k.Configured, k.RevokedAt = r.u8() == 1, enginekit.TimeOrZero(r.int())
	return k, r.done()
}

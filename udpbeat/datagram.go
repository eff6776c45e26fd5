package udpbeat

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/rollcall/rollcall"
)

// Sizes of datagrams in bytes.
const (
	SessionBeatSize = 41
	MaxSize         = 1400

	macSize      = 16
	gatewayHead  = 1 + 8 + 4 + 8 + 2 // all before the first user
	leastGateway = gatewayHead + 2 + macSize
)

const (
	versionSession = 1
	versionGateway = 2
)

// Key authenticates the datagrams of a sender.
type Key = [sha256.Size]byte

// SessionBeat is a sign of life of a session.
type SessionBeat struct {
	Session rollcall.SessionID
	Seconds uint32 // unix time of the sender's clock
	Counter uint32 // rises with every datagram of the session
}

// Append appends the datagram to b.
func (s SessionBeat) Append(b []byte, key Key) []byte {
	start := len(b)
	b = append(b, versionSession)
	b = append(b, s.Session[:]...)
	b = binary.BigEndian.AppendUint32(b, s.Seconds)
	b = binary.BigEndian.AppendUint32(b, s.Counter)
	return appendMAC(b, start, key)
}

// GatewayBeat is a sign of life of users, from a program that knows them.
type GatewayBeat struct {
	Key     string // id of an API key: 16 hexadecimal digits
	Seconds uint32 // unix time of the sender's clock
	Counter uint64 // rises with every datagram under the key
	Users   []string
}

// Append appends the datagram to b. It fails if there is no user, if an id cannot be
// a user's, or if the datagram would have over 1,400 bytes: then the users have to
// be shared out to several.
func (g GatewayBeat) Append(b []byte, key Key) ([]byte, error) {
	start := len(b)
	id, err := hex.DecodeString(g.Key)
	if err != nil || len(id) != 8 {
		return nil, rollcall.Invalid("key", "must be the id of an API key: 16 hexadecimal digits")
	}
	if len(g.Users) == 0 {
		return nil, rollcall.Invalid("users", "names nobody")
	}
	b = append(b, versionGateway)
	b = append(b, id...)
	b = binary.BigEndian.AppendUint32(b, g.Seconds)
	b = binary.BigEndian.AppendUint64(b, g.Counter)
	b = binary.BigEndian.AppendUint16(b, uint16(len(g.Users))) //nolint:gosec // more than fit are refused below
	for i, user := range g.Users {
		if err := rollcall.CheckUser(user); err != nil {
			return nil, fmt.Errorf("users[%d]: %w", i, err)
		}
		b = append(b, byte(len(user)))
		b = append(b, user...)
		if len(b)-start+macSize > MaxSize {
			return nil, rollcall.Invalid("users", "make more than %d bytes: share them out to several datagrams", MaxSize)
		}
	}
	return appendMAC(b, start, key), nil
}

func appendMAC(b []byte, start int, key Key) []byte {
	sum := mac(b[start:], key)
	return append(b, sum[:macSize]...)
}

func mac(body []byte, key Key) [sha256.Size]byte {
	h := hmac.New(sha256.New, key[:])
	h.Write(body)
	return Key(h.Sum(nil))
}

// authentic reports whether the datagram ends with the MAC of its sender. The time
// this takes does not depend on which bytes differ.
func authentic(datagram []byte, key Key) bool {
	body := datagram[:len(datagram)-macSize]
	sum := mac(body, key)
	return subtle.ConstantTimeCompare(sum[:macSize], datagram[len(body):]) == 1
}

var errMalformed = errors.New("udpbeat: not a datagram of this protocol")

// ParseSession reads a session beat. The MAC has to be right for key.
func ParseSession(datagram []byte, key func(rollcall.SessionID) Key) (SessionBeat, error) {
	beat, ok := readSession(datagram)
	if !ok {
		return SessionBeat{}, errMalformed
	}
	if !authentic(datagram, key(beat.Session)) {
		return SessionBeat{}, errUnauthentic
	}
	return beat, nil
}

var errUnauthentic = errors.New("udpbeat: the MAC is not the sender's")

// readSession reads a session beat whose MAC nobody has checked yet.
func readSession(b []byte) (s SessionBeat, ok bool) {
	if len(b) != SessionBeatSize || b[0] != versionSession {
		return SessionBeat{}, false
	}
	copy(s.Session[:], b[1:17])
	s.Seconds = binary.BigEndian.Uint32(b[17:])
	s.Counter = binary.BigEndian.Uint32(b[21:])
	return s, !s.Session.IsZero()
}

// ParseGateway reads a gateway beat. The MAC has to be right for key, which gets
// the id of the API key.
func ParseGateway(datagram []byte, key func(id string) Key) (GatewayBeat, error) {
	head, ok := readGatewayHead(datagram)
	if !ok {
		return GatewayBeat{}, errMalformed
	}
	beat := GatewayBeat{Key: hex.EncodeToString(head.key[:]), Seconds: head.seconds, Counter: head.counter}
	if !authentic(datagram, key(beat.Key)) {
		return GatewayBeat{}, errUnauthentic
	}
	if beat.Users, ok = appendUsers(nil, datagram, head.users); !ok {
		return GatewayBeat{}, errMalformed
	}
	return beat, nil
}

// gateway is what a gateway beat says before its users.
type gateway struct {
	key     [8]byte
	seconds uint32
	counter uint64
	users   int
}

// readGatewayHead reads what stands before the users of a gateway beat whose MAC
// nobody has checked yet.
func readGatewayHead(b []byte) (g gateway, ok bool) {
	if len(b) < leastGateway || len(b) > MaxSize || b[0] != versionGateway {
		return gateway{}, false
	}
	copy(g.key[:], b[1:9])
	g.seconds = binary.BigEndian.Uint32(b[9:])
	g.counter = binary.BigEndian.Uint64(b[13:])
	g.users = int(binary.BigEndian.Uint16(b[21:]))
	// A user takes two bytes at least, so that no count makes room for more than
	// the datagram holds.
	return g, g.users > 0 && g.users <= (len(b)-gatewayHead-macSize)/2
}

// appendUsers appends the users of a gateway beat to out. It is false, and out as
// it was, unless they are as many as announced and fill the datagram.
func appendUsers(out []string, datagram []byte, count int) ([]string, bool) {
	// One string is made of all, and the ids are parts of it.
	rest := string(datagram[gatewayHead : len(datagram)-macSize])
	before := len(out)
	for range count {
		if rest == "" {
			return out[:before], false
		}
		n := int(rest[0])
		if n > len(rest)-1 || rollcall.CheckUser(rest[1:1+n]) != nil {
			return out[:before], false
		}
		out = append(out, rest[1:1+n])
		rest = rest[1+n:]
	}
	if rest != "" {
		return out[:before], false
	}
	return out, true
}

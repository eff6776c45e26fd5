package rollcall

import (
	"encoding/binary"
	"math/bits"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a user and of the texts around one, in bytes of UTF-8.
const (
	MaxUserLen   = 128
	MaxKindLen   = 32
	MaxKinds     = 64 // distinct kinds in one store
	MaxNameLen   = 128
	MaxReasonLen = 256
	MaxActorLen  = 128
)

// DefaultKind is the kind of a user nobody gave one.
const DefaultKind = "user"

// User is what is kept about a user besides presence, sessions, friends and
// days.
type User struct {
	ID        string
	Kind      string
	Name      string
	Invisible bool
}

// UserPatch changes the fields that are not nil.
type UserPatch struct {
	Kind      *string
	Name      *string
	Invisible *bool
}

// UserSummary is all there is to say about a user at a glance.
type UserSummary struct {
	User
	Status  Status
	Friends int
	Streak  Streak
	// StreakUnavailable: the archive has days of the user and does not answer, so
	// that Streak is not known.
	StreakUnavailable bool
	Ban               *Ban
}

// Ban keeps a user from logging in until Until. Key identifies the user even
// after an erasure has removed User.
type Ban struct {
	User   string // empty once the user was erased
	Key    BanKey
	At     time.Time
	Until  time.Time
	Reason string
	Actor  string
}

// BanKey is a keyed hash of a user id. Its key never enters the store, so a
// ban can outlive the erasure of its user without naming anyone.
type BanKey [16]byte

// HashUser returns the stable 64-bit hash of a user id: the same in every
// process and release, as it decides the partition. An id that is the
// canonical decimal form of a number below 2⁶³ hashes as [HashNumber] of it.
//
// It spreads ids evenly; it does not resist someone who chooses ids in order to
// make them collide.
func HashUser(id string) uint64 {
	if n, ok := parseNumber(id); ok {
		return HashNumber(n)
	}
	return HashText(id)
}

// HashNumber returns the hash of a numeric id: the finalizer of SplitMix64
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
func HashNumber(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// HashText returns the hash of an id that is not numeric: eight bytes at a
// time, folded with the high and low halves of a 128-bit product.
func HashText(id string) uint64 {
	const k = 0xa0761d6478bd642f
	h := uint64(len(id)) ^ 0xe7037ed1a0b428db
	b := []byte(id)
	for len(b) >= 8 {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(b), k)
		h, b = hi^lo, b[8:]
	}
	var tail [8]byte
	copy(tail[:], b)
	hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(tail[:]), k)
	return HashNumber(hi ^ lo)
}

func parseNumber(id string) (uint64, bool) {
	if len(id) == 0 || len(id) > 19 || (id[0] == '0' && len(id) > 1) {
		return 0, false
	}
	var n uint64
	for i := range len(id) {
		d := id[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, n < 1<<63
}

// CheckUser returns why an id cannot be a user's, nil if it can.
func CheckUser(id string) error { return validateUser("user", id) }

// CheckKind returns why a text cannot be a kind, nil if it can; "" stands for
// the user's own kind.
func CheckKind(kind string) error { return validateKind("kind", kind) }

func validateUser(field, id string) error {
	if id == "" {
		return Invalid(field, "is required")
	}
	return validateText(field, id, MaxUserLen)
}

func validateKind(field, kind string) error {
	if len(kind) > MaxKindLen {
		return Invalid(field, "is %d bytes long, the limit is %d", len(kind), MaxKindLen)
	}
	for i := range len(kind) {
		c := kind[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return Invalid(field, "may hold only a-z, 0-9, _ and -")
		}
	}
	return nil
}

// isPlain reports whether a text is short enough and all of it is printable ASCII, as most are.
func isPlain(s string, limit int) bool {
	if len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// validateText accepts up to limit bytes of UTF-8 without control characters.
func validateText(field, s string, limit int) error {
	if isPlain(s, limit) {
		return nil
	}
	if len(s) > limit {
		return Invalid(field, "is %d bytes long, the limit is %d", len(s), limit)
	}
	if !utf8.ValidString(s) {
		return Invalid(field, "is not valid UTF-8")
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return Invalid(field, "holds a control character (%U)", r)
		}
	}
	return nil
}

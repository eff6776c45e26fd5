package rollcall

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Limits of a session's fields, in bytes of UTF-8.
const (
	MaxAppLen       = 64
	MaxDeviceLen    = 32
	MaxDeviceIDLen  = 128
	MaxUserAgentLen = 1024
	MaxAttrs        = 16
	MaxAttrKeyLen   = 32
	MaxAttrValueLen = 256
	MaxAttrsLen     = 2048 // all keys and values of a session together
)

// Session is one login of one user.
type Session struct {
	ID        SessionID
	User      string
	Kind      string
	Name      string
	App       string
	Device    string     // class of device: web, ios, android, …
	DeviceID  string     // one physical device, if the application knows it
	IP        netip.Addr // zero if not given
	UserAgent string
	Attrs     map[string]string

	LoginAt   time.Time
	SeenAt    time.Time // last login, touch
	ExpiresAt time.Time // when idleness ends it
	EndsAt    time.Time // absolute end; zero means none

	End *End // nil while the session lives
}

// End tells how and when a session ended.
type End struct {
	At     time.Time
	Cause  Cause
	Reason string
	Actor  string
}

// Cause is why a session ended.
type Cause string

// The causes of an end.
const (
	CauseLogout   Cause = "logout"   // its own sign-out
	CauseKicked   Cause = "kicked"   // shown out
	CauseReplaced Cause = "replaced" // pushed out by a later login
	CauseExpired  Cause = "expired"  // silent for its idle timeout
	CauseLifetime Cause = "lifetime" // reached its absolute end
	CauseBanned   Cause = "banned"   // its user was banned
	CauseErased   Cause = "erased"   // its user was erased
)

var causes = []Cause{CauseLogout, CauseKicked, CauseReplaced, CauseExpired, CauseLifetime, CauseBanned, CauseErased}

// Causes returns the causes there are.
func Causes() []Cause { return slices.Clone(causes) }

// SessionID is the public id of a session: 48 bits of login time in
// milliseconds, 64 random bits, and 16 bits of the user's hash, which lead to
// the user's partition. Ids sort by login time. They are not secret.
type SessionID [16]byte

// crockford is base 32 in an alphabet whose text sorts like the bytes.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewSessionID composes the id of a session that begins at loginAt.
func NewSessionID(loginAt time.Time, user string, random uint64) SessionID {
	var id SessionID
	binary.BigEndian.PutUint64(id[:8], uint64(loginAt.UnixMilli())<<16)
	binary.BigEndian.PutUint64(id[6:14], random)
	binary.BigEndian.PutUint16(id[14:], uint16(HashUser(user)))
	return id
}

// ParseSessionID reads the 26-character text form.
func ParseSessionID(text string) (SessionID, error) {
	var id SessionID
	if len(text) != 26 {
		return id, Invalid("session", "an id has 26 characters, this has %d", len(text))
	}
	b, err := crockford.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, Invalid("session", "is not a session id")
	}
	copy(id[:], b)
	if id.String() != text { // trailing bits that no id has
		return SessionID{}, Invalid("session", "is not a session id")
	}
	return id, nil
}

// String returns the text form: 26 characters that sort like the id.
func (id SessionID) String() string { return crockford.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *SessionID) UnmarshalText(text []byte) error {
	parsed, err := ParseSessionID(string(text))
	*id = parsed
	return err
}

// IsZero reports whether id is no id.
func (id SessionID) IsZero() bool { return id == SessionID{} }

// Time returns the login time held in the id.
func (id SessionID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

// Random returns the 64 random bits.
func (id SessionID) Random() uint64 { return binary.BigEndian.Uint64(id[6:14]) }

// Home returns the low 16 bits of the user's hash.
func (id SessionID) Home() uint16 { return binary.BigEndian.Uint16(id[14:]) }

// SessionPatch changes the fields that are not nil.
type SessionPatch struct {
	Name  *string
	App   *string
	Attrs *map[string]string // replaces all
}

// Apply changes a session.
func (p SessionPatch) Apply(s *Session) {
	if p.Name != nil {
		s.Name = *p.Name
	}
	if p.App != nil {
		s.App = *p.App
	}
	if p.Attrs != nil {
		s.Attrs = *p.Attrs
	}
}

func (p SessionPatch) validate() error {
	if p.Name != nil {
		if err := validateText("name", *p.Name, MaxNameLen); err != nil {
			return err
		}
	}
	if p.App != nil {
		if err := validateText("app", *p.App, MaxAppLen); err != nil {
			return err
		}
	}
	if p.Attrs != nil {
		return validateAttrs(*p.Attrs)
	}
	return nil
}

func validateAttrs(attrs map[string]string) error {
	if len(attrs) > MaxAttrs {
		return Invalid("attrs", "has %d entries, the limit is %d", len(attrs), MaxAttrs)
	}
	total := 0
	for k, v := range attrs {
		if k == "" {
			return Invalid("attrs", "a key is empty")
		}
		if err := validateText("attrs", k, MaxAttrKeyLen); err != nil {
			return err
		}
		if !isPlain(v, MaxAttrValueLen) { // only then its name is made
			if err := validateText("attrs."+k, v, MaxAttrValueLen); err != nil {
				return err
			}
		}
		total += len(k) + len(v)
	}
	if total > MaxAttrsLen {
		return Invalid("attrs", "holds %d bytes, the limit is %d", total, MaxAttrsLen)
	}
	return nil
}

// SessionRef names a session by its token or, if that is empty, its id.
type SessionRef struct {
	Token string
	ID    SessionID
}

func (s SessionRef) engineRef() (Ref, bool) {
	if s.Token == "" {
		return Ref{ID: s.ID}, !s.ID.IsZero()
	}
	hash, ok := HashToken(s.Token)
	return Ref{Token: &hash}, ok
}

func unknownSession() error {
	return &Error{Code: CodeUnauthenticated, Detail: "no such session: log in"}
}

// SessionEndedError is the error that tells a client how its session ended.
func SessionEndedError(end *End) error {
	return &Error{
		Code: CodeSessionEnded, Cause: end.Cause, Reason: end.Reason,
		Detail: fmt.Sprintf("the session ended at %s", end.At.UTC().Format(time.RFC3339)),
	}
}

package rollcall

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"sort"
)

// Login asks for a new session. Only User is required; an empty Kind or Name is
// the user's own.
type Login struct {
	User      string
	Kind      string
	Name      string
	App       string
	Device    string
	DeviceID  string
	IP        netip.Addr
	UserAgent string
	Attrs     map[string]string

	// Evict names sessions that are to end (CauseReplaced) if the login
	// succeeds, whatever the policy: those of them that are live sessions of
	// User. Others are ignored, as they may have ended meanwhile. At most
	// MaxEvict. It answers a refusal with session_limit, whose Conflicts name
	// the sessions in the way.
	Evict []SessionID

	// RetryKey makes the login safe to repeat for 10 minutes: the same key with
	// the same login returns the same session and token as long as the session
	// lives, and session_ended with its cause afterwards. With another login it
	// is a conflict, and so it is once the token has been rotated. A login that
	// was refused holds no key. RetryScope keeps callers' keys apart.
	RetryKey, RetryScope string
}

// MaxEvict is how many sessions one login may name to be ended.
const MaxEvict = 50

// maxRetryKey is how many bytes a retry key may have.
const maxRetryKey = 255

// LoggedIn is a login's outcome. Token is shown here and never again.
type LoggedIn struct {
	Session Session
	Token   string
	BeatKey [sha256.Size]byte // see BeatKey
	Ended   []Ended           // sessions that made room
}

func (l *Login) validate() error {
	if err := validateUser("user", l.User); err != nil {
		return err
	}
	if err := validateKind("kind", l.Kind); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name, value string
		limit       int
	}{
		{"name", l.Name, MaxNameLen},
		{"app", l.App, MaxAppLen},
		{"device", l.Device, MaxDeviceLen},
		{"device_id", l.DeviceID, MaxDeviceIDLen},
		{"user_agent", l.UserAgent, MaxUserAgentLen},
		{"idempotency_key", l.RetryKey, maxRetryKey},
	} {
		if err := validateText(f.name, f.value, f.limit); err != nil {
			return err
		}
	}
	if l.IP.Zone() != "" {
		return Invalid("ip", "must not have a zone")
	}
	if len(l.Evict) > MaxEvict {
		return Invalid("evict", "names %d sessions, the limit is %d", len(l.Evict), MaxEvict)
	}
	return validateAttrs(l.Attrs)
}

// digest is a hash of all that the login says.
func (l *Login) digest() [sha256.Size]byte {
	h := sha256.New()
	put := func(s string) {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, s := range []string{l.User, l.Kind, l.Name, l.App, l.Device, l.DeviceID, l.IP.String(), l.UserAgent} {
		put(s)
	}
	for _, id := range l.Evict {
		put(string(id[:]))
	}
	put("") // no id is empty: the attributes begin
	keys := make([]string, 0, len(l.Attrs))
	for k := range l.Attrs {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		put(k)
		put(l.Attrs[k])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

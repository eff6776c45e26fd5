package takeover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rollcall/rollcall"
)

// The attributes by which an imported session is known again: what it was called in the
// old list, and its score there.
const (
	attrOrigin = "origin"
	attrLogin  = "origin_login"
)

// oldSession is an entry of an online list.
type oldSession struct {
	member string // as it stands in the list
	user   string
	score  float64
	login  time.Time
	record record
}

// record is what a login record says. Fields that it does not have are empty.
type record struct {
	name, app, device, kind, userAgent string
	ip                                 netip.Addr
}

// recordFields are the names under which hand-built records keep a field.
var recordFields = map[string][]string{
	"name":   {"name", "nickname", "nick", "username", "user_name"},
	"app":    {"app", "subsystem", "system", "application"},
	"device": {"device", "device_type", "platform", "terminal"},
	"kind":   {"kind", "user_type", "usertype"},
	"ip":     {"ip", "login_ip", "loginip", "host"},
	"ua":     {"user_agent", "useragent", "ua", "browser"},
}

// mostOfRecord is how many bytes of a record are read. One that has more has no fields.
const mostOfRecord = 64 << 10

// nameWrittenBack is what a write-back calls a session that began here, in a list of sessions.
func nameWrittenBack(s rollcall.Session) string { return s.User + ":" + s.ID.String() }

// isOf reports whether an entry is a session that began here, and was written back.
func (s *oldSession) isOf(session rollcall.Session) bool {
	if session.ID.IsZero() {
		return false
	}
	return s.member == nameWrittenBack(session) || s.login.Unix() == session.LoginAt.Unix()
}

// readRecord reads a record in JSON. What is not JSON has no fields; a field that
// Rollcall would refuse is left out.
func readRecord(text string) record {
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return record{}
	}
	flat := make(map[string]string)
	flatten(flat, fields, 1)
	find := func(field string, limit int) string {
		for _, name := range recordFields[field] {
			if text := plainText(flat[name], limit); text != "" {
				return text
			}
		}
		return ""
	}
	r := record{
		name: find("name", rollcall.MaxNameLen), app: find("app", rollcall.MaxAppLen), device: find("device", rollcall.MaxDeviceLen),
		kind: find("kind", 32), userAgent: find("ua", rollcall.MaxUserAgentLen),
	}
	r.ip, _ = netip.ParseAddr(find("ip", 64)) // the zero address if it is none
	r.ip = r.ip.WithZone("")
	if rollcall.CheckKind(r.kind) != nil {
		r.kind = ""
	}
	return r
}

// flatten takes the texts of an object and of the object user in it, by their names in
// small letters without hyphens.
func flatten(into map[string]string, fields map[string]any, deeper int) {
	for name, value := range fields {
		name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
		switch v := value.(type) {
		case string:
			if into[name] == "" {
				into[name] = v
			}
		case map[string]any:
			if deeper > 0 {
				flatten(into, v, deeper-1)
			}
		}
	}
}

// plainText is a text that Rollcall takes, "" if it would not.
func plainText(text string, limit int) string {
	if len(text) > limit || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	return text
}

func (s *oldSession) scoreText() string { return strconv.FormatFloat(s.score, 'f', -1, 64) }

// attrs are the attributes of the session that it becomes.
func (s *oldSession) attrs() map[string]string {
	out := map[string]string{attrLogin: s.scoreText()}
	if origin := plainText(s.member, rollcall.MaxAttrValueLen); origin != "" {
		out[attrOrigin] = origin
	}
	return out
}

// snapshot is the session that it becomes, if nothing is known of its user yet. Its id
// depends on the entry alone, so an import that is repeated makes the same one.
func (s *oldSession) snapshot(idle, lifetime time.Duration) rollcall.SessionSnapshot {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(s.member)) // it never fails
	out := rollcall.SessionSnapshot{Idle: idle, Lifetime: lifetime}
	out.Session = rollcall.Session{
		ID: rollcall.NewSessionID(s.login, s.user, hash.Sum64()), User: s.user, Kind: cmp.Or(s.record.kind, rollcall.DefaultKind), Name: s.record.name,
		App: s.record.app, Device: s.record.device, IP: s.record.ip, UserAgent: s.record.userAgent, Attrs: s.attrs(),
		LoginAt: s.login, SeenAt: s.login, ExpiresAt: s.login.Add(idle), EndsAt: s.login.Add(lifetime),
	}
	// Nobody has a token of it: the application goes on by its id, or its users log in anew. An
	// engine spreads sessions by how the hash of a token begins, so what is random comes first.
	token := out.ID
	slices.Reverse(token[:14])
	copy(out.Token[:], token[:])
	return out
}

// begin is the login that it becomes, if its user is known already.
func (s *oldSession) begin() rollcall.Login {
	return rollcall.Login{
		User: s.user, Kind: s.record.kind, Name: s.record.name, App: s.record.app, Device: s.record.device,
		IP: s.record.ip, UserAgent: s.record.userAgent, Attrs: s.attrs(),
	}
}

// checkUser returns why an id cannot be one of a user, nil if it can.
func checkUser(id string) error {
	if id == "" || plainText(id, rollcall.MaxUserLen) == "" {
		return fmt.Errorf("an id has 1 to %d bytes of UTF-8, without control characters", rollcall.MaxUserLen)
	}
	return nil
}

package transfer

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rollcall/rollcall"
)

// text writes snapshots as JSON, each as one line. It is some times faster than
// the standard library, and leaves out what is empty. What it writes is read
// with [line].
type text struct{ b []byte }

// field begins a member of an object.
func (t *text) field(name string) {
	if last := t.b[len(t.b)-1]; last != '{' {
		t.b = append(t.b, ',')
	}
	t.b = append(t.b, '"')
	t.b = append(t.b, name...)
	t.b = append(t.b, '"', ':')
}

// item begins an element of an array.
func (t *text) item() {
	if last := t.b[len(t.b)-1]; last != '[' {
		t.b = append(t.b, ',')
	}
}

func (t *text) string(name, value string) {
	if value != "" {
		t.field(name)
		t.quote(value)
	}
}

func (t *text) time(name string, at time.Time) {
	if !at.IsZero() {
		t.field(name)
		t.b = append(t.b, '"')
		t.b = at.UTC().AppendFormat(t.b, time.RFC3339Nano)
		t.b = append(t.b, '"')
	}
}

func (t *text) number(name string, n int64) {
	if n != 0 {
		t.field(name)
		t.b = strconv.AppendInt(t.b, n, 10)
	}
}

func (t *text) hex(name string, value []byte) {
	t.field(name)
	t.b = append(t.b, '"')
	t.b = hex.AppendEncode(t.b, value)
	t.b = append(t.b, '"')
}

func (t *text) yes(name string, value bool) {
	if value {
		t.field(name)
		t.b = append(t.b, "true"...)
	}
}

// quote writes a JSON string.
func (t *text) quote(s string) {
	t.b = append(t.b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if c >= utf8.RuneSelf && r != utf8.RuneError && r != '\u2028' && r != '\u2029' {
			i += size
			continue
		}
		t.b = append(t.b, s[from:i]...)
		t.escape(r)
		i += size
		from = i
	}
	t.b = append(t.b, s[from:]...)
	t.b = append(t.b, '"')
}

// escape writes a character that may not stand as it is.
func (t *text) escape(r rune) {
	if r == '"' || r == '\\' {
		t.b = append(t.b, '\\', byte(r))
		return
	}
	const digits = "0123456789abcdef"
	t.b = append(t.b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// snapshot writes the line of a snapshot.
func (t *text) snapshot(d *rollcall.UserSnapshot) {
	t.b = append(t.b, `{"snapshot":{`...)
	t.string("user", d.User)
	t.string("kind", d.Kind)
	t.string("name", d.Name)
	t.yes("invisible", d.Invisible)
	t.time("frozen", d.Frozen)
	t.time("last_seen", d.LastSeen)
	t.yes("gone", d.Gone)
	if len(d.Friends) > 0 {
		t.field("friends")
		t.b = append(t.b, '[')
		for i := range d.Friends {
			t.item()
			t.b = append(t.b, '{')
			t.string("user", d.Friends[i].User)
			t.time("since", d.Friends[i].Since)
			t.b = append(t.b, '}')
		}
		t.b = append(t.b, ']')
	}
	t.days(d.Days)
	t.sessions("sessions", d.Sessions)
	t.sessions("ended", d.Ended)
	t.bans(d.Bans)
	t.b = append(t.b, "}}\n"...)
}

// days writes runs of days as spans.
func (t *text) days(days map[string][]rollcall.Day) {
	if len(days) == 0 {
		return
	}
	t.field("days")
	t.b = append(t.b, '{')
	for _, kind := range slices.Sorted(maps.Keys(days)) {
		t.field(kind)
		t.b = append(t.b, '[')
		for list := days[kind]; len(list) > 0; {
			n := 1
			for n < len(list) && list[n] == list[n-1]+1 {
				n++
			}
			t.item()
			t.b = append(t.b, '"')
			t.b = list[0].Date().AppendFormat(t.b, time.DateOnly)
			if n > 1 {
				t.b = append(t.b, '/')
				t.b = list[n-1].Date().AppendFormat(t.b, time.DateOnly)
			}
			t.b = append(t.b, '"')
			list = list[n:]
		}
		t.b = append(t.b, ']')
	}
	t.b = append(t.b, '}')
}

func (t *text) sessions(name string, list []rollcall.SessionSnapshot) {
	if len(list) == 0 {
		return
	}
	t.field(name)
	t.b = append(t.b, '[')
	for i := range list {
		t.item()
		t.session(&list[i])
	}
	t.b = append(t.b, ']')
}

func (t *text) session(s *rollcall.SessionSnapshot) {
	t.b = append(t.b, '{')
	t.string("id", s.ID.String())
	t.hex("token", s.Token[:])
	t.string("kind", s.Kind)
	t.string("name", s.Name)
	t.string("app", s.App)
	t.string("device", s.Device)
	t.string("device_id", s.DeviceID)
	if s.IP.IsValid() {
		t.string("ip", s.IP.String())
	}
	t.string("user_agent", s.UserAgent)
	if len(s.Attrs) > 0 {
		t.field("attrs")
		t.b = append(t.b, '{')
		for i, k := range slices.Sorted(maps.Keys(s.Attrs)) {
			if i > 0 {
				t.b = append(t.b, ',')
			}
			t.quote(k)
			t.b = append(t.b, ':')
			t.quote(s.Attrs[k])
		}
		t.b = append(t.b, '}')
	}
	t.time("login_at", s.LoginAt)
	t.time("seen_at", s.SeenAt)
	t.time("expires_at", s.ExpiresAt)
	t.time("ends_at", s.EndsAt)
	t.number("idle_ms", s.Idle.Milliseconds())
	t.number("lifetime_ms", s.Lifetime.Milliseconds())
	if s.End != nil {
		t.field("end")
		t.b = append(t.b, '{')
		t.time("at", s.End.At)
		t.string("cause", string(s.End.Cause))
		t.string("reason", s.End.Reason)
		t.string("actor", s.End.Actor)
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, '}')
}

func (t *text) bans(bans []rollcall.BanSnapshot) {
	if len(bans) == 0 {
		return
	}
	t.field("bans")
	t.b = append(t.b, '[')
	for i := range bans {
		b := &bans[i]
		t.item()
		t.b = append(t.b, '{')
		t.hex("key", b.Key[:])
		t.number("home", int64(b.Home))
		t.number("home_bits", int64(b.Bits))
		t.time("at", b.At)
		t.time("until", b.Until)
		t.string("reason", b.Reason)
		t.string("actor", b.Actor)
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, ']')
}

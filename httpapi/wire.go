package httpapi

import (
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// instant is a time on the wire: RFC 3339 in UTC with milliseconds; "" is none.
type instant string

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return ""
	}
	return instant(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// Schema describes the form.
func (instant) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Examples: []any{"2026-02-03T04:05:06.789Z"}}
}

// parse reads an instant between the years 1970 and 9999, to the millisecond.
func (i instant) parse(field string) (time.Time, error) {
	if i == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, string(i))
	if err != nil {
		return t, rollcall.Invalid(field, "%.40q is not an RFC 3339 instant such as 2026-02-03T04:05:06.789Z", i)
	}
	t = t.UTC().Truncate(time.Millisecond)
	if t.Unix() < 0 || t.Year() > 9999 {
		return t, rollcall.Invalid(field, "must lie between the years 1970 and 9999")
	}
	return t, nil
}

// day is a civil date on the wire, YYYY-MM-DD; "" is none.
type day string

func dayOf(d rollcall.Day) day { return day(d.String()) }

// Schema describes the form.
func (day) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date", Examples: []any{"2026-02-03"}}
}

func (d day) parse(field string) (rollcall.Day, error) {
	parsed, err := rollcall.ParseDay(string(d))
	if err != nil {
		return 0, rollcall.Invalid(field, "%.40q is not a day of the form YYYY-MM-DD since 1970-01-01", d)
	}
	return parsed, nil
}

// span is a duration on the wire: whole seconds, as rollcall.ParseDuration reads
// them, or as a number; "" is none.
type span string

// Schema describes the form.
func (span) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		OneOf:       []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeInteger}},
		Description: "a duration in whole seconds: text such as 5m, 1h30m, 90d or 1d12h, or a number of seconds",
		Examples:    []any{"5m"}, // one: OpenAPI 3.0 knows no more
	}
}

// UnmarshalJSON takes numbers and strings; what they mean is parse's to say,
// as only there the name of the field is known.
func (s *span) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, (*string)(s))
	}
	if *s = span(data); *s == "null" {
		*s = ""
	}
	return nil
}

// An instant, a day or a span that is given is not empty.
func (instant) jsonShape() *shape { return &shape{word: "an instant", filled: true} }
func (day) jsonShape() *shape     { return &shape{word: "a day", filled: true} }
func (span) jsonShape() *shape    { return &shape{word: "a duration", filled: true} }

func (s span) parse(field string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := rollcall.ParseDuration(string(s))
	switch {
	case err != nil:
		return 0, rollcall.Invalid(field, "%v", err)
	case d < 0 || d > maxSpan:
		return 0, rollcall.Invalid(field, "must be between 0 and 100 years, is %v", d)
	case d%time.Second != 0:
		return 0, rollcall.Invalid(field, "must be whole seconds, is %v", d)
	}
	return d, nil
}

// maxSpan keeps sums of instants and durations inside what a time can hold.
const maxSpan = 100 * 365 * 24 * time.Hour

// parseID reads a session id that stands in field.
func parseID(field, text string) (rollcall.SessionID, error) {
	if text == "" {
		return rollcall.SessionID{}, nil
	}
	id, err := rollcall.ParseSessionID(text)
	if err != nil || id.IsZero() {
		return id, rollcall.Invalid(field, "%.40q is not a session id: one has 26 characters", text)
	}
	return id, nil
}

func parseAddr(field, text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, rollcall.Invalid(field, "%.60q is not an IP address", text)
	}
	return addr.Unmap(), nil
}

// parsePrefix reads an address or a CIDR range.
func parsePrefix(field, text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	if !strings.Contains(text, "/") {
		addr, err := parseAddr(field, text)
		if err != nil {
			return netip.Prefix{}, err
		}
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, rollcall.Invalid(field, "%.60q is neither an IP address nor a CIDR range such as 10.0.0.0/8", text)
	}
	return p.Masked(), nil
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rollcall/rollcall"
)

// The standard decoder repairs or passes much that makes two requests one, or
// one request two: names in another case, a name given twice, half a surrogate
// pair, null for nothing. checkJSON refuses all that in one pass over the text,
// before anything is decoded. It allocates nothing that grows with the text:
// nesting and the names of an object are bounded, and a list is refused at the
// first entry too many.
const (
	maxJSONDepth = 16
	maxJSONNames = 64 // in one object
)

// jsonCheck is a pass over one text.
type jsonCheck struct {
	data  []byte
	pos   int
	depth int
}

// jsonFault is what is wrong, and where: the path grows as the pass unwinds.
type jsonFault struct {
	path   string
	detail string
	syntax bool // of the text itself, so that no field is at fault
}

// under puts the place that holds the value at fault before its path.
func (f *jsonFault) under(place string) *jsonFault {
	switch {
	case f.syntax:
	case f.path == "":
		f.path = place
	case strings.HasPrefix(f.path, "["):
		f.path = place + f.path
	default:
		f.path = place + "." + f.path
	}
	return f
}

// checkJSON refuses a text that is not strictly JSON of the shape; see above.
func checkJSON(data []byte, s *shape) error {
	if !utf8.Valid(data) {
		return rollcall.Invalid("body", "is not valid UTF-8")
	}
	c := jsonCheck{data: data}
	fault := c.value(s)
	if fault == nil {
		if c.space(); c.pos < len(data) {
			fault = c.syntax("has something after the JSON value")
		}
	}
	if fault == nil {
		return nil
	}
	if fault.path == "" {
		fault.path = "body"
	}
	return rollcall.Invalid(fault.path, "%s", fault.detail)
}

// syntax is a fault of the text itself, which has no field.
func (c *jsonCheck) syntax(format string, args ...any) *jsonFault {
	return &jsonFault{detail: fmt.Sprintf(format, args...), syntax: true}
}

func (c *jsonCheck) notJSON() *jsonFault {
	if c.pos >= len(c.data) {
		return c.syntax("is not valid JSON: it ends too early")
	}
	return c.syntax("is not valid JSON at byte %d", c.pos+1)
}

func (c *jsonCheck) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\r', '\n':
			c.pos++
		default:
			return
		}
	}
}

// next passes over white space and returns the byte that follows; 0 at the end.
func (c *jsonCheck) next() byte {
	c.space()
	if c.pos >= len(c.data) {
		return 0
	}
	return c.data[c.pos]
}

func (c *jsonCheck) value(s *shape) *jsonFault {
	switch first := c.next(); {
	case first == '{':
		return c.nested(s, c.object)
	case first == '[':
		return c.nested(s, c.array)
	case first == '"':
		text, fault := c.text()
		if fault == nil && len(text) == 0 && s != nil && s.filled {
			return &jsonFault{detail: "is given but empty: leave it out, or say which"}
		}
		return fault
	case first == '-' || isDigit(first):
		return c.number()
	case first == 't':
		return c.literal("true")
	case first == 'f':
		return c.literal("false")
	case first == 'n':
		if fault := c.literal("null"); fault != nil {
			return fault
		}
		if s != nil && s.word != "" {
			return &jsonFault{detail: "must be " + s.word + ", not null: leave it out if there is none"}
		}
		return &jsonFault{detail: "must not be null: leave it out if there is none"}
	default:
		return c.notJSON()
	}
}

func (c *jsonCheck) nested(s *shape, check func(*shape) *jsonFault) *jsonFault {
	if c.depth++; c.depth > maxJSONDepth {
		return c.syntax("is nested more than %d deep", maxJSONDepth)
	}
	c.pos++ // the opening bracket
	fault := check(s)
	c.depth--
	return fault
}

func (c *jsonCheck) array(s *shape) *jsonFault {
	var items *shape
	most := 0
	if s != nil {
		items, most = s.items, s.most
	}
	if c.next() == ']' {
		c.pos++
		return nil
	}
	for i := 0; ; i++ {
		if most > 0 && i == most {
			return &jsonFault{detail: fmt.Sprintf("holds more than %d entries, that is the limit", most)}
		}
		if fault := c.value(items); fault != nil {
			return fault.under(fmt.Sprintf("[%d]", i))
		}
		switch c.next() {
		case ',':
			c.pos++
		case ']':
			c.pos++
			return nil
		default:
			return c.notJSON()
		}
	}
}

func (c *jsonCheck) object(s *shape) *jsonFault {
	if c.next() == '}' {
		c.pos++
		if s != nil && s.filled {
			return &jsonFault{detail: "is given but empty: leave it out, or say which"}
		}
		return nil
	}
	var room [16][]byte
	seen := room[:0]
	for {
		name, fault := c.name()
		if fault != nil {
			return fault
		}
		field, known := s.field(name)
		switch {
		case !known:
			return (&jsonFault{detail: "is unexpected: it is not a field of this request"}).under(clip(string(name)))
		case slices.ContainsFunc(seen, func(b []byte) bool { return bytes.Equal(b, name) }):
			return (&jsonFault{detail: "is given twice"}).under(clip(string(name)))
		case len(seen) == maxJSONNames:
			return &jsonFault{detail: fmt.Sprintf("has more than %d names", maxJSONNames)}
		}
		seen = append(seen, name)
		if fault := c.value(field); fault != nil {
			return fault.under(clip(string(name)))
		}
		switch c.next() {
		case ',':
			c.pos++
		case '}':
			c.pos++
			return nil
		default:
			return c.notJSON()
		}
	}
}

// name reads the name of a field and the colon after it.
func (c *jsonCheck) name() ([]byte, *jsonFault) {
	if c.next() != '"' {
		return nil, c.notJSON()
	}
	start := c.pos
	name, fault := c.text()
	if fault != nil {
		return nil, fault
	}
	if bytes.IndexByte(name, '\\') >= 0 { // "us\u0065r" is user
		var plain string
		if err := json.Unmarshal(c.data[start:c.pos], &plain); err != nil {
			return nil, c.notJSON()
		}
		name = []byte(plain)
	}
	if c.next() != ':' {
		return nil, c.notJSON()
	}
	c.pos++
	return name, nil
}

// text passes over a string and returns what stands between the quotes.
func (c *jsonCheck) text() ([]byte, *jsonFault) {
	c.pos++ // the opening quote
	start := c.pos
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; {
		case b == '"':
			c.pos++
			return c.data[start : c.pos-1], nil
		case b < ' ':
			return nil, c.notJSON()
		case b == '\\':
			if fault := c.escape(); fault != nil {
				return nil, fault
			}
		default:
			c.pos++
		}
	}
	return nil, c.notJSON()
}

func (c *jsonCheck) escape() *jsonFault {
	if c.pos+1 >= len(c.data) {
		c.pos = len(c.data)
		return c.notJSON()
	}
	switch c.data[c.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.pos += 2
		return nil
	case 'u':
	default:
		return c.notJSON()
	}
	unit, ok := c.unit()
	switch {
	case !ok:
		return c.notJSON()
	case unit < 0xD800 || unit > 0xDFFF:
		return nil
	case unit < 0xDC00:
		if low, ok := c.unit(); ok && low >= 0xDC00 && low <= 0xDFFF {
			return nil
		}
	}
	return &jsonFault{detail: "holds half a surrogate pair, which is no character"}
}

// unit reads \uXXXX.
func (c *jsonCheck) unit() (rune, bool) {
	if c.pos+6 > len(c.data) || c.data[c.pos] != '\\' || c.data[c.pos+1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, b := range c.data[c.pos+2 : c.pos+6] {
		switch {
		case isDigit(b):
			unit = unit<<4 | rune(b-'0')
		case 'a' <= b|0x20 && b|0x20 <= 'f':
			unit = unit<<4 | rune(b|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	c.pos += 6
	return unit, true
}

func (c *jsonCheck) literal(word string) *jsonFault {
	if !bytes.HasPrefix(c.data[c.pos:], []byte(word)) {
		return c.notJSON()
	}
	c.pos += len(word)
	return nil
}

func (c *jsonCheck) number() *jsonFault {
	if c.data[c.pos] == '-' {
		c.pos++
	}
	if c.pos < len(c.data) && c.data[c.pos] == '0' {
		c.pos++
	} else if !c.digits() {
		return c.notJSON()
	}
	if c.pos < len(c.data) && c.data[c.pos] == '.' {
		c.pos++
		if !c.digits() {
			return c.notJSON()
		}
	}
	if c.pos < len(c.data) && c.data[c.pos]|0x20 == 'e' {
		c.pos++
		if c.pos < len(c.data) && (c.data[c.pos] == '+' || c.data[c.pos] == '-') {
			c.pos++
		}
		if !c.digits() {
			return c.notJSON()
		}
	}
	return nil
}

// digits passes over one digit or more.
func (c *jsonCheck) digits() bool {
	start := c.pos
	for c.pos < len(c.data) && isDigit(c.data[c.pos]) {
		c.pos++
	}
	return c.pos > start
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

package history

import "unicode/utf8"

// Reason says why a row was rejected.
type Reason string

// The reasons.
const (
	BadColumns   Reason = "columns"
	BadQuotes    Reason = "quotes"
	BadTime      Reason = "time"
	TooOld       Reason = "before_1970"
	Future       Reason = "future"
	BadUser      Reason = "user"
	BadKind      Reason = "kind"
	TooManyKinds Reason = "kinds"
	TooLong      Reason = "length"
	Refused      Reason = "refused"
)

// Reasons returns all reasons, in the order a row is looked at.
func Reasons() []Reason {
	return []Reason{TooLong, BadQuotes, BadColumns, BadTime, TooOld, Future, BadUser, BadKind, TooManyKinds, Refused}
}

// String words the reason for a person.
func (r Reason) String() string {
	switch r {
	case BadColumns:
		return "the columns are not time,user or time,user,kind"
	case BadQuotes:
		return "a quotation mark is out of place, or the closing one is missing"
	case BadTime:
		return "the time is not RFC 3339, unix seconds or milliseconds, or a date"
	case TooOld:
		return "the day lies before 1970-01-01"
	case Future:
		return "the day lies in the future"
	case BadUser:
		return "the user is empty, too long, not UTF-8 or holds control characters"
	case BadKind:
		return "the kind is too long or holds more than a-z, 0-9, _ and -"
	case TooManyKinds:
		return "the kind would be one more than there may be"
	case TooLong:
		return "the line is too long"
	case Refused:
		return "the mark was refused"
	default:
		return string(r)
	}
}

// Rejected is a line that was not imported.
type Rejected struct {
	Line   int64  `json:"line"` // from 1
	Reason Reason `json:"reason"`
	Text   string `json:"text"` // of the line, cut to MaxText bytes
}

// MaxText is how much of a rejected line is reported, in bytes.
const MaxText = 200

// cut cuts a line, between runes.
func cut(line string) string {
	if len(line) <= MaxText {
		return line
	}
	end := MaxText
	for end > MaxText-utf8.UTFMax && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end]
}

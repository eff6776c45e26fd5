package history

import (
	"strings"

	"github.com/rollcall/rollcall"
)

// maxLine is the longest line that is read, in bytes. No valid row comes near.
const maxLine = 64 << 10

// split takes a line apart at its commas, by RFC 4180: a field may stand in
// quotation marks, and two of them in it stand for one. Line breaks within a
// field are not supported, as no column may hold one. Reason is "" if the line
// is well formed and has two or three fields; kind is "" where there are two.
func split(line string) (when, user, kind string, why Reason) {
	if strings.IndexByte(line, '"') >= 0 {
		return splitQuoted(line)
	}
	first := strings.IndexByte(line, ',')
	if first < 0 {
		return "", "", "", BadColumns
	}
	when, user = line[:first], line[first+1:]
	if second := strings.IndexByte(user, ','); second >= 0 {
		user, kind = user[:second], user[second+1:]
		if strings.IndexByte(kind, ',') >= 0 {
			return "", "", "", BadColumns
		}
	}
	return when, user, kind, ""
}

func splitQuoted(line string) (when, user, kind string, why Reason) {
	var fields [3]string
	for n := 0; ; n++ {
		field, rest, more, ok := nextField(line)
		switch {
		case !ok:
			return "", "", "", BadQuotes
		case n == len(fields):
			return "", "", "", BadColumns
		}
		fields[n] = field
		if !more {
			if n == 0 {
				return "", "", "", BadColumns
			}
			return fields[0], fields[1], fields[2], ""
		}
		line = rest
	}
}

// nextField returns the first field of a line and what follows its comma, if
// there is one; ok is false if quotation marks are out of place.
func nextField(line string) (field, rest string, more, ok bool) {
	if !strings.HasPrefix(line, `"`) {
		field, rest, more = strings.Cut(line, ",")
		return field, rest, more, !strings.Contains(field, `"`)
	}
	line = line[1:]
	var joined strings.Builder // what came before a doubled mark
	for {
		end := strings.IndexByte(line, '"')
		if end < 0 {
			return "", "", false, false
		}
		after := line[end+1:]
		if strings.HasPrefix(after, `"`) {
			joined.WriteString(line[:end+1])
			line = after[1:]
			continue
		}
		field = line[:end]
		if joined.Len() > 0 {
			field = joined.String() + field
		}
		switch {
		case after == "":
			return field, "", false, true
		case after[0] == ',':
			return field, after[1:], true, true
		default:
			return "", "", false, false
		}
	}
}

// isHeader tells whether the first line of a file names the columns.
func isHeader(line string) bool {
	first, _, _ := strings.Cut(line, ",")
	return first != "" && !strings.ContainsAny(first, "0123456789")
}

// validUser tells whether an id may be a user's. Nearly all are plain ASCII.
func validUser(id string) bool {
	if id == "" || len(id) > rollcall.MaxUserLen {
		return false
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			return rollcall.CheckUser(id) == nil
		}
	}
	return true
}

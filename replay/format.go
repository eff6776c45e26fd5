package replay

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"
)

const clfTime = "02/Jan/2006:15:04:05 -0700"

// parseCLF reads a line of the common log format,
//
//	address identity user [time] "request" status bytes
//
// or of the combined one, which adds "referer" "user agent". Quotes inside a
// quoted field are escaped by a backslash.
func parseCLF(line string) (row, error) {
	rest := line
	word := func() string {
		w, after, _ := strings.Cut(rest, " ")
		rest = after
		return w
	}
	address := word()
	identity := word()
	word() // user
	if identity != "-" && !strings.HasPrefix(rest, "[") {
		address = identity // before it is a virtual host, as in vhost_combined of Apache
		word()
	}
	stamp, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "] ")
	if !strings.HasPrefix(rest, "[") || !ok {
		return row{}, errors.New("the time in brackets is missing")
	}
	at, err := time.Parse(clfTime, stamp)
	if err != nil {
		return row{}, errors.New("the time is not of the form day/Mon/year:hour:minute:second zone")
	}
	rest = after
	if _, rest, err = quoted(rest); err != nil {
		return row{}, errors.New("the request: " + err.Error())
	}
	if !isNumber(word()) {
		return row{}, errors.New("the status is not a number")
	}
	if size := word(); size != "-" && !isNumber(size) {
		return row{}, errors.New("the size is neither a number nor -")
	}
	agent := ""
	if rest != "" {
		if _, rest, err = quoted(rest); err != nil {
			return row{}, errors.New("the referer: " + err.Error())
		}
		if agent, _, err = quoted(rest); err != nil {
			return row{}, errors.New("the user agent: " + err.Error())
		}
	}
	if address == "" {
		return row{}, errors.New("the address is missing")
	}
	return row{at: at.Unix(), user: visitor(address, agent)}, nil
}

func visitor(address, agent string) string {
	sum := sha256.Sum256([]byte(agent))
	return address + "-" + hex.EncodeToString(sum[:8])
}

// quoted takes a quoted field and the space behind it off a line.
func quoted(s string) (field, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return "", s, errors.New("an opening quote is missing")
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], strings.TrimPrefix(s[i+1:], " "), nil
		}
	}
	return "", s, errors.New("the closing quote is missing")
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func parseEdge(line string) (row, error) {
	f := strings.Fields(line)
	if len(f) != 3 {
		return row{}, errors.New("a line is: source target seconds")
	}
	at, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return row{}, errors.New("the third field is not a time in unix seconds")
	}
	return row{at: at, user: f[0], friend: f[1]}, nil
}

func parseCSV(line string) (row, error) {
	r := csv.NewReader(strings.NewReader(line))
	f, err := r.Read()
	if err != nil {
		return row{}, errors.New("the line is not CSV")
	}
	if len(f) != 2 && len(f) != 3 {
		return row{}, errors.New("a line is: time,user or time,user,kind")
	}
	out := row{user: f[1]}
	if len(f) == 3 {
		out.kind = f[2]
	}
	if out.at, err = strconv.ParseInt(f[0], 10, 64); err == nil {
		return out, nil
	}
	t, err := time.Parse(time.RFC3339, f[0])
	if err != nil {
		return row{}, errors.New("the first field is no time, in RFC 3339 or unix seconds")
	}
	out.at = t.Unix()
	return out, nil
}

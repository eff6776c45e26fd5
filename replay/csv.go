package replay

import (
	"encoding/csv"
	"errors"
	"strconv"
	"strings"
	"time"
)

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
		return row{}, errors.New("the first field is neither a time in RFC 3339 nor in unix seconds")
	}
	out.at = t.Unix()
	return out, nil
}

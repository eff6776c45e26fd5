package replay

import (
	"errors"
	"strconv"
	"strings"
)

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

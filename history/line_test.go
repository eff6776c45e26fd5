package history

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestLinesAreSplitByRFC4180(t *testing.T) {
	for line, want := range map[string][3]string{
		"1,alice":                         {"1", "alice", ""},
		"1,alice,":                        {"1", "alice", ""},
		"1,alice,staff":                   {"1", "alice", "staff"},
		`"1","alice","staff"`:             {"1", "alice", "staff"},
		`1,"a,b"`:                         {"1", "a,b", ""},
		`1,"a ""big"" b",staff`:           {"1", `a "big" b`, "staff"},
		`1,""""`:                          {"1", `"`, ""},
		`1,""`:                            {"1", "", ""},
		`1, alice`:                        {"1", " alice", ""},
		`"2017-10-05T12:00:00Z",用户,staff`: {"2017-10-05T12:00:00Z", "用户", "staff"},
	} {
		when, user, kind, why := split(line)
		require.Empty(t, why, line)
		require.Equal(t, want, [3]string{when, user, kind}, line)
	}
	for line, want := range map[string]Reason{
		"":             BadColumns,
		"1":            BadColumns,
		`"1"`:          BadColumns,
		"1,a,b,c":      BadColumns,
		`1,"a","b",c`:  BadColumns,
		`1,"a`:         BadQuotes,
		`1,"a""`:       BadQuotes,
		`1,"a"b`:       BadQuotes,
		`1,a"b`:        BadQuotes,
		`1,"a" ,staff`: BadQuotes,
	} {
		_, _, _, why := split(line)
		require.Equal(t, want, why, line)
	}
}

func TestValidUserIsWhatRollcallSays(t *testing.T) {
	for _, id := range []string{
		"", "a", " ", "~", "\x7f", "\x1f", "a\tb", "用户", "a\u0085b", "\xff", "é",
		strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("é", 64), strings.Repeat("é", 65),
	} {
		require.Equal(t, rollcall.CheckUser(id) == nil, validUser(id), "%q", id)
	}
}

// FuzzLine holds the parser of lines to the standard library's, and to making
// only marks that Rollcall takes.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		"2017-10-05,alice", "2017-10-05T23:59:59.5+02:00,alice,staff", `1507208645,"a ""b"", c",user`,
		"1507208645.25,7", "1507208645123,007", "1,a,b,c", `1,"a`, `1,a"b"`, "-1,a", "9999999999999999,a", "time,user",
	} {
		f.Add(line)
	}
	zone := newCalendar(location(f, "America/St_Johns"), rollcall.DayOf(startOfTests(), location(f, "America/St_Johns")))
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\r\n") {
			return // no line holds one
		}
		when, user, kind, why := split(line)
		r := csv.NewReader(strings.NewReader(line))
		r.FieldsPerRecord = -1
		fields, err := r.Read()
		switch {
		case errors.Is(err, io.EOF):
			require.Equal(t, BadColumns, why)
		case err != nil:
			require.Contains(t, []Reason{BadQuotes, BadColumns}, why)
		case len(fields) != 2 && len(fields) != 3:
			require.Equal(t, BadColumns, why)
		default:
			require.Empty(t, why)
			require.Equal(t, append(fields, "")[:3], []string{when, user, kind})
		}

		c := &chunk{text: line, parsed: make(chan struct{})}
		c.parse(zone.clone())
		require.LessOrEqual(t, len(c.rows)+len(c.rejected), 1)
		for _, row := range c.rows {
			require.NoError(t, rollcall.CheckUser(row.user))
			require.NoError(t, rollcall.CheckKind(c.kinds[row.kind]))
			require.GreaterOrEqual(t, row.day, rollcall.Day(0))
			require.LessOrEqual(t, row.day, zone.today)
		}
	})
}

package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLines holds the parsers to never failing on a line, and to accepting only
// rows that Rollcall accepts.
func FuzzLines(f *testing.F) {
	f.Add(`1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a\"b HTTP/1.1" 200 - "-" "agent"`)
	f.Add(`::1 - bob [17/May/2015:10:05:03 +0200] "GET / HTTP/1.1" 200 12`)
	f.Add("1 2 1082040961")
	f.Add(`2026-03-01T10:00:00Z,"a,b",staff`)
	f.Fuzz(func(t *testing.T, line string) {
		for _, format := range []Format{Edges, CLF, CSV} {
			parse, err := parserOf(format)
			require.NoError(t, err)
			r, err := parse(line)
			if err == nil && r.check(1) == nil {
				require.NotEmpty(t, r.user)
				require.Positive(t, r.at)
			}
		}
	})
}

func TestCLF(t *testing.T) {
	const head = `10.0.0.1 - - [17/May/2015:10:05:03 +0200] `
	r, err := parseCLF(head + `"GET / HTTP/1.1" 200 5 "http://a/" "agent \"x\""`)
	require.NoError(t, err)
	require.EqualValues(t, 1431849903, r.at)
	require.Equal(t, visitor("10.0.0.1", `agent \"x\"`), r.user)
	common, err := parseCLF(head + `"GET / HTTP/1.1" 304 -`)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1-e3b0c44298fc1c14", common.user)
	host, err := parseCLF("www.example.com:443 " + head + `"GET / HTTP/1.1" 304 -`)
	require.NoError(t, err)
	require.Equal(t, common.user, host.user, "a virtual host before it")
	space, err := parseCLF(`10.0.0.1 - Jane Doe [17/May/2015:10:05:03 +0200] "GET / HTTP/1.1" 304 -`)
	require.Error(t, err, "%+v", space)
	for bad, why := range map[string]string{
		`10.0.0.1 - - 17/May/2015`:                        "the time in brackets is missing",
		`10.0.0.1 - - [yesterday] "GET /" 200 5`:          "the time is not of the form",
		head + `GET / 200 5`:                              "the request: an opening quote is missing",
		head + `"GET / 200 5`:                             "the request: the closing quote is missing",
		head + `"GET /" ok 5`:                             "the status is not a number",
		head + `"GET /" 200 big`:                          "the size is neither a number nor -",
		head + `"GET /" 200 5 "-"`:                        "the user agent: an opening quote is missing",
		head + `"GET /" 200 5 "-" "cut off`:               "the user agent: the closing quote is missing",
		` - - [17/May/2015:10:05:03 +0200] "GET /" 200 5`: "the address is missing",
	} {
		_, err := parseCLF(bad)
		require.ErrorContains(t, err, why, bad)
	}
}

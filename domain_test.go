package rollcall

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestSessionIDsSortByTimeAndRoundTrip(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		make := func(name string) SessionID {
			at := rapid.Int64Range(0, 1<<47).Draw(t, name)
			return NewSessionID(time.UnixMilli(at), rapid.String().Draw(t, name+" user"), rapid.Uint64().Draw(t, name+" random"))
		}
		a, b := make("a"), make("b")
		require.Equal(t, string(a[:]) < string(b[:]), a.String() < b.String())
		if a.Time().Before(b.Time()) {
			require.Less(t, a.String(), b.String())
		}
		got, err := ParseSessionID(a.String())
		require.NoError(t, err)
		require.Equal(t, a, got)
		require.Equal(t, a, NewSessionID(a.Time(), "x", a.Random()).withHome(a.Home()))
	})
}

func (id SessionID) withHome(home uint16) SessionID {
	id[14], id[15] = byte(home>>8), byte(home)
	return id
}

func FuzzIDsAndTokens(f *testing.F) {
	f.Add(NewSessionID(time.UnixMilli(1_760_000_000_000), "alice", 7).String())
	text, _ := newToken(7, newSecret())
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := ParseSessionID(text); err == nil {
			require.Equal(t, text, id.String())
		}
		if hash, ok := HashToken(text); ok {
			again, ok := HashToken(text)
			require.True(t, ok)
			require.Equal(t, hash, again)
			require.Len(t, text, 50)
		}
		if day, err := ParseDay(text); err == nil {
			require.Equal(t, text, day.String())
		}
	})
}

func TestTokensOfOtherFormsAreNone(t *testing.T) {
	good, kept := newToken(0xbeef, newSecret())
	hash, ok := HashToken(good)
	require.True(t, ok)
	require.Equal(t, kept, hash)
	require.Equal(t, uint16(0xbeef), hash.Home)
	for _, bad := range []string{"", "rct_", good[:len(good)-1], good + "A", "rck_" + good[4:], strings.Replace(good, "rct_", "RCT_", 1), good[:49] + "="} {
		_, ok := HashToken(bad)
		require.False(t, ok, bad)
	}
}

func TestEveryLimitIsNamedWithItsField(t *testing.T) {
	long := strings.Repeat("x", 2000)
	attrs := func(n, size int) map[string]string {
		m := make(map[string]string)
		for i := range n {
			m[fmt.Sprint("k", i)] = long[:size]
		}
		return m
	}
	for want, l := range map[string]Login{
		"user: is required":                              {},
		"user: is 129 bytes long, the limit is 128":      {User: long[:129]},
		"user: holds a control character (U+0000)":       {User: "a\x00b"},
		"user: holds a control character (U+000A)":       {User: "a\nb"},
		"user: is not valid UTF-8":                       {User: "\xff"},
		"kind: may hold only a-z, 0-9, _ and -":          {User: "u", Kind: "Kind"},
		"kind: is 33 bytes long, the limit is 32":        {User: "u", Kind: long[:33]},
		"name: is 129 bytes long, the limit is 128":      {User: "u", Name: long[:129]},
		"app: is 65 bytes long, the limit is 64":         {User: "u", App: long[:65]},
		"device: is 33 bytes long, the limit is 32":      {User: "u", Device: long[:33]},
		"device_id: is 129 bytes long, the limit is 128": {User: "u", DeviceID: long[:129]},
		"user_agent: is 1025 bytes long, the limit is":   {User: "u", UserAgent: long[:1025]},
		"idempotency_key: is 256 bytes long":             {User: "u", RetryKey: long[:256]},
		"ip: must not have a zone":                       {User: "u", IP: netip.MustParseAddr("fe80::1%eth0")},
		"attrs: has 17 entries, the limit is 16":         {User: "u", Attrs: attrs(17, 1)},
		"attrs.k0: is 257 bytes long, the limit is 256":  {User: "u", Attrs: attrs(1, 257)},
		"attrs: holds 2070 bytes, the limit is 2048":     {User: "u", Attrs: attrs(9, 227+1)},
		"attrs: a key is empty":                          {User: "u", Attrs: map[string]string{"": "v"}},
	} {
		err := l.validate()
		require.ErrorIs(t, err, ErrInvalidArgument, want)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, (&Login{User: long[:128], Attrs: attrs(16, 100)}).validate())
}

func TestThePolicyThatNamesMostApplies(t *testing.T) {
	p, err := NewPolicies(
		Policy{MaxSessions: 1},
		Policy{Kind: "staff", MaxSessions: 2},
		Policy{App: "shop", MaxSessions: 3},
		Policy{Kind: "staff", App: "shop", MaxSessions: 4},
		Policy{Kind: "staff", App: "shop", MaxSessions: 5},
	)
	require.NoError(t, err)
	require.Equal(t, 1, p.For("user", "bank", "web").MaxSessions)
	require.Equal(t, 2, p.For("staff", "bank", "web").MaxSessions)
	require.Equal(t, 3, p.For("user", "shop", "web").MaxSessions)
	require.Equal(t, 4, p.For("staff", "shop", "web").MaxSessions, "among equals the first")
	var none *Policies
	require.Equal(t, DefaultIdleTimeout, none.For("user", "", "").IdleTimeout)
	for want, bad := range map[string]Policy{
		"policies[0].idle_timeout":   {IdleTimeout: time.Millisecond},
		"policies[0].lifetime":       {Lifetime: -time.Second},
		"policies[0].max_sessions":   {MaxSessions: -1},
		"policies[0].max_per_device": {MaxPerDevice: -1},
		"policies[0].overflow":       {Overflow: "explode"},
		"policies[0].kind":           {Kind: "No"},
	} {
		_, err := NewPolicies(bad)
		require.ErrorContains(t, err, want)
	}
}

func TestACursorBelongsToItsQuery(t *testing.T) {
	r := &Roll{service: &service{secret: []byte(strings.Repeat("s", 32))}}
	sealed := r.sealCursor("position", "query")
	got, err := r.openCursor(sealed, "query")
	require.NoError(t, err)
	require.Equal(t, "position", got)
	for _, bad := range []string{sealed[:len(sealed)-2], "AAAA", "not base64!", sealed + "AA"} {
		_, err := r.openCursor(bad, "query")
		require.ErrorIs(t, err, ErrInvalidArgument)
	}
	_, err = r.openCursor(sealed, "another query")
	require.ErrorIs(t, err, ErrInvalidArgument)
	require.Empty(t, r.sealCursor("", "query"), "no position, no cursor")
}

func TestStreakOf(t *testing.T) {
	const today = Day(100)
	for _, c := range []struct {
		days []Day
		want Streak
	}{
		{nil, Streak{}},
		{[]Day{100}, Streak{Current: 1, Longest: 1}},
		{[]Day{98, 99}, Streak{Current: 2, Longest: 2, AtRisk: true}},
		{[]Day{97, 98}, Streak{Longest: 2}},
		{[]Day{1, 2, 3, 99, 100}, Streak{Current: 2, Longest: 3}},
	} {
		require.Equal(t, c.want, StreakOf(c.days, today, time.UTC), "%v", c.days)
	}
}

func TestPeriods(t *testing.T) {
	day := func(text string) Day {
		d, err := ParseDay(text)
		require.NoError(t, err)
		return d
	}
	require.Equal(t, "2026-03-02", PeriodWeek.Start(day("2026-03-04")).String(), "a Monday")
	require.Equal(t, "2026-03-09", PeriodWeek.Next(day("2026-03-02")).String())
	require.Equal(t, "2024-02-01", PeriodMonth.Start(day("2024-02-29")).String())
	require.Equal(t, "2025-01-01", PeriodMonth.Next(day("2024-12-31")).String())
	require.Equal(t, day("1970-01-01"), Day(0))
}

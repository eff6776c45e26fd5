package redis

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	id := rollcall.NewSessionID(time.UnixMilli(1_800_000_000_123), "alice", 42)
	r := record{
		Session: rollcall.Session{
			ID: id, User: "alice", Kind: "staff", Name: "Ällis", App: "shop", Device: "web", DeviceID: "x\x7f",
			IP: netip.MustParseAddr("2001:db8::1"), UserAgent: "agent", Attrs: map[string]string{"b": "2", "a": ""},
			LoginAt: id.Time(), SeenAt: enginekit.TimeOrZero(1_800_000_000_500), ExpiresAt: enginekit.TimeOrZero(1_800_000_100_000),
			EndsAt: id.Time().Add(time.Minute),
		},
		idle: 99_500, life: 60_000, token: "0123456789abcdef",
	}
	got, err := unpackRecord(id, r.pack(), 1_800_000_000_500, 1_800_000_100_000)
	require.NoError(t, err)
	require.Equal(t, r, got)
}

func TestBanRoundTrip(t *testing.T) {
	t.Parallel()
	b := rollcall.Ban{User: "alice", Key: rollcall.BanKey([]byte("0123456789abcdef")), At: enginekit.TimeOrZero(1000), Until: enginekit.TimeOrZero(2000), Reason: "r", Actor: "a"}
	got, err := unpackBan("0123456789abcdef", packBan(b))
	require.NoError(t, err)
	require.Equal(t, b, got)
}

// FuzzUnpack reads records that are not what this package wrote: it may refuse
// them, and must not panic.
func FuzzUnpack(f *testing.F) {
	r := record{Session: rollcall.Session{User: "alice", Attrs: map[string]string{"a": "b"}}, token: "0123456789abcdef"}
	f.Add(r.pack())
	f.Add(packBan(rollcall.Ban{User: "alice", At: enginekit.TimeOrZero(1), Until: enginekit.TimeOrZero(2)}))
	f.Add("\x01" + strings.Repeat("\x00", 15)) // an event that names nobody
	f.Add("")
	f.Fuzz(func(t *testing.T, blob string) {
		if r, err := unpackRecord(rollcall.SessionID{}, blob, 1, 2); err == nil {
			again, err := unpackRecord(rollcall.SessionID{}, r.pack(), 1, 2)
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
		_, _ = unpackEnd(rollcall.SessionID{}, blob)
		_, _ = unpackBan("0123456789abcdef", blob)
		_, _ = unpackEvent(blob, place{})
		readSet(blob)
		decodeOnlineCursor(blob)
		seenOf(blob)
		idsOf(blob)
	})
}

// FuzzURL reads addresses. What it accepts names a host, and no error shows the
// password.
func FuzzURL(f *testing.F) {
	for _, s := range []string{
		"redis://user:pass@localhost:6379/2", "rediss+cluster://h1,h2:7000?ca=x", "redis+sentinel://h/master/1", "redis://[::1]:1", "://", "redis://%",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := parseURL(text); err == nil {
			require.NotEmpty(t, a.hosts)
		}
	})
}

package transfer

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func drawTime(t *rapid.T, label string) time.Time {
	return time.UnixMilli(rapid.Int64Range(1, 4e12).Draw(t, label)).UTC()
}

func drawSession(t *rapid.T, user string) rollcall.SessionSnapshot {
	text := rapid.String()
	s := rollcall.SessionSnapshot{Idle: time.Second, Lifetime: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "lifetime")) * time.Millisecond}
	copy(s.Token[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "token"))
	login := drawTime(t, "login")
	s.Session = rollcall.Session{
		ID: rollcall.NewSessionID(login, user, rapid.Uint64().Draw(t, "random")), User: user, LoginAt: login,
		Kind: text.Draw(t, "kind"), Name: text.Draw(t, "name"), App: text.Draw(t, "app"), Device: text.Draw(t, "device"),
		DeviceID: text.Draw(t, "device id"), UserAgent: text.Draw(t, "agent"), SeenAt: drawTime(t, "seen"), ExpiresAt: drawTime(t, "expires"),
		IP: rapid.SampledFrom([]netip.Addr{{}, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}).Draw(t, "ip"),
	}
	if attrs := rapid.MapOf(text, text).Draw(t, "attrs"); len(attrs) > 0 {
		s.Attrs = attrs
	}
	if rapid.Bool().Draw(t, "ended") {
		s.EndsAt = drawTime(t, "ends")
		s.End = &rollcall.End{At: drawTime(t, "end"), Cause: rollcall.CauseKicked, Reason: text.Draw(t, "reason"), Actor: text.Draw(t, "actor")}
	}
	return s
}

func drawSnapshot(t *rapid.T) rollcall.UserSnapshot {
	text := rapid.String()
	d := rollcall.UserSnapshot{
		User: text.Draw(t, "user"), Kind: text.Draw(t, "kind"), Name: text.Draw(t, "name"),
		Invisible: rapid.Bool().Draw(t, "invisible"), Gone: rapid.Bool().Draw(t, "gone"),
	}
	if rapid.Bool().Draw(t, "seen") {
		d.LastSeen, d.Frozen = drawTime(t, "last seen"), drawTime(t, "frozen")
	}
	for range rapid.IntRange(0, 3).Draw(t, "friends") {
		d.Friends = append(d.Friends, rollcall.Friend{User: "u" + text.Draw(t, "friend"), Since: drawTime(t, "since")})
	}
	for _, kind := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"user", "staff", "a-b_c"}), 0, 3, rapid.ID).Draw(t, "kinds") {
		if d.Days == nil {
			d.Days = map[string][]rollcall.Day{}
		}
		day := rollcall.Day(rapid.IntRange(0, 30_000).Draw(t, "day"))
		for range rapid.IntRange(1, 20).Draw(t, "days") {
			d.Days[kind] = append(d.Days[kind], day)
			day += rollcall.Day(rapid.SampledFrom([]int{1, 1, 1, 2, 40}).Draw(t, "step"))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "sessions") {
		d.Sessions = append(d.Sessions, drawSession(t, d.User))
		d.Ended = append(d.Ended, drawSession(t, d.User))
	}
	for range rapid.IntRange(0, 2).Draw(t, "bans") {
		b := rollcall.BanSnapshot{Home: rapid.Uint16().Draw(t, "home"), Bits: uint8(rapid.IntRange(0, 16).Draw(t, "bits"))}
		b.Ban = rollcall.Ban{User: d.User, At: drawTime(t, "at"), Until: drawTime(t, "until"), Reason: text.Draw(t, "reason"), Actor: text.Draw(t, "actor")}
		copy(b.Key[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
		d.Bans = append(d.Bans, b)
	}
	return d
}

// TestASnapshotIsReadAsItWasWritten holds the writer, which is our own, to the
// reader, which is the standard library's.
func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		want := drawSnapshot(t)
		var x text
		x.snapshot(&want)
		require.Equal(t, 1, strings.Count(string(x.b), "\n"), "one line")
		var l line
		require.NoError(t, parse(x.b, &l), "%s", x.b)
		require.NotNil(t, l.Snapshot)
		got, err := l.Snapshot.snapshot()
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// nowhere takes everything.
type nowhere struct{}

func (nowhere) Import(context.Context, ...rollcall.UserSnapshot) error        { return nil }
func (nowhere) ImportKey(context.Context, rollcall.APIKey) (bool, error)      { return true, nil }
func (nowhere) ImportWebhook(context.Context, rollcall.Webhook) (bool, error) { return true, nil }

// FuzzImport reads whatever there is: nothing is taken for whole that has no
// trailer, and nothing panics.
func FuzzImport(f *testing.F) {
	header := `{"export":{"version":3,"timezone":"UTC"}}` + "\n"
	f.Add([]byte(header + `{"snapshot":{"user":"a","days":{"user":["2026-01-01/2026-01-05"]}}}` + "\n" + `{"end":{"snapshots":1,"sha256":""}}` + "\n"))
	f.Add([]byte(header + `{"webhook":{"id":"wh_0000000000000000","url":"https://example.com"}}` + "\n"))
	f.Add([]byte(header + `{"api_key":{"id":"x","hash":"00"}}` + "\n"))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0})
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Open(strings.NewReader(string(b)))
		if err != nil {
			return
		}
		summary, err := s.Import(t.Context(), nowhere{}, Options{})
		require.Equal(t, err == nil, summary.Complete)
		require.NoError(t, s.Close())
	})
}

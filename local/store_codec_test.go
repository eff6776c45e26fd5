package local

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func someSession() sessionRecord {
	login := time.UnixMilli(1_760_000_000_123).UTC()
	return sessionRecord{
		Session: rollcall.Session{
			ID: rollcall.NewSessionID(login, "alice", 42), User: "alice", Kind: "user", Name: "Alice",
			App: "shop", Device: "ios", DeviceID: "phone-1", IP: netip.MustParseAddr("2001:db8::1"),
			UserAgent: "test/1", Attrs: map[string]string{"tier": "gold", "": ""},
			LoginAt: login, SeenAt: login.Add(time.Minute), ExpiresAt: login.Add(time.Hour), EndsAt: login.Add(24 * time.Hour),
			End: &rollcall.End{At: login.Add(2 * time.Minute), Cause: rollcall.CauseKicked, Reason: "why", Actor: "who"},
		},
		slot: 7, token: tokenKey{1, 2, 3}, idle: 1800_000, lifetime: 86_400_000, importedDeadline: 1_760_001_860_123,
	}
}

func TestSessionSurvivesItsRecord(t *testing.T) {
	ended := someSession()
	live := ended
	live.End, live.ExpiresAt, live.EndsAt = nil, time.Time{}, time.Time{} // follow from the timeouts
	for _, s := range []sessionRecord{ended, live} {
		got, err := decodeSession(s.ID, s.encode(nil))
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
}

func TestEventSurvivesItsRecord(t *testing.T) {
	s := someSession()
	for _, typ := range enginekit.EventTypes() {
		e := event{audience: enginekit.ForAdmin, Event: rollcall.Event{
			Type: typ, At: s.LoginAt, User: "alice", Session: s.ID, Cause: rollcall.CauseKicked, Reason: "why", Actor: "who",
		}}
		got, err := decodeEvent(encodeEvent(nil, &e))
		require.NoError(t, err)
		require.Equal(t, e, got)
	}
}

func TestEveryCutRecordIsRefused(t *testing.T) {
	s := someSession()
	record := s.encode(nil)
	for n := range record {
		_, err := decodeSession(s.ID, record[:n])
		require.Error(t, err, "cut after %d bytes", n)
	}
	_, err := decodeSession(s.ID, append(record, 0))
	require.ErrorIs(t, err, errDamaged)
}

// FuzzRecords holds every decoder to refusing what it cannot read.
func FuzzRecords(f *testing.F) {
	s := someSession()
	f.Add(s.encode(nil))
	f.Add(encodeBan(rollcall.Ban{User: "u", At: s.LoginAt, Until: s.LoginAt, Reason: "r"}))
	f.Add(encodeAPIKey(rollcall.APIKey{Name: "n", Role: rollcall.RoleAdmin, CreatedAt: s.LoginAt}))
	f.Add(encodeEvent(nil, &event{Event: rollcall.Event{Type: rollcall.SessionEnded, At: s.LoginAt, User: "u", Session: s.ID}}))
	f.Add((&userRecord{kind: "user", name: "N", invisible: true, frozen: 9}).encode())
	f.Add(noVisitors())
	f.Add(otherPrecision())
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := decodeSketch(b); err == nil {
			record, err := encodeSketch(got)
			require.NoError(t, err)
			again, err := decodeSketch(record)
			require.NoError(t, err)
			n := again.Estimate()
			require.NoError(t, again.Merge(got))
			require.Equal(t, n, again.Estimate())
		}
		if got, err := decodeSession(s.ID, b); err == nil {
			again, err := decodeSession(s.ID, got.encode(nil))
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
		if got, err := decodeBan(rollcall.BanKey{}, b); err == nil {
			again, err := decodeBan(rollcall.BanKey{}, encodeBan(got))
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
		if got, err := decodeUser(b); err == nil {
			again, err := decodeUser(got.encode())
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
		_, _ = decodeAPIKey("id", b)
		_, _ = decodeEvents(sessionFamily, eventKey(1), b)
		_, _ = decodeEvents(presenceFamily, eventKey(1), b)
		_ = new(outages).decode(b)
	})
}

func TestKeysAscendWithinTheirTable(t *testing.T) {
	testbudget.Check(t, testbudget.Quick(), func(t *rapid.T) {
		a, b := rapid.Uint32Range(0, 1<<24-1).Draw(t, "a"), rapid.Uint32Range(0, 1<<24-1).Draw(t, "b")
		require.Equal(t, a < b, string(idKey(3, a)) < string(idKey(3, b)))
		require.Equal(t, a, number24(idKey(3, a)))
		require.Less(t, string(idKey(3, a)), string(newKey(tabID, 2).u8(3).after()))
	})
	require.Nil(t, key{0xff, 0xff}.after())
	require.Equal(t, key{2}, key{1, 0xff}.after())
}

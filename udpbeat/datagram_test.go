package udpbeat_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/udpbeat"
)

// vectors are datagrams that other programs can compare theirs with.
type vectors struct {
	SessionBeats []struct {
		BeatKey  string             `json:"beat_key"`
		Session  rollcall.SessionID `json:"session"`
		Seconds  uint32             `json:"seconds"`
		Counter  uint32             `json:"counter"`
		Datagram string             `json:"datagram"`
	} `json:"session_beats"`
	GatewayBeats []struct {
		BeatKey  string   `json:"beat_key"`
		Key      string   `json:"key"`
		Seconds  uint32   `json:"seconds"`
		Counter  uint64   `json:"counter"`
		Users    []string `json:"users"`
		Datagram string   `json:"datagram"`
	} `json:"gateway_beats"`
}

func keyOf(t testing.TB, text string) (key udpbeat.Key) {
	t.Helper()
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	require.Len(t, raw, len(key))
	return udpbeat.Key(raw)
}

func TestTheVectorsAreWhatTheCodecMakesAndReads(t *testing.T) {
	text, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var all vectors
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all.SessionBeats)
	require.NotEmpty(t, all.GatewayBeats)

	for _, v := range all.SessionBeats {
		key := keyOf(t, v.BeatKey)
		beat := udpbeat.SessionBeat{Session: v.Session, Seconds: v.Seconds, Counter: v.Counter}
		made := beat.Append(nil, key)
		require.Equal(t, v.Datagram, hex.EncodeToString(made))
		got, err := udpbeat.ParseSession(made, func(id rollcall.SessionID) udpbeat.Key {
			require.Equal(t, v.Session, id)
			return key
		})
		require.NoError(t, err)
		require.Equal(t, beat, got)
	}
	for _, v := range all.GatewayBeats {
		key := keyOf(t, v.BeatKey)
		beat := udpbeat.GatewayBeat{Key: v.Key, Seconds: v.Seconds, Counter: v.Counter, Users: v.Users}
		made, err := beat.Append(nil, key)
		require.NoError(t, err)
		require.Equal(t, v.Datagram, hex.EncodeToString(made))
		got, err := udpbeat.ParseGateway(made, func(id string) udpbeat.Key {
			require.Equal(t, v.Key, id)
			return key
		})
		require.NoError(t, err)
		require.Equal(t, beat, got)
	}
}

func TestAChangedByteIsNoDatagramOfTheSender(t *testing.T) {
	key := udpbeat.Key{1, 2, 3}
	session := udpbeat.SessionBeat{Session: rollcall.SessionID{1, 2}, Seconds: 7, Counter: 9}.Append(nil, key)
	gateway, err := udpbeat.GatewayBeat{Key: "00112233445566aa", Seconds: 7, Counter: 9, Users: []string{"alice", "42"}}.Append(nil, key)
	require.NoError(t, err)

	parse := func(b []byte) error {
		_, sessionErr := udpbeat.ParseSession(b, func(rollcall.SessionID) udpbeat.Key { return key })
		_, gatewayErr := udpbeat.ParseGateway(b, func(string) udpbeat.Key { return key })
		if sessionErr == nil || gatewayErr == nil {
			return nil
		}
		return sessionErr
	}
	for _, datagram := range [][]byte{session, gateway} {
		require.NoError(t, parse(datagram))
		for i := range datagram {
			changed := append([]byte{}, datagram...)
			changed[i] ^= 0x10
			require.Error(t, parse(changed), "byte %d changed", i)
			require.Error(t, parse(datagram[:i]), "cut after %d bytes", i)
		}
		require.Error(t, parse(append(append([]byte{}, datagram...), 0)))
	}
}

func TestAGatewayBeatThatCannotBeIsNotMade(t *testing.T) {
	many := make([]string, 100)
	for i := range many {
		many[i] = strings.Repeat("x", 20)
	}
	for name, beat := range map[string]udpbeat.GatewayBeat{
		"key":      {Key: "0011", Users: []string{"a"}},
		"users":    {Key: "00112233445566aa"},
		"users[1]": {Key: "00112233445566aa", Users: []string{"a", ""}},
		"users[0]": {Key: "00112233445566aa", Users: []string{"a\nb"}},
		"1400":     {Key: "00112233445566aa", Users: many},
	} {
		_, err := beat.Append(nil, udpbeat.Key{})
		require.ErrorContains(t, err, name)
		require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err))
	}
}

func TestGatewayBeatsAreReadAsTheyWereMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := udpbeat.Key(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "beat key"))
		beat := udpbeat.GatewayBeat{
			Key:     hex.EncodeToString(rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "key")),
			Seconds: rapid.Uint32().Draw(t, "seconds"),
			Counter: rapid.Uint64().Draw(t, "counter"),
			Users:   rapid.SliceOfN(rapid.StringMatching(`[a-z0-9é界]{1,20}`), 1, 20).Draw(t, "users"),
		}
		made, err := beat.Append(nil, key)
		require.NoError(t, err)
		got, err := udpbeat.ParseGateway(made, func(string) udpbeat.Key { return key })
		require.NoError(t, err)
		require.Equal(t, beat, got)
	})
}

// FuzzDatagrams holds the parsers to this: what they take is what Append makes.
func FuzzDatagrams(f *testing.F) {
	key := udpbeat.Key{4, 5, 6}
	f.Add(udpbeat.SessionBeat{Session: rollcall.SessionID{1}, Seconds: 1, Counter: 2}.Append(nil, key), true)
	gateway, err := udpbeat.GatewayBeat{Key: "00112233445566aa", Users: []string{"a", "b"}}.Append(nil, key)
	require.NoError(f, err)
	f.Add(gateway, true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, datagram []byte, sign bool) {
		if sign && len(datagram) > 16 {
			// Behind the MAC lies what only a sender can reach.
			datagram = udpbeat.Sign(datagram[:len(datagram)-16], key)
		}
		if beat, err := udpbeat.ParseSession(datagram, func(rollcall.SessionID) udpbeat.Key { return key }); err == nil {
			require.Equal(t, datagram, beat.Append(nil, key))
		}
		if beat, err := udpbeat.ParseGateway(datagram, func(string) udpbeat.Key { return key }); err == nil {
			made, err := beat.Append(nil, key)
			require.NoError(t, err)
			require.Equal(t, datagram, made)
		}
	})
}

package respapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/respapi"
)

func TestTheVerbsAnswerAsTheServiceDoes(t *testing.T) {
	onBothEngines(t, respapi.Options{}, func(w *world) {
		c := w.as(rollcall.RoleWriter)
		require.Equal(w, 3, c.do("BEAT", "alice", "bob", "42"))
		w.clock.advance(10 * time.Second)
		require.Equal(w, 1, c.do("beat", "alice"))
		require.Equal(w, 1, c.do("ONLINE.COUNT", 5))
		require.Equal(w, 3, c.do("ONLINE.COUNT", "5m"))
		require.Equal(w, 3, c.do("ONLINE.COUNT"))
		require.Equal(w, 3, c.do("ONLINE.COUNT", "all"))
		now := int(noon.Unix())
		require.Equal(w, list("alice", now+10), c.do("ONLINE.LIST", 60, 1))
		require.Equal(w, list(now+10, nil, now), c.do("SEEN", "alice", "nobody", "42"))

		require.NoError(w, w.roll.AddFriends(w.Context(), "alice", false, rollcall.Friend{User: "bob"}, rollcall.Friend{User: "carol"}))
		require.Equal(w, list("bob", now), c.do("FRIENDS.ONLINE", "alice"))
		require.Equal(w, list(), c.do("FRIENDS.ONLINE", "alice", 5))

		session, err := w.roll.Login(w.Context(), rollcall.Login{User: "dora"})
		require.NoError(w, err)
		require.Equal(w, list("live", "unknown", "live"), c.do("TOUCH", session.Token, "rct_none", session.Session.ID))
		_, err = w.roll.Kick(w.Context(), rollcall.Kick{User: "dora"})
		require.NoError(w, err)
		require.Equal(w, list("ended kicked"), c.do("TOUCH", session.Token))

		require.Equal(w, 1, c.do("MARK", "alice"))
		require.Equal(w, 0, c.do("MARK", "alice", "user", "2017-10-20"))
		require.Equal(w, 1, c.do("MARK", "alice", "office", "2017-10-19"))
		require.Equal(w, failure("ERR invalid_argument marks[0] 2017-10-21 lies in the future"), c.do("MARK", "alice", "user", "2017-10-21"))
		days, err := w.roll.Attended(w.Context(), "alice", "", rollcall.Month(201710).Range())
		require.NoError(w, err)
		require.Len(w, days.Days, 2)
	})
}

func TestAnswersHaveTheFormOfTheVersion(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	c := w.dial()
	hello, ok := c.do("HELLO", 3, "AUTH", "default", w.key(rollcall.RoleWriter), "SETNAME", "a-client").([]any)
	require.True(t, ok, "HELLO answers with a map")
	require.Equal(t, list("server", "rollcall"), hello[:2])
	require.Equal(t, "a-client", c.do("CLIENT", "GETNAME"))
	require.Equal(t, 1, c.do("BEAT", "b"))
	require.Equal(t, list(list("b", int(noon.Unix()))), c.do("ONLINE.LIST", 60, 1), "pairs")
	require.Equal(t, list(nil), c.do("SEEN", "nobody"))
	c.send("*2\r\n$4\r\nSEEN\r\n$6\r\nnobody\r\n")
	raw := make([]byte, len("*1\r\n_\r\n"))
	_, err := c.in.Read(raw)
	require.NoError(t, err)
	require.Equal(t, "*1\r\n_\r\n", string(raw))
	_, ok = c.do("HELLO", 2).([]any)
	require.True(t, ok)
	require.Equal(t, list("b", int(noon.Unix())), c.do("ONLINE.LIST", 60, 1))
	require.Contains(t, c.do("HELLO", 4), "NOPROTO")
}

func TestNothingButAuthHelloPingAndQuitWorksBeforeAuth(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	c := w.dial()
	for _, command := range []string{"BEAT a", "ONLINE.COUNT", "INFO", "CLIENT SETNAME x", "COMMAND", "MULTI", "ECHO x", "CONFIG GET save", "HELLO", "RESET", "NOSUCH"} {
		answer, ok := c.line(command).(failure)
		require.True(t, ok && strings.HasPrefix(string(answer), "NOAUTH unauthenticated"), "%s: %v", command, answer)
	}
	require.Equal(t, "PONG", c.do("PING"))
	require.Equal(t, "hi", c.do("PING", "hi"))
	require.Contains(t, c.do("AUTH", "rck_"+strings.Repeat("x", 40)), "WRONGPASS unauthenticated")
	require.Equal(t, "OK", c.do("AUTH", w.key(rollcall.RoleReader)))
	require.Equal(t, 0, c.do("ONLINE.COUNT"))
	require.Equal(t, "RESET", c.do("RESET"))
	require.Contains(t, c.do("ONLINE.COUNT"), "NOAUTH")
	require.Equal(t, "OK", c.do("QUIT"))
	require.True(t, c.ended())
	known, err := w.roll.KnownCount(t.Context())
	require.NoError(t, err)
	require.Zero(t, known)
}

func TestARoleAllowsWhatItAllowsOverHTTP(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	reader, writer := w.as(rollcall.RoleReader), w.as(rollcall.RoleWriter)
	for _, command := range []string{"BEAT a", "TOUCH rct_x", "MARK a"} {
		answer, ok := reader.line(command).(failure)
		require.True(t, ok && strings.HasPrefix(string(answer), "ERR forbidden"), "%s: %v", command, answer)
		_, refused := writer.line(command).(failure)
		require.False(t, refused, command)
	}
	require.Equal(t, 1, reader.do("ONLINE.COUNT"))
}

func TestAKeyThatIsRevokedWorksNoMore(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	key, text, err := w.roll.CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleWriter})
	require.NoError(t, err)
	c := w.dial()
	require.Equal(t, "OK", c.do("AUTH", text))
	require.Equal(t, 1, c.do("BEAT", "a"))
	require.NoError(t, w.roll.RevokeKey(t.Context(), key.ID))
	w.clock.advance(2 * time.Second)
	require.Contains(t, c.do("BEAT", "a"), "ERR unauthenticated")
	require.True(t, c.ended())
}

func TestHTTPEndsTheConnection(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	for _, start := range []string{
		"POST / HTTP/1.1\r\n", "GET /x HTTP/1.1\r\n", "Host: localhost\r\n", "host: x\r\n", "PRI * HTTP/2.0\r\n", "OPTIONS * HTTP/1.1\r\n",
		"POST\r\n", request("POST", "/"), request("Host:", "x"),
	} {
		c := w.dial()
		c.send(start + "\r\n" + request("BEAT", "smuggled"))
		require.True(t, c.ended(), start)
	}
	known, err := w.roll.KnownCount(t.Context())
	require.NoError(t, err)
	require.Zero(t, known)
}

func TestAPipelineIsAnsweredInOrderAlsoWhereABeatCannotBe(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	c := w.dial()
	c.send(request("BEAT", "a") + request("BEAT", "b", "c") + request("BEAT", "d", "") + request("BEAT", "e") + "PING\r\n" + request("ONLINE.COUNT") + request("BEAT", "f"))
	require.Equal(t, 1, c.read())
	require.Equal(t, 2, c.read())
	require.Equal(t, failure("ERR invalid_argument users[1] is required"), c.read())
	require.Equal(t, 1, c.read())
	require.Equal(t, "PONG", c.read())
	require.Equal(t, 4, c.read(), "what came before has been done, what comes after has not, and a beat counts whole or not at all")
	require.Equal(t, 1, c.read())
}

func TestABeatHasTheLimitOfHTTP(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	c := w.dial()
	words := list("BEAT")
	for i := range rollcall.MaxBeatUsers {
		words = append(words, i)
	}
	require.Equal(t, rollcall.MaxBeatUsers, c.do(words...))
	require.Equal(t, failure("ERR invalid_argument users names 10001 users, the limit is 10000"), c.do(append(words, "more")...))
	require.Equal(t, rollcall.MaxBeatUsers, c.do("ONLINE.COUNT"))
}

func TestMULTIQueuesAndEXECDoes(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	c := w.dial()
	require.Equal(t, "OK", c.do("MULTI"))
	require.Equal(t, "QUEUED", c.do("BEAT", "a"))
	require.Equal(t, "QUEUED", c.do("ONLINE.COUNT"))
	require.Contains(t, c.do("MULTI"), "ERR")
	require.Contains(t, c.do("EXEC"), "EXECABORT")
	require.Equal(t, 0, c.do("ONLINE.COUNT"))

	require.Equal(t, "OK", c.do("MULTI"))
	require.Equal(t, "QUEUED", c.do("BEAT", "a", "b"))
	require.Equal(t, "QUEUED", c.do("ONLINE.COUNT"))
	require.Equal(t, list(2, 2), c.do("EXEC"))

	require.Equal(t, "OK", c.do("MULTI"))
	require.Equal(t, "QUEUED", c.do("BEAT", "c"))
	require.Equal(t, "OK", c.do("DISCARD"))
	require.Equal(t, 2, c.do("ONLINE.COUNT"))
	require.Contains(t, c.do("EXEC"), "ERR")

	require.Equal(t, "OK", c.do("MULTI"))
	c.send(strings.Repeat(request("PING"), 1_001))
	for range 1_000 {
		require.Equal(t, "QUEUED", c.read())
	}
	require.Contains(t, c.read(), "ERR too_large")
	require.Contains(t, c.do("EXEC"), "EXECABORT")
}

func TestTheHandshakesOfClientsPass(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true, Version: "1.2.3"})
	c := w.dial()
	for _, command := range []string{
		"CLIENT SETNAME x", "CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1", "CLIENT TRACKING OFF", "CLIENT NO-EVICT on", "CLIENT NO-TOUCH on", "SELECT 0", "AUTH any thing",
	} {
		require.Equal(t, "OK", c.line(command), command)
	}
	require.Equal(t, "x", c.do("CLIENT", "GETNAME"))
	require.IsType(t, 0, c.do("CLIENT", "ID"))
	require.Equal(t, "hello", c.do("ECHO", "hello"))
	require.Contains(t, c.do("INFO"), "loading:0")
	require.Contains(t, c.do("INFO"), "rollcall_version:1.2.3")
	require.Equal(t, list("save", ""), c.do("CONFIG", "GET", "save"))
	require.Equal(t, list(), c.do("COMMAND", "DOCS"))
	n, ok := c.do("COMMAND", "COUNT").(int)
	require.True(t, ok)
	require.Len(t, c.do("COMMAND"), n)
	require.Len(t, c.do("COMMAND", "INFO", "beat", "nosuch"), 2)
	require.Equal(t, list(fmt.Sprint(noon.Unix()), "0"), c.do("TIME"))
	require.Contains(t, c.do("SELECT", 1), "ERR invalid_argument")
	require.Contains(t, c.do("CLIENT", "TRACKING", "ON"), "ERR invalid_argument")
	for command, advice := range map[string]string{"EVAL x 0": "scripts are not run", "SUBSCRIBE x": "/v1/events", "HSET a b c": "sessions", "NOSUCH\r\n-ERR": "BEAT"} {
		answer, ok := c.line(command).(failure)
		require.True(t, ok, command)
		require.Contains(t, string(answer), strings.Fields(command)[0])
		require.Contains(t, string(answer), advice)
	}
}

func TestCommandsAreCountedByVerbAndOutcome(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	c := w.dial()
	c.send(request("BEAT", "a") + request("BEAT", "b") + request("BEAT", "") + request("NOSUCH"))
	for range 4 {
		c.read()
	}
	require.Equal(t, "OK", c.do("QUIT"))
	require.True(t, c.ended())
	require.Eventually(t, func() bool { return w.door.Connections() == 0 }, patience, time.Millisecond, "the connection goes")
	got := map[string]uint64{}
	for of, n := range w.door.Commands() {
		if n > 0 {
			got[of.Verb+" "+of.Outcome.String()] = n
		}
	}
	require.Equal(t, map[string]uint64{"beat answered": 2, "beat refused": 1, "unknown refused": 1, "quit answered": 1}, got)
	served, _, _ := w.door.Accepted()
	require.EqualValues(t, 1, served)
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{MaxConnections: 4})
	key := w.key(rollcall.RoleReader)
	for range 4 {
		require.Equal(t, "OK", w.dial().do("AUTH", key))
	}
	c := w.dial()
	require.Contains(t, c.read(), "ERR unavailable")
	require.True(t, c.ended())

	// One in four may be of clients that have not said who they are.
	w = newWorld(t, openLocal(t), respapi.Options{MaxConnections: 4})
	require.Equal(t, "PONG", w.dial().do("PING"))
	c = w.dial()
	require.Contains(t, c.read(), "ERR unavailable")
}

func TestAListenerThatClosesAnswersWhatHasCome(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	door, err := respapi.Listen(w.roll, "127.0.0.1:0", respapi.Options{NoKeys: true})
	require.NoError(t, err)
	idle, half := dial(t, door.Addr().String()), dial(t, door.Addr().String())
	require.Equal(t, "PONG", idle.do("PING"))
	half.send("*2\r\n$4\r\nBE")
	require.NoError(t, door.Close())
	require.True(t, idle.ended())
	require.True(t, half.ended())
	require.Zero(t, door.Connections())
}

func TestWithoutKeysOnlyLoopbackIsServed(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	_, err := respapi.Listen(w.roll, "0.0.0.0:0", respapi.Options{NoKeys: true})
	require.ErrorContains(t, err, "loopback")
	_, err = respapi.Listen(w.roll, "nowhere", respapi.Options{})
	require.ErrorContains(t, err, "resp.listen")
}

func TestAnAddressWithTooManyWrongKeysIsCutOff(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{FailureLimit: respapi.Limit{Rate: 0.001, Burst: 2}})
	c := w.dial()
	wrong := "rck_" + strings.Repeat("x", 40)
	require.Contains(t, c.do("AUTH", wrong), "WRONGPASS")
	require.Contains(t, c.do("AUTH", wrong), "WRONGPASS")
	require.Contains(t, c.do("AUTH", wrong), "ERR rate_limited")
	require.True(t, c.ended())
	require.Equal(t, "OK", w.dial().do("AUTH", w.key(rollcall.RoleReader)), "one that works is served all the same")
}

func TestAKeyBeyondItsAllowanceIsRefused(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{KeyLimit: respapi.Limit{Rate: 0.001, Burst: 2}})
	c := w.as(rollcall.RoleWriter)
	require.Equal(t, 1, c.do("BEAT", "a"))
	require.Equal(t, 1, c.do("BEAT", "a"))
	require.Contains(t, c.do("BEAT", "a"), "ERR rate_limited")
}

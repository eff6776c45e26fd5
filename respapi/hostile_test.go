package respapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/respapi"
)

func TestTheLargestNumbersThereAreNameNoPlace(t *testing.T) {
	const most, least = "9223372036854775807", "-9223372036854775808"
	onBothEngines(t, speaking(t, "users = presence", "online:user = sessions", "f:{user} = friends", "z:{user} = friends zset", "log_{month}_{user} = attendance"), func(w *world) {
		c := w.dial()
		now := noon.Unix()
		require.Equal(w, 1, c.do("ZADD", "users", now, "bob"))
		require.Equal(w, 1, c.do("ZADD", "online:user", now, "bob"))
		require.Equal(w, 1, c.line("SADD f:a bob"))
		require.Equal(w, 1, c.line("ZADD z:b 1 bob"))
		require.Equal(w, 0, c.line("SETBIT log_2017-10_a 3 1"))
		require.Equal(w, 0, c.do("BITCOUNT", "log_2017-10_a", most, least))
		require.Equal(w, 1, c.do("BITCOUNT", "log_2017-10_a", least, most))
		for _, key := range []string{"users", "online:user", "z:b"} {
			require.Equal(w, list(), c.do("ZRANGE", key, most, least), key)
			require.Equal(w, list(), c.do("ZREVRANGE", key, most, least), key)
			require.Equal(w, list("bob"), c.do("ZRANGE", key, least, most), key)
			require.Equal(w, list(), c.do("ZRANGE", key, "-inf", "+inf", "BYSCORE", "LIMIT", most, most), key)
		}
		for _, command := range []string{"MULTI", "ZUNIONSTORE copy 1 users", "ZINTERSTORE online 2 copy f:a"} {
			c.line(command)
		}
		c.do("ZRANGE", "online", most, least)
		c.do("ZRANGE", "copy", most, least)
		require.Equal(w, list(1, 1, list(), list()), c.do("EXEC"))
	})
}

// panicking is an engine with a fault.
type panicking struct{ rollcall.Engine }

func (panicking) Status(context.Context, time.Time, time.Duration, []string, rollcall.Viewer) ([]rollcall.Status, error) {
	panic("a fault")
}

func TestACommandThatPanicsEndsItsConnectionAndNoOther(t *testing.T) {
	w := newWorld(t, panicking{openLocal(t)}, respapi.Options{NoKeys: true})
	other, c := w.dial(), w.dial()
	require.Equal(t, "PONG", other.do("PING"))
	c.send(request("SEEN", "bob"))
	require.True(t, c.ended())
	require.Equal(t, "PONG", other.do("PING"))
}

func TestASetOfAMinuteHoldsNobodyOfTheMinuteBefore(t *testing.T) {
	onBothEngines(t, speaking(t, "m:{minute} = minute-set"), func(w *world) {
		c := w.dial()
		w.clock.advance(-time.Second)
		require.Equal(w, 1, c.line("SADD m:59 bob"))
		w.clock.advance(time.Second)
		require.Equal(w, list(0, list(), 0, 0), list(c.line("SCARD m:00"), c.line("SMEMBERS m:00"), c.line("SISMEMBER m:00 bob"), c.line("EXISTS m:00")))
		require.Equal(w, list("bob"), c.line("SUNION m:59 m:00"))
		require.Equal(w, 1, c.line("SADD m:01 carol"), "a client whose clock is ahead")
		for _, key := range []string{"m:00", "m:01"} {
			require.Equal(w, list(1, list("carol"), 1, 1), list(c.line("SCARD "+key), c.line("SMEMBERS "+key), c.line("SISMEMBER "+key+" carol"), c.line("EXISTS "+key)), key)
		}
	})
}

// TestSignsOfLifeThatComeTogetherAreAnsweredAsOneByOne sends all in one piece.
func TestSignsOfLifeThatComeTogetherAreAnsweredAsOneByOne(t *testing.T) {
	onBothEngines(t, speaking(t, "users = presence", "m:{minute} = minute-set"), func(w *world) {
		together, alone := w.dial(), w.dial()
		now := func() int64 { return w.clock.Now().Unix() }
		for i, commands := range [][][]any{
			{{"BEAT", "$"}, {"ZADD", "users", now(), "$"}},
			{{"ZADD", "users", now(), "$"}, {"BEAT", "$"}, {"ZADD", "users", "CH", now(), "$", now(), "$x"}},
			{{"SADD", "m:00", "$"}, {"ZADD", "users", "CH", now(), "$"}, {"SADD", "m:00", "$", "$x"}},
			{{"BEAT", "$", "$x"}, {"SADD", "m:00", "$", "$x", "$y"}, {"ZADD", "users", now(), "$y"}},
		} {
			for _, known := range []bool{false, true} {
				var sent string
				var want, got []any
				// The same on users of the same past, whose names differ.
				at := func(word any, of string) any {
					if text, ok := word.(string); ok && text[0] == '$' {
						return fmt.Sprintf("%s%d%v%s", of, i, known, text[1:])
					}
					return word
				}
				if known { // in this minute, and not in this second
					w.clock.advance(-time.Second)
					require.Equal(w, 2, alone.do("BEAT", at("$", "alone"), at("$", "together")))
					w.clock.advance(time.Second)
				}
				for _, command := range commands {
					one, many := make([]any, len(command)), make([]any, len(command))
					for k, word := range command {
						one[k], many[k] = at(word, "alone"), at(word, "together")
					}
					want = append(want, alone.do(one...))
					sent += request(many...)
				}
				together.send(sent)
				for range commands {
					got = append(got, together.read())
				}
				require.Equal(w, want, got, "%v", commands)
			}
		}
	})
}

// flaky is an engine that can be made to lose its API keys for a while.
type flaky struct {
	rollcall.Engine
	down atomic.Bool
}

func (f *flaky) Key(ctx context.Context, hash rollcall.KeyHash) (rollcall.APIKey, error) {
	if f.down.Load() {
		return rollcall.APIKey{}, rollcall.ErrUnavailable
	}
	return f.Engine.Key(ctx, hash)
}

func TestATransactionOfWhichACommandCouldNotBeTakenDoesNothing(t *testing.T) {
	engine := &flaky{Engine: openLocal(t)}
	w := newWorld(t, engine, respapi.Options{})
	c := w.as(rollcall.RoleWriter)
	lose := func(lost bool) {
		engine.down.Store(lost)
		w.clock.advance(time.Minute) // the key is looked at again
	}
	for _, refused := range []string{"BEAT bob", "EXEC", "DISCARD"} {
		require.Equal(t, "OK", c.line("MULTI"))
		require.Equal(t, "QUEUED", c.line("BEAT alice"))
		lose(true)
		require.Contains(t, c.line(refused), "ERR unavailable", refused)
		lose(false)
		if refused == "BEAT bob" {
			require.Contains(t, c.line("EXEC"), "EXECABORT")
		}
		require.Contains(t, c.line("EXEC"), "has no MULTI before it", "%s is behind it", refused)
		require.Equal(t, list(nil, nil), c.line("SEEN alice bob"))
	}
	lose(true)
	c.send(request("MULTI") + request("BEAT", "alice") + request("EXEC"))
	for range 3 {
		require.Contains(t, c.read(), "ERR unavailable", "what comes together is refused together")
	}
}

func TestATransactionIsDoneWithTheRightsOfItsEnd(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	c := w.as(rollcall.RoleWriter)
	require.Equal(t, "OK", c.line("MULTI"))
	require.Equal(t, "QUEUED", c.line("SEEN alice"))
	require.Equal(t, "QUEUED", c.line("BEAT alice"))
	require.Equal(t, "OK", c.do("AUTH", w.key(rollcall.RoleReader)))
	require.Equal(t, failure("EXECABORT forbidden nothing was done, as BEAT needs a key of role writer, and this one is reader"), c.line("EXEC"))
	require.Equal(t, list(nil), c.line("SEEN alice"))
}

func TestArgumentsWithoutATextFillATransactionToo(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{})
	c := w.as(rollcall.RoleReader)
	require.Equal(t, "OK", c.line("MULTI"))
	long := "*20000\r\n$4\r\nINFO\r\n" + strings.Repeat("$0\r\n\r\n", 19_999)
	for n := 0; ; n++ {
		require.Less(t, n, 10)
		c.send(long)
		if answer := c.read(); answer != "QUEUED" {
			require.Contains(t, answer, "1 MiB")
			break
		}
	}
	require.Contains(t, c.line("EXEC"), "EXECABORT")
}

// TestTheAnswersOfATransactionAreBounded asks for the same long answer again and again.
func TestTheAnswersOfATransactionAreBounded(t *testing.T) {
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true})
	c := w.dial()
	beat := []any{"BEAT"}
	for i := range rollcall.MaxLimit {
		beat = append(beat, fmt.Sprintf("%s%d", strings.Repeat("x", 100), i))
	}
	require.Equal(t, rollcall.MaxLimit, c.do(beat...))
	require.Equal(t, "OK", c.line("MULTI"))
	const commands = 650
	for range commands {
		require.Equal(t, "QUEUED", c.line("ONLINE.LIST 60 1000"))
	}
	answers, ok := c.line("EXEC").([]any)
	require.True(t, ok)
	require.Len(t, answers, commands)
	require.Len(t, answers[0], 2*rollcall.MaxLimit)
	require.Contains(t, answers[commands-1], "ERR too_large", "they would have 80 MB together")
	require.Len(t, c.line("ONLINE.LIST 60 1000"), 2*rollcall.MaxLimit)
}

func TestDELWithoutAKindRemovesTheDaysOfAllKinds(t *testing.T) {
	onBothEngines(t, speaking(t, "log_{month}_{user} = attendance", "of_{month}_{kind}_{user} = attendance"), func(w *world) {
		c := w.dial()
		require.Equal(w, 0, c.line("SETBIT of_2017-10_client_a 3 1"))
		require.Equal(w, 0, c.line("SETBIT of_2017-10_office_a 5 1"))
		require.Equal(w, 0, c.line("SETBIT log_2017-10_a 4 1"))
		require.Equal(w, 1, c.line("DEL of_2017-10_client_a"))
		require.Equal(w, 2, c.line("BITCOUNT log_2017-10_a"))
		require.Equal(w, 1, c.line("DEL log_2017-10_a"))
		require.Equal(w, 0, c.line("EXISTS log_2017-10_a"))
		require.Equal(w, 0, c.line("DEL log_2017-10_a"))
	})
}

func TestSCANKnowsTypesAndAnswersAfterAFewPages(t *testing.T) {
	onBothEngines(t, speaking(t, "users = presence", "m:{minute} = minute-set", "log_{month}_{user} = attendance"), func(w *world) {
		c := w.dial()
		scan := func(options string) (keys []string, calls int) {
			for cursor := "0"; ; calls++ {
				answer := c.line("SCAN " + cursor + " " + options).([]any)
				for _, key := range answer[1].([]any) {
					keys = append(keys, key.(string))
				}
				if cursor = answer[0].(string); cursor == "0" {
					slices.Sort(keys)
					return keys, calls + 1
				}
			}
		}
		require.Equal(w, 1, c.line("BEAT bob"))
		require.Equal(w, 0, c.line("SETBIT log_2017-10_bob 3 1"))
		for kind, want := range map[string][]string{"zset": {"users"}, "set": {"m:00", "m:1200", "m:201710201200"}, "string": {"log_2017-10_bob"}, "hash": nil} {
			keys, _ := scan("TYPE " + kind)
			require.Equal(w, want, keys, kind)
		}
		var marks []rollcall.Mark
		for i := range 12_000 {
			marks = append(marks, rollcall.Mark{User: fmt.Sprintf("u%d", i), Day: w.roll.Today()})
		}
		for part := range slices.Chunk(marks, rollcall.MaxMarks) {
			_, _, err := w.roll.Mark(w.Context(), part...)
			require.NoError(w, err)
		}
		keys, calls := scan("MATCH log_*_nobody")
		require.Empty(w, keys)
		require.Greater(w, calls, 1)
	})
}

// TestAListOfThoseSeenLongAgoIsFullWhoeverWentSince asks for those who are seen behind some
// that logged out.
func TestAListOfThoseSeenLongAgoIsFullWhoeverWentSince(t *testing.T) {
	onBothEngines(t, speaking(t, "users = presence"), func(w *world) {
		c := w.dial()
		for i := range 5 {
			require.Equal(w, 1, c.do("BEAT", fmt.Sprintf("old%d", i)))
			w.clock.advance(time.Second)
		}
		w.clock.advance(100 * time.Second)
		for i := range 3 {
			session, err := w.roll.Login(w.Context(), rollcall.Login{User: fmt.Sprintf("gone%d", i)})
			require.NoError(w, err)
			_, err = w.roll.Kick(w.Context(), rollcall.Kick{Session: session.Session.ID})
			require.NoError(w, err)
		}
		before := w.clock.Now().Unix() - 50
		require.Equal(w, texts("old4 old3 old2"), c.do("ZREVRANGEBYSCORE", "users", before, "-inf", "LIMIT", 0, 3))
		require.Equal(w, texts("old1 old0"), c.do("ZREVRANGEBYSCORE", "users", before, "-inf", "LIMIT", 3, 3))
		require.Equal(w, texts("old0 old1 old2"), c.do("ZRANGEBYSCORE", "users", "-inf", before, "LIMIT", 0, 3))
		require.Equal(w, texts("old4 old3 old2 old1 old0"), c.do("ZREVRANGEBYSCORE", "users", before, "-inf"))
	})
}

func TestASessionIsFoundByItsNameHoweverManyTheUserHas(t *testing.T) {
	w := newWorld(t, openLocal(t), speaking(t, "online:user = sessions many"))
	c := w.dial()
	now := noon.Unix()
	require.Equal(t, 1, c.do("ZADD", "online:user", now, "alice:first"))
	for i := range rollcall.MaxLimit + 1 {
		_, err := w.roll.Login(t.Context(), rollcall.Login{User: "alice", DeviceID: fmt.Sprintf("d%d", i)})
		require.NoError(t, err)
	}
	require.Equal(t, fmt.Sprint(now), c.line("ZSCORE online:user alice:first"))
	require.Equal(t, 0, c.do("ZADD", "online:user", now, "alice:first"))
	require.Equal(t, 1, c.line("ZREM online:user alice:first"))
	require.Equal(t, 0, c.line("ZREM online:user alice:first"))
	require.Equal(t, rollcall.MaxLimit+1, c.line("ZCARD online:user"))
}

// TestWhatRedisRefusesOrLeavesOutIsSoHere is what random commands came upon.
func TestWhatRedisRefusesOrLeavesOutIsSoHere(t *testing.T) {
	onBothEngines(t, speaking(t, "z:{user} = friends zset", "log_{month}_{user} = attendance"), func(w *world) {
		c := w.dial()
		require.Equal(w, 1, c.line("ZADD z:a 10 bob"))
		require.Contains(w, c.line("ZADD z:a GT 5 bob"), "ERR invalid_argument ZADD the options CH and GT are not served here")
		require.Equal(w, "10", c.line("ZSCORE z:a bob"), "no time of friendship moves back unasked")

		require.Equal(w, 0, c.line("BITOP OR result log_2017-10_a"))
		require.Equal(w, list(0, "none", nil), list(c.line("EXISTS result"), c.line("TYPE result"), c.line("GET result")), "a result without a bit is none")
		require.Equal(w, 0, c.line("SETBIT log_2017-10_a 3 1"))
		require.Equal(w, 1, c.line("BITOP OR result log_2017-10_a"))
		require.Equal(w, list(1, "string"), list(c.line("EXISTS result"), c.line("TYPE result")))
	})
}

package redis_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for field, options := range map[string][]redis.Options{
		"redis.url": {
			{},
			{URL: "localhost:6379"},
			{URL: "http://localhost"},
			{URL: "redis+raft://localhost"},
			{URL: "redis://a:1,b:2"},
			{URL: "redis://:secret@/"},
			{URL: "redis://u:secret@h:0"},
			{URL: "redis://u:secret@h:70000"},
			{URL: "redis://h/x"},
			{URL: "redis+cluster://h/3"},
			{URL: "redis+sentinel://h:1"},
			{URL: "redis://h?timeout=3"},
			{URL: "redis://u:se%zzcret@h"},
			{URL: "redis://u:secret@h?%zz"},
		},
		"redis.prefix":     {{URL: "redis://h", Prefix: "a{b}"}, {URL: "redis://h", Prefix: strings.Repeat("x", 65)}},
		"redis.partitions": {{URL: "redis://h", Partitions: 3}, {URL: "redis://h", Partitions: -1}, {URL: "redis://h", Partitions: 2048}},
		"redis.wait":       {{URL: "redis://h", Wait: -1}, {URL: "redis://h", Wait: 17}},
		"redis.timeout":    {{URL: "redis://h", Timeout: time.Millisecond}, {URL: "redis://h", Timeout: time.Hour}},
	} {
		for _, o := range options {
			_, err := redis.Open(t.Context(), o)
			var e *rollcall.Error
			require.ErrorAs(t, err, &e, "%+v", o)
			require.Equal(t, field, e.Field)
			require.ErrorIs(t, err, rollcall.ErrInvalidArgument)
			require.NotContains(t, err.Error(), "secret")
			require.Equal(t, err.Error(), o.Check().Error())
		}
	}
}

func TestErrorsNeverHoldThePassword(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, before := range []string{"", "%zz", "/", "@", ":", "#", "?", " ", "[", "se#", "/x@", "?a=", "123/"} {
		for _, form := range []string{
			"redis://u:PW@127.0.0.1:1", "redis://u:PW@127.0.0.1:x", "redis://u:PW/x@db", "redis+sentinel://u:PW@h:1/m",
			"redis+sentinel://u:1/PW@db", "redis+cluster://u:PW@h/3", "u:PW@h://x", "redis://u@h:1?sentinel_password=PW&x=1", "redis://PW@", "rediss+x://u:PW@h",
		} {
			o := redis.Options{URL: strings.ReplaceAll(form, "PW", before+secret)}
			if err := o.Check(); err != nil {
				require.NotContains(t, err.Error(), secret, "%q", o.URL)
			}
		}
	}
	for _, url := range []string{"redis+sentinel://user:123/se#cret@db", "redis://user:hunter2/x@db", "redis://u:a@b@h"} {
		o := redis.Options{URL: url}
		require.ErrorIs(t, o.Check(), rollcall.ErrInvalidArgument, "%q", url)
	}
	o := redis.Options{URL: "redis+sentinel://user:123%2Fse%23cret%40@db:26379/master"}
	require.NoError(t, o.Check())
}

// TestFixedWithTheData opens data with other settings than it was made with.
func TestFixedWithTheData(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t)})
	o := redis.Options{URL: s.URL(), Partitions: 16, Timeout: time.Minute}
	open(t, o)
	o.Partitions = 32
	_, err := redis.Open(t.Context(), o)
	require.ErrorIs(t, err, rollcall.ErrConflict)
	require.ErrorContains(t, err, "16 partitions")
	o.Partitions = 16
	engine, err := redis.Open(t.Context(), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	_, err = rollcall.New(engine, rollcall.Options{Secret: []byte("another secret, of another server")})
	require.ErrorIs(t, err, rollcall.ErrConflict)
	require.ErrorContains(t, err, "same")
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	_, err = rollcall.New(engine, rollcall.Options{Timezone: berlin})
	require.ErrorIs(t, err, rollcall.ErrConflict)
	_, err = s.Do("HSET", "rc:meta", "format", "99")
	require.NoError(t, err)
	_, err = redis.Open(t.Context(), o)
	require.ErrorIs(t, err, rollcall.ErrConflict)
	require.ErrorContains(t, err, `format "99"`)
}

// TestRefusedUsers opens with a user who may not do what is needed.
func TestRefusedUsers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t)})
	_, err := redis.Open(t.Context(), redis.Options{URL: strings.Replace(s.URL(), ":secret@", ":wrong-one@", 1)})
	require.ErrorIs(t, err, rollcall.ErrUnavailable)
	require.NotContains(t, err.Error(), "wrong-one")
	_, err = redis.Open(t.Context(), redis.Options{URL: s.URL(), Prefix: "other"})
	require.ErrorIs(t, err, rollcall.ErrUnavailable)
	require.ErrorContains(t, err, "operations guide")
	for _, right := range []string{"-evalsha", "-xadd", "-bitop", "-pfmerge", "-zmscore", "-hincrby"} {
		_, err := s.Do("ACL", "SETUSER", "rollcall", right)
		require.NoError(t, err)
		_, err = redis.Open(t.Context(), redis.Options{URL: s.URL()})
		require.ErrorIs(t, err, rollcall.ErrUnavailable, right)
		require.ErrorContains(t, err, "operations guide", right)
		_, err = s.Do("ACL", "SETUSER", "rollcall", "+"+right[1:])
		require.NoError(t, err)
	}
}

// TestClock compares the clock that servers share with this machine's.
func TestClock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	began := time.Now()
	engine, err := redis.Open(t.Context(), redis.Options{URL: s.URL(), Timeout: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, engine.Close()) }()
	asked := time.Since(began) + 10*time.Millisecond // no further off than the question took
	require.Less(t, engine.ClockOffset().Abs(), asked)
	before := time.Now()
	now := engine.Clock().Now()
	require.WithinRange(t, now, before.Add(-asked), time.Now().Add(asked))
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, roll.Close()) }()
	before = engine.Clock().Now()
	now = roll.Now()
	require.WithinRange(t, now, before.Add(-asked), engine.Clock().Now().Add(asked), "the service goes by the engine's clock")
	require.NoError(t, roll.Ready(t.Context()))
}

// TestLimitAcrossServers is R8 in one process: three engines on one Redis.
func TestLimitAcrossServers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	policies, err := rollcall.NewPolicies(rollcall.Policy{MaxSessions: 3})
	require.NoError(t, err)
	var rolls []*rollcall.Roll
	for range 3 {
		r := open(t, redis.Options{URL: s.URL()})
		r.SetPolicies(policies)
		rolls = append(rolls, r)
	}
	for round := range 10 {
		user := string(rune('a' + round))
		var work sync.WaitGroup
		for i := range 100 {
			work.Go(func() {
				_, err := rolls[i%3].Login(t.Context(), rollcall.Login{User: user})
				if err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		page, err := rolls[0].Sessions(t.Context(), rollcall.SessionQuery{
			Filter: rollcall.SessionFilter{Users: []string{user}}, Page: rollcall.PageRequest{Limit: 10},
		})
		require.NoError(t, err)
		require.Equal(t, 3, page.Total)
	}
}

// TestARedisWithoutRoomIsOpenedForReads is the twin of a test of the embedded engine.
func TestARedisWithoutRoomIsOpenedForReads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	open := func() (*redis.Engine, *rollcall.Roll) {
		t.Helper()
		engine, err := redis.Open(t.Context(), redis.Options{URL: s.URL(), Partitions: 4})
		require.NoError(t, err)
		roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte("the secret of a test of a Redis that is full")})
		require.NoError(t, err)
		return engine, roll
	}
	set := func(most string) {
		t.Helper()
		_, err := s.Do("CONFIG", "SET", "maxmemory", most)
		require.NoError(t, err)
	}
	ctx := t.Context()
	engine, roll := open()
	in, err := roll.Login(ctx, rollcall.Login{User: "alice"})
	require.NoError(t, err)
	require.NoError(t, errors.Join(roll.Close(), engine.Close()))

	set("1")
	engine, roll = open()
	require.ErrorIs(t, roll.Ready(ctx), rollcall.ErrStorageFull)
	_, err = roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err, "who is logged in gets in")
	_, err = roll.Login(ctx, rollcall.Login{User: "bob"})
	require.ErrorIs(t, err, rollcall.ErrStorageFull)

	set("0")
	require.Eventually(t, func() bool { return roll.Ready(ctx) == nil }, time.Minute, 10*time.Millisecond, "writes go on when there is room")
	_, err = roll.Login(ctx, rollcall.Login{User: "bob"})
	require.NoError(t, err)
	require.NoError(t, errors.Join(roll.Close(), engine.Close()))
}

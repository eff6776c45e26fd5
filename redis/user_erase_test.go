package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// moment is something that happens ahead of a command whose context has it.
type moment struct {
	ahead int // of which command, counted from 1
	sent  int
	what  func()
}

type momentKey struct{}

// momentary is a client whose commands may be preceded by a moment.
type momentary struct{ rueidis.Client }

// before counts a command, but for the look at the webhooks that comes ahead of an erasure.
func (momentary) before(ctx context.Context, all ...rueidis.Completed) {
	if len(all) == 1 && slices.ContainsFunc(all[0].Commands(), func(word string) bool { return strings.HasSuffix(word, ":hooks") }) {
		return
	}
	if m, ok := ctx.Value(momentKey{}).(*moment); ok {
		if m.sent++; m.sent == m.ahead {
			m.what()
		}
	}
}

func (c momentary) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.before(ctx, cmd)
	return c.Client.Do(ctx, cmd)
}

func (c momentary) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	c.before(ctx, all...)
	return c.Client.DoMulti(ctx, all...)
}

// newMomentaryRig opens an engine of one partition, whose commands may be preceded by
// moments.
func newMomentaryRig(t *testing.T) *rig {
	t.Helper()
	s := redistest.Start(t, redistest.Options{})
	e, err := Open(t.Context(), Options{
		URL: s.URL(), Partitions: 1, Timeout: 20 * time.Second,
		wrap: func(c rueidis.Client) rueidis.Client { return momentary{c} },
	})
	require.NoError(t, err)
	r := &rig{e: e, s: s, clock: rollcall.NewManualClock(time.Now().UTC().Truncate(time.Second))}
	r.roll, err = rollcall.New(e, rollcall.Options{Clock: r.clock})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.roll.Close())
		require.NoError(t, e.Close())
	})
	return r
}

// eraseUntil has a user erased by a server that dies ahead of one of its commands; it
// reports whether the server got that far.
func (r *rig) eraseUntil(t *testing.T, user string, ahead int) (died bool) {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	err := r.roll.Erase(context.WithValue(ctx, momentKey{}, &moment{ahead: ahead, what: die}), user)
	if ctx.Err() != nil {
		require.Error(t, err)
		return true
	}
	require.NoError(t, err)
	return false
}

// fans is more of them than one script takes away.
const fans = edgeStep + 10

// befriendAll gives a user fans, and has the user name all of them.
const befriendAll = `
local root, user, n = KEYS[1], ARGV[1], tonumber(ARGV[2])
local t = redis.call('TIME')
local stamp = math.max(tonumber(redis.call('HGET', root .. ':part', 'edgestamp') or 0) + 1, t[1] * 1000000 + t[2])
redis.call('HSET', root .. ':part', 'edgestamp', string.format('%.0f', stamp))
for i = 1, n do
  local fan = 'fan' .. i
  redis.call('ZADD', root .. ':f:' .. fan, 1, user)
  redis.call('ZADD', root .. ':r:' .. user, stamp, fan)
  redis.call('ZADD', root .. ':f:' .. user, 1, fan)
  redis.call('ZADD', root .. ':r:' .. fan, stamp, user)
  redis.call('ZADD', root .. ':x:' .. fan, stamp, '')
end
redis.call('HINCRBY', root .. ':part', 'edges', 2 * n)
return 1`

// much gives a user more of all than one script of an erasure takes away. It returns
// the first session, which lives.
func (r *rig) much(t *testing.T, user string) rollcall.LoggedIn {
	t.Helper()
	ctx := t.Context()
	for range endStep + 1 {
		in, err := r.roll.Login(ctx, rollcall.Login{User: user})
		require.NoError(t, err)
		_, err = r.roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID})
		require.NoError(t, err)
	}
	in, err := r.roll.Login(ctx, rollcall.Login{User: user, App: "a", Device: "web"})
	require.NoError(t, err)
	r.copies(t, user, endStep+2)
	name := "Name of " + user
	_, err = r.roll.PutUser(ctx, user, rollcall.UserPatch{Name: &name})
	require.NoError(t, err)
	r.do(t, "EVAL", befriendAll, "1", r.e.keyPrefixes[0], user, strconv.Itoa(fans))
	return in
}

// nowhere looks for a text in all keys but those that expire within a minute.
const nowhere = `
local found = {}
for _, k in ipairs(redis.call('KEYS', '*')) do
  local t, all, ttl = redis.call('TYPE', k).ok, {}, redis.call('PTTL', k)
  if ttl >= 0 and ttl <= 60000 then k, t = '', '' end
  if t == 'string' then all = {redis.call('GET', k)} end
  if t == 'hash' then all = redis.call('HGETALL', k) end
  if t == 'set' then all = redis.call('SMEMBERS', k) end
  if t == 'zset' then all = redis.call('ZRANGE', k, 0, -1) end
  if t == 'stream' then for _, e in ipairs(redis.call('XRANGE', k, '-', '+')) do all[#all + 1] = e[2][2] end end
  all[#all + 1] = k
  for _, v in ipairs(all) do
    if string.find(v, ARGV[1], 1, true) then found[#found + 1] = k end
  end
end
return table.concat(found, ' ')`

// requireErased requires that nothing names a user any more, and that one erasure of
// them was told.
func (r *rig) requireErased(t *testing.T, user string, live rollcall.LoggedIn, before int) {
	t.Helper()
	require.Empty(t, r.do(t, "EVAL", nowhere, "0", user))
	_, err := r.roll.Verify(t.Context(), rollcall.SessionRef{Token: live.Token})
	require.ErrorIs(t, err, rollcall.ErrSessionEnded)
	erased := r.events(t, rollcall.UserErased)
	require.Len(t, erased, before+1)
	require.Empty(t, erased[before].User)
}

// TestAnErasureThatIsCutShortAnywhereIsFinishedByTheUpkeep has the server that was asked
// die ahead of each of its scripts.
func TestAnErasureThatIsCutShortAnywhereIsFinishedByTheUpkeep(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	ctx := t.Context()
	died := true
	for ahead := 2; died; ahead++ { // nothing has happened ahead of the first one
		user := fmt.Sprintf("erased-%d-of-them", ahead)
		live := r.much(t, user)
		before := len(r.events(t, rollcall.UserErased))
		died = r.eraseUntil(t, user, ahead)
		if died {
			require.Equal(t, "1", r.do(t, "EXISTS", "rc:{0}:erasing"), "the note stands")
			require.NoError(t, r.e.Tick(ctx, r.clock.Now()))
			require.Equal(t, "1", r.do(t, "EXISTS", "rc:{0}:erasing"), "its server may be at it still")
			r.clock.Advance(6 * time.Second)
			r.tickUntil(t, "the erasure is finished", func() bool { return r.do(t, "EXISTS", "rc:{0}:erasing") == "0" })
		}
		r.requireErased(t, user, live, before)
		if !died {
			require.Greater(t, ahead, 20, "an erasure has many scripts")
		}
	}
}

// TestALoginDuringAnErasureIsThatOfANewUser has a user log in again after a server died
// ahead of each script of their erasure.
func TestALoginDuringAnErasureIsThatOfANewUser(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	ctx := t.Context()
	died := true
	for ahead := 2; died; ahead += 3 {
		user := fmt.Sprintf("erased-%d-of-them", ahead)
		old := r.much(t, user)
		died = r.eraseUntil(t, user, ahead)
		in, err := r.roll.Login(ctx, rollcall.Login{User: user})
		require.NoError(t, err)
		require.Empty(t, in.Session.Name)
		_, err = r.roll.Verify(ctx, rollcall.SessionRef{Token: old.Token})
		require.ErrorIs(t, err, rollcall.ErrSessionEnded)
		r.clock.Advance(6 * time.Second)
		r.tickUntil(t, "the erasure is finished", func() bool { return r.do(t, "EXISTS", "rc:{0}:erasing") == "0" })
		r.requireNew(t, user, in, nil)
	}
}

// requireNew requires that a user is as one login left them, and some fans.
func (r *rig) requireNew(t *testing.T, user string, in rollcall.LoggedIn, named []string) {
	t.Helper()
	ctx := t.Context()
	_, err := r.roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err)
	days, err := r.e.Days(ctx, user, "", rollcall.DayRange{From: r.roll.Today(), To: r.roll.Today()})
	require.NoError(t, err)
	require.Equal(t, []rollcall.Day{r.roll.Today()}, days)
	for _, fan := range named {
		list, err := r.e.friendsOf(ctx, 0, fan)
		require.NoError(t, err)
		require.Len(t, list.friends, 1, fan)
		require.Equal(t, user, list.friends[0].User)
	}
	require.Equal(t, strconv.Itoa(len(named)), r.do(t, "ZCARD", "rc:{0}:r:"+user))
	list, err := r.e.friendsOf(ctx, 0, user)
	require.NoError(t, err)
	require.Len(t, list.friends, len(named))
	var started []rollcall.SessionID
	for _, ev := range r.events(t, rollcall.SessionStarted) {
		if ev.User == user {
			started = append(started, ev.Session)
		}
	}
	require.Equal(t, []rollcall.SessionID{in.Session.ID}, started)
	require.Equal(t, "1", r.do(t, "ZCARD", "rc:{0}:u:"+user))
}

// TestAnErasureTakesNothingFromWhoCameAfterIt has one server stop ahead of each of the
// scripts of an erasure. Another one finishes it, the user logs in and has friends
// again, and then the first one goes on.
func TestAnErasureTakesNothingFromWhoCameAfterIt(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	ctx := t.Context()
	named := []string{"fan1", "fan2", fmt.Sprint("fan", fans)}
	for ahead, happened := 2, true; happened; ahead++ {
		user := fmt.Sprintf("erased-%d-of-them", ahead)
		r.much(t, user)
		var in rollcall.LoggedIn
		happened = false
		between := func() {
			happened = true
			require.NoError(t, r.e.Erase(ctx, r.clock.Now(), user, rollcall.BanKey{}))
			var err error
			in, err = r.roll.Login(ctx, rollcall.Login{User: user})
			require.NoError(t, err)
			for _, fan := range named {
				require.NoError(t, r.roll.AddFriends(ctx, user, true, rollcall.Friend{User: fan}))
			}
		}
		require.NoError(t, r.roll.Erase(context.WithValue(ctx, momentKey{}, &moment{ahead: ahead, what: between}), user))
		if happened {
			r.requireNew(t, user, in, named)
			require.NoError(t, r.roll.Erase(ctx, user)) // so that the fans are the next one's
		}
		require.Empty(t, r.do(t, "EVAL", nowhere, "0", user))
	}
}

// TestWhatAUserDoesWhileTheyAreErasedGoesWithThem has a user make a friend, be marked and
// have another name ahead of each script of their erasure, as long as they are there.
func TestWhatAUserDoesWhileTheyAreErasedGoesWithThem(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	ctx := t.Context()
	for ahead, there := 2, true; there; ahead++ {
		user := fmt.Sprintf("erased-%d-of-them", ahead)
		r.much(t, user)
		there = false
		between := func() {
			if there = r.do(t, "STRLEN", "rc:{0}:erasure:"+user) == strconv.Itoa(noteLen); !there {
				return
			}
			name := "another " + user
			_, err := r.roll.PutUser(ctx, user, rollcall.UserPatch{Name: &name})
			require.NoError(t, err)
			require.NoError(t, r.roll.AddFriends(ctx, user, false, rollcall.Friend{User: "other"}))
			_, _, err = r.roll.Mark(ctx, rollcall.Mark{User: user, Day: r.roll.Today() - 1})
			require.NoError(t, err)
		}
		require.NoError(t, r.roll.Erase(context.WithValue(ctx, momentKey{}, &moment{ahead: ahead, what: between}), user))
		require.Empty(t, r.do(t, "EVAL", nowhere, "0", user))
	}
}

// TestAnErasureOfANewUserIsNotThatOfTheOldOne has a server die when the user is removed, but
// still in the events. The user comes back, and is erased too.
func TestAnErasureOfANewUserIsNotThatOfTheOldOne(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	ctx := t.Context()
	for ahead := 2; ; ahead++ {
		user := fmt.Sprintf("erased-%d-of-them", ahead)
		r.much(t, user)
		require.True(t, r.eraseUntil(t, user, ahead))
		note := r.do(t, "GET", "rc:{0}:erasure:"+user)
		old, err := r.e.readErasure(r.clock.Now().UnixMilli(), user, note)
		require.NoError(t, err)
		if !old.userRemoved {
			require.NoError(t, r.e.Erase(ctx, r.clock.Now(), user, rollcall.BanKey{}))
			continue
		}
		in, err := r.roll.Login(ctx, rollcall.Login{User: user})
		require.NoError(t, err)
		before := len(r.events(t, rollcall.UserErased))
		require.NoError(t, r.roll.Erase(ctx, user))
		r.requireErased(t, user, in, before)

		// Whoever is late with the old one leaves the note of another alone.
		_, err = r.e.noteErasure(ctx, r.clock.Now().UnixMilli(), user, rollcall.BanKey{})
		require.NoError(t, err)
		require.NoError(t, old.redact(ctx))
		require.Equal(t, strconv.Itoa(noteLen), r.do(t, "STRLEN", "rc:{0}:erasure:"+user))
		return
	}
}

// TestTwoErasuresOfOneUserAreOne has them go on side by side, and both are answered
// when nothing is left.
func TestTwoErasuresOfOneUserAreOne(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	live := r.much(t, "alice-is-erased")
	answers := make(chan error, 2)
	for range cap(answers) {
		go func() { answers <- r.roll.Erase(t.Context(), "alice-is-erased") }()
	}
	require.NoError(t, <-answers)
	require.Empty(t, r.do(t, "EVAL", nowhere, "0", "alice-is-erased"))
	require.NoError(t, <-answers)
	require.NotEmpty(t, r.events(t, rollcall.UserErased))
	_, err := r.roll.Verify(t.Context(), rollcall.SessionRef{Token: live.Token})
	require.ErrorIs(t, err, rollcall.ErrSessionEnded)
}

// TestAnErasureThatIsCutShortEndsNoSessionOfAUserWhoIsStillThere looks between the
// scripts that forget ended sessions.
func TestAnErasureThatIsCutShortEndsNoSessionOfAUserWhoIsStillThere(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	ctx := t.Context()
	for range 2 * endStep {
		in, err := r.roll.Login(ctx, rollcall.Login{User: "alice"})
		require.NoError(t, err)
		_, err = r.roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID})
		require.NoError(t, err)
	}
	in, err := r.roll.Login(ctx, rollcall.Login{User: "alice"})
	require.NoError(t, err)
	ref := rollcall.SessionRef{Token: in.Token}
	require.True(t, r.eraseUntil(t, "alice", 5))
	require.Equal(t, strconv.Itoa(endStep), r.do(t, "ZCARD", "rc:{0}:e:alice"), "some of it is forgotten")
	_, err = r.roll.Verify(ctx, ref)
	require.NoError(t, err)

	require.NoError(t, r.roll.Erase(ctx, "alice"))
	_, err = r.roll.Verify(ctx, ref)
	require.ErrorIs(t, err, rollcall.ErrSessionEnded)
	require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:user:alice", "rc:{0}:e:alice", "rc:{0}:u:alice"))
}

// TestAnExportHoldsNoHalfErasedUser exports after an erasure was cut short.
func TestAnExportHoldsNoHalfErasedUser(t *testing.T) {
	t.Parallel()
	r := newMomentaryRig(t)
	r.much(t, "alice")
	require.True(t, r.eraseUntil(t, "alice", 8))
	for _, d := range export(t, r.e, r.clock.Now()) {
		require.NotEqual(t, "alice", d.User)
		require.Empty(t, d.Friends)
	}
}

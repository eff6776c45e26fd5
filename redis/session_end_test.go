package redis

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// rig is an engine on a clock of the test's own.
type rig struct {
	e     *Engine
	roll  *rollcall.Roll
	clock *rollcall.ManualClock
	s     *redistest.Server
	m     *meter
}

func newRig(t *testing.T, partitions int, o rollcall.Options) *rig {
	t.Helper()
	s := redistest.Start(t, redistest.Options{})
	m := newMeter(t)
	e, err := Open(t.Context(), Options{URL: s.URL(), Partitions: partitions, Timeout: 20 * time.Second, wrap: m.wrap})
	require.NoError(t, err)
	r := &rig{e: e, s: s, m: m, clock: rollcall.NewManualClock(time.Now().UTC().Truncate(time.Second))}
	o.Clock = r.clock
	r.roll, err = rollcall.New(e, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.roll.Close())
		require.NoError(t, e.Close())
	})
	return r
}

func (r *rig) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.s.Do(args...)
	require.NoError(t, err)
	return out
}

// copySessions gives a user ARGV[1] sessions, copies of the first.
const copySessions = `
local root, user = KEYS[1], ARGV[2]
local sid = redis.call('ZRANGE', root .. ':u:' .. user, 0, 0)[1]
local blob = redis.call('HGET', root .. ':sessions', sid)
local login = struct.unpack('>I6', sid)
for i = 1, tonumber(ARGV[1]) - 1 do
  local id = string.sub(sid, 1, 6) .. struct.pack('>I8', i) .. string.sub(sid, 15)
  redis.call('HSET', root .. ':sessions', id, blob)
  for _, k in ipairs({'u:' .. user, 'idle:1800000', 'by:app:a', 'by:device:web', 'by:kind:user'}) do
    redis.call('ZADD', root .. ':' .. k, login, id)
  end
end
redis.call('HINCRBY', root .. ':classes', struct.pack('Bc0Bc0Bc0', 4, 'user', 1, 'a', 3, 'web'), tonumber(ARGV[1]) - 1)
if tonumber(ARGV[1]) > 64 then
  redis.call('HINCRBY', root .. ':part', 'largeusers', 1)
  for _, id in ipairs(redis.call('ZRANGE', root .. ':u:' .. user, 0, -1)) do
    for _, k in ipairs({'us', 'ul:3:web', 'uc:3:web'}) do redis.call('ZADD', root .. ':' .. k .. ':' .. user, login, id) end
    redis.call('ZADD', root .. ':ui:' .. user, login + 1800000, id)
  end
end
return 1`

// copies gives a user of the one partition n sessions, copies of the first.
func (r *rig) copies(t *testing.T, user string, n int) {
	t.Helper()
	r.copiesIn(t, 0, user, n)
}

func (r *rig) copiesIn(t *testing.T, part int, user string, n int) {
	t.Helper()
	r.do(t, "EVAL", copySessions, "1", r.e.keyPrefixes[part], strconv.Itoa(n), user)
}

// events returns all events of some type.
func (r *rig) events(t *testing.T, typ rollcall.EventType) (out []rollcall.Event) {
	t.Helper()
	after := rollcall.EventID("")
	last, err := r.e.LastEvent(t.Context(), rollcall.ViewerAdmin)
	require.NoError(t, err)
	for after != last {
		some, err := r.e.Tail(t.Context(), rollcall.EventQuery{After: after, Limit: 1000, Viewer: rollcall.ViewerAdmin})
		require.NoError(t, err)
		after = some[len(some)-1].ID
		for _, ev := range some {
			if ev.Type == typ {
				out = append(out, ev)
			}
		}
	}
	return out
}

// requireEachOnce holds that n sessions ended with a cause, by one event each.
func requireEachOnce(t *testing.T, ended []rollcall.Event, n int, cause rollcall.Cause) {
	t.Helper()
	met := make(map[rollcall.SessionID]bool)
	for _, ev := range ended {
		require.Equal(t, cause, ev.Cause)
		require.False(t, met[ev.Session], "each session ends once")
		met[ev.Session] = true
	}
	require.Len(t, met, n)
}

// requireSteps requires that no script took as long, since the last call of slow, as
// one for all sessions would: ten times what scripts may take, as these ran once.
func (r *rig) requireSteps(t *testing.T) {
	t.Helper()
	name, spent := r.m.costliest()
	require.Less(t, spent, 10*slowScript, "processor time of Redis for %s", name)
}

const many = 3000

// TestAKickOfAUserWithVeryManySessionsEndsAllAtOnce has a user with thousands of
// sessions kicked, by device and whole, banned and erased.
func TestAKickOfAUserWithVeryManySessionsEndsAllAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		end   func(r *rig, in rollcall.LoggedIn) (rollcall.EndResult, error)
		ended int
		cause rollcall.Cause
	}{
		{"a user", func(r *rig, _ rollcall.LoggedIn) (rollcall.EndResult, error) {
			return r.roll.Kick(t.Context(), rollcall.Kick{User: "svc"})
		}, many, rollcall.CauseKicked},
		{"a device class", func(r *rig, _ rollcall.LoggedIn) (rollcall.EndResult, error) {
			return r.roll.Kick(t.Context(), rollcall.Kick{User: "svc", Device: "web"})
		}, many, rollcall.CauseKicked},
		{"all but one", func(r *rig, in rollcall.LoggedIn) (rollcall.EndResult, error) {
			return r.roll.Kick(t.Context(), rollcall.Kick{User: "svc", Except: in.Session.ID, Cause: rollcall.CauseLogout})
		}, many - 1, rollcall.CauseLogout},
		{"a ban", func(r *rig, _ rollcall.LoggedIn) (rollcall.EndResult, error) {
			return r.roll.Ban(t.Context(), "svc", time.Hour, "", "")
		}, many, rollcall.CauseBanned},
		{"an erasure", func(r *rig, _ rollcall.LoggedIn) (rollcall.EndResult, error) {
			return rollcall.EndResult{Ended: many}, r.roll.Erase(t.Context(), "svc")
		}, many, rollcall.CauseErased},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1, rollcall.Options{})
			in, err := r.roll.Login(t.Context(), rollcall.Login{User: "svc", App: "a", Device: "web"})
			require.NoError(t, err)
			r.copies(t, "svc", many)
			r.m.slow()

			res, err := c.end(r, in)
			require.NoError(t, err)
			require.Equal(t, c.ended, res.Ended)
			r.requireSteps(t)
			ended := r.events(t, rollcall.SessionEnded)
			if c.cause != rollcall.CauseErased {
				requireEachOnce(t, ended, c.ended, c.cause)
			}
			page, err := r.roll.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
			require.NoError(t, err)
			require.Equal(t, many-c.ended, page.Total)
			if c.cause != rollcall.CauseBanned {
				_, err = r.roll.Login(t.Context(), rollcall.Login{User: "svc"})
				require.NoError(t, err)
			}
		})
	}
}

// TestAnEndThatIsNotWrittenYetHoldsForEveryCommand stops between the note of an
// end and its writing, as a server that dies there does.
func TestAnEndThatIsNotWrittenYetHoldsForEveryCommand(t *testing.T) {
	t.Parallel()
	const n = 500
	begin := func(t *testing.T) (*rig, rollcall.LoggedIn) {
		r := newRig(t, 1, rollcall.Options{})
		require.NoError(t, r.roll.Tick(t.Context()))
		in, err := r.roll.Login(t.Context(), rollcall.Login{User: "svc", App: "a", Device: "web"})
		require.NoError(t, err)
		r.copies(t, "svc", n)
		c := rollcall.EndCommand{User: "svc", Cause: rollcall.CauseKicked, Reason: "stolen"}
		calls := r.e.endCalls(0, &partEnds{user: "svc"}, &c)
		_, err = r.e.do(t.Context(), r.clock.Now().UnixMilli(), calls...)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(n), r.do(t, "HLEN", "rc:{0}:sessions"), "the ends are to be written yet")
		return r, in
	}
	t.Run("reads and touches", func(t *testing.T) {
		r, in := begin(t)
		ctx := t.Context()
		for _, ref := range []rollcall.SessionRef{{Token: in.Token}, {ID: in.Session.ID}} {
			_, err := r.roll.Verify(ctx, ref)
			require.Equal(t, rollcall.CodeSessionEnded, rollcall.CodeOf(err))
			_, err = r.roll.Touch(ctx, ref)
			require.Equal(t, rollcall.CodeSessionEnded, rollcall.CodeOf(err))
		}
		s, err := r.roll.Session(ctx, in.Session.ID)
		require.NoError(t, err)
		require.Equal(t, "stolen", s.End.Reason)
		require.Equal(t, rollcall.CauseKicked, s.End.Cause)
		status, err := r.roll.Status(ctx, "svc")
		require.NoError(t, err)
		require.False(t, status[0].Online)
		require.Zero(t, status[0].Sessions)
		require.Len(t, r.events(t, rollcall.UserOffline), 1)
	})
	t.Run("a list", func(t *testing.T) {
		r, _ := begin(t)
		page, err := r.roll.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10}})
		require.NoError(t, err)
		require.Zero(t, page.Total)
		require.Empty(t, page.Items)
		requireEachOnce(t, r.events(t, rollcall.SessionEnded), n, rollcall.CauseKicked)
	})
	t.Run("a login", func(t *testing.T) {
		r, _ := begin(t)
		in, err := r.roll.Login(t.Context(), rollcall.Login{User: "svc"})
		require.NoError(t, err)
		_, err = r.roll.Verify(t.Context(), rollcall.SessionRef{Token: in.Token})
		require.NoError(t, err)
		requireEachOnce(t, r.events(t, rollcall.SessionEnded), n, rollcall.CauseKicked)
	})
	t.Run("another kick", func(t *testing.T) {
		r, _ := begin(t)
		res, err := r.roll.Kick(t.Context(), rollcall.Kick{User: "svc"})
		require.NoError(t, err)
		require.Zero(t, res.Ended, "all had ended")
		requireEachOnce(t, r.events(t, rollcall.SessionEnded), n, rollcall.CauseKicked)
	})
	t.Run("an erasure", func(t *testing.T) {
		r, in := begin(t)
		require.NoError(t, r.roll.Erase(t.Context(), "svc"))
		_, err := r.roll.Verify(t.Context(), rollcall.SessionRef{Token: in.Token})
		require.Equal(t, rollcall.CodeUnauthenticated, rollcall.CodeOf(err))
		require.NotContains(t, strings.Join(r.s.Keys(), " "), "svc")
	})
	t.Run("a sweep", func(t *testing.T) {
		r, _ := begin(t)
		require.Eventually(t, func() bool {
			require.NoError(t, r.roll.Tick(t.Context()))
			return r.do(t, "HLEN", "rc:{0}:sessions") == "0"
		}, time.Minute, time.Millisecond, "sweeps write the ends")
		requireEachOnce(t, r.events(t, rollcall.SessionEnded), n, rollcall.CauseKicked)
		require.Equal(t, "0", r.do(t, "EXISTS", "rc:{0}:cutoffs", "rc:{0}:cutoff:svc"))
	})
}

// TestAKickByFilterGoesOnWhenAPageIsEmpty has matches behind more sessions than
// one look at names takes in.
func TestAKickByFilterGoesOnWhenAPageIsEmpty(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	r.e.maxCandidates = 20
	ctx := t.Context()
	var refs []rollcall.SessionRef
	for i := range 200 {
		l := rollcall.Login{User: fmt.Sprint("u", i), Name: "Bob"}
		if i%90 == 50 {
			l.Name = "Mallory"
		}
		in, err := r.roll.Login(ctx, l)
		require.NoError(t, err)
		if l.Name == "Mallory" {
			refs = append(refs, rollcall.SessionRef{Token: in.Token})
		}
		r.clock.Advance(time.Millisecond)
	}
	res, err := r.roll.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{Name: "mallory"}, Ban: time.Hour})
	require.NoError(t, err)
	require.Equal(t, len(refs), res.Ended)
	for _, ref := range refs {
		_, err := r.roll.Verify(ctx, ref)
		require.Equal(t, rollcall.CodeSessionEnded, rollcall.CodeOf(err))
	}
}

// TestAKickCutShortSaysHowManyEnded has one of several partitions fail.
func TestAKickCutShortSaysHowManyEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 4, rollcall.Options{})
	ctx := t.Context()
	for i := range 100 {
		_, err := r.roll.Login(ctx, rollcall.Login{User: fmt.Sprint("u", i), App: "x"})
		require.NoError(t, err)
	}
	r.do(t, "SET", r.e.of(2, "bans"), "no hash")
	res, err := r.roll.Kick(ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{App: "x"}, Ban: time.Hour})
	require.Error(t, err)
	left := 0
	for p := range 4 {
		n, err := strconv.Atoi(r.do(t, "HLEN", r.e.of(p, "sessions")))
		require.NoError(t, err)
		if p != 2 { // what became of that step nobody can say
			left += n
			require.Zero(t, n)
		}
	}
	require.Positive(t, res.Ended)
	require.Len(t, res.Sessions, min(res.Ended, maxNamed))
	r.do(t, "DEL", r.e.of(2, "bans"))
}

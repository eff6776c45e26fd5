package redis_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/redis"
)

// timeout is how long a command may take in these tests. A command that has no end
// runs into bound; one that has ends long before, also on a machine that is slow
// and busy.
const (
	timeout = 2 * time.Second
	bound   = time.Minute
)

// patience is how long a test waits for what is going to happen.
const patience = 2 * time.Minute

// topology is a Redis that can fail over, and the master that a fault hits.
type topology struct {
	url    string
	master *redistest.Node
	whole  func() // returns once all is as it was
}

func startCluster(t *testing.T) topology {
	c := redistest.StartCluster(t, redistest.Options{User: minimal(t), Proxied: true})
	return topology{c.URL(), c.MasterOf("rc:{0}:part"), c.Await}
}

func startSentinel(t *testing.T) topology {
	s := redistest.StartSentinel(t, redistest.Options{User: minimal(t), Proxied: true})
	return topology{s.URL(), s.Master(), func() {}}
}

// TestFailover lets the master of a partition fail under load: it is killed,
// frozen, or cut off. Every command has to end in time, those that cannot be
// answered with CodeUnavailable; then all works again without anyone's doing.
// What was acknowledged and is not there in the end is counted and printed: the
// promise is Redis's, and no test can make it another one. A frozen master is waited
// for without a replica's answer in a long run only.
func TestFailover(t *testing.T) {
	t.Parallel()
	frozenWaits := []int{1}
	if testbudget.Long() {
		frozenWaits = []int{0, 1}
	}
	for _, where := range []struct {
		name  string
		start func(*testing.T) topology
	}{{"cluster", startCluster}, {"sentinel", startSentinel}} {
		for _, fault := range []struct {
			name        string
			begin, heal func(*redistest.Node)
			wait        []int
		}{
			{"killed", (*redistest.Node).Kill, (*redistest.Node).Restart, []int{0, 1}},
			{"frozen", (*redistest.Node).Stop, (*redistest.Node).Continue, frozenWaits},
			{
				"cut off", func(n *redistest.Node) { n.Proxy().BlackHole() },
				func(n *redistest.Node) { n.Proxy().Heal() },
				[]int{0},
			},
		} {
			for _, wait := range fault.wait {
				t.Run(fmt.Sprintf("%s %s wait %d", where.name, fault.name, wait), func(t *testing.T) {
					t.Parallel()
					top := where.start(t)
					roll := open(t, redis.Options{URL: top.url, Timeout: timeout, Wait: wait})
					l := load(t, roll)
					l.until("there is load", func() bool { return l.logins.Load() > 100 })

					began := time.Now()
					fault.begin(top.master)
					var felt error
					l.until("the fault is felt", func() bool {
						felt = roll.Ready(t.Context())
						return felt != nil
					})
					require.ErrorIs(t, felt, rollcall.ErrUnavailable)
					healed := fault.name == "cut off" && where.name == "cluster" // the nodes see each other: nobody is promoted
					if healed {
						fault.heal(top.master)
					}
					l.until("all partitions answer", l.works)
					away := time.Since(began)
					if !healed {
						fault.heal(top.master)
					}
					l.stop()
					top.whole()
					l.until("all partitions answer", l.works)
					lost, revived := l.judge()
					t.Logf("away %.1f s; %d logins acknowledged, %d lost; %d kicks acknowledged, %d undone; %d commands failed, the longest command took %.1f s",
						away.Seconds(), len(l.live)+len(l.kicked), lost, len(l.kicked), revived, l.failed.Load(), l.longest.Seconds())
					require.Less(t, l.longest, bound)
				})
			}
		}
	}
}

// loader logs users in, verifies and kicks them, and keeps a journal of what
// was acknowledged.
type loader struct {
	t      *testing.T
	roll   *rollcall.Roll
	ctx    context.Context
	end    context.CancelFunc
	work   sync.WaitGroup
	logins atomic.Int64
	failed atomic.Int64

	mu           sync.Mutex
	longest      time.Duration
	live, kicked []rollcall.SessionRef
}

// Workers of the load, and how often each begins a session: several tests under load
// run side by side.
const (
	loadWorkers = 4
	loadEvery   = 20 * time.Millisecond
)

func load(t *testing.T, roll *rollcall.Roll) *loader {
	l := &loader{t: t, roll: roll}
	l.ctx, l.end = context.WithCancel(t.Context())
	t.Cleanup(l.stop)
	for w := range loadWorkers {
		l.work.Go(func() {
			pace := time.NewTicker(loadEvery)
			defer pace.Stop()
			for i := 0; l.ctx.Err() == nil; i++ {
				l.one(fmt.Sprintf("user-%d-%d", w, i), i%3 == 0)
				select {
				case <-pace.C:
				case <-l.ctx.Done():
				}
			}
		})
	}
	return l
}

func (l *loader) stop() {
	l.end()
	l.work.Wait()
}

// one is the life of a session.
func (l *loader) one(user string, kick bool) {
	in, ok := timed(l, func() (rollcall.LoggedIn, error) { return l.roll.Login(l.t.Context(), rollcall.Login{User: user}) })
	if !ok {
		return
	}
	l.logins.Add(1)
	ref := rollcall.SessionRef{Token: in.Token}
	timed(l, func() (rollcall.Session, error) { return l.roll.Verify(l.t.Context(), ref) })
	if kick {
		_, kick = timed(l, func() (rollcall.EndResult, error) {
			return l.roll.Kick(l.t.Context(), rollcall.Kick{Session: in.Session.ID})
		})
		if !kick { // nobody knows
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if kick {
		l.kicked = append(l.kicked, ref)
	} else {
		l.live = append(l.live, ref)
	}
}

// timed runs a command. It may fail, in time, as unavailable; a session that a
// failover lost is told by the journal in the end.
func timed[T any](l *loader, run func() (T, error)) (T, bool) {
	began := time.Now()
	v, err := run()
	took := time.Since(began)
	l.mu.Lock()
	l.longest = max(l.longest, took)
	l.mu.Unlock()
	if err != nil {
		l.failed.Add(1)
		switch code := rollcall.CodeOf(err); code {
		case rollcall.CodeUnavailable, rollcall.CodeUnauthenticated, rollcall.CodeNotFound:
		default:
			l.t.Errorf("a fault shows as %q: %v", code, err)
		}
	}
	return v, err == nil
}

func (l *loader) until(what string, holds func() bool) {
	l.t.Helper()
	require.Eventually(l.t, holds, patience, 100*time.Millisecond, what)
}

// works reports whether every partition reads and writes.
func (l *loader) works() bool {
	var users []string
	for i := range 600 { // some in every partition
		users = append(users, fmt.Sprint("probe", i))
	}
	return l.roll.Beat(l.t.Context(), users...) == nil && l.roll.Ready(l.t.Context()) == nil
}

// judge counts the acknowledged logins that are no more, and the kicks undone.
func (l *loader) judge() (lost, revived int) {
	live := func(refs []rollcall.SessionRef) (n int) {
		for some := range slices.Chunk(refs, 1000) {
			var out []rollcall.Touched
			l.until("all sessions are touched", func() (ok bool) {
				var err error
				out, err = l.roll.TouchAll(l.t.Context(), some)
				return err == nil
			})
			for _, o := range out {
				if o.Live {
					n++
				}
			}
		}
		return n
	}
	return len(l.live) - live(l.live), live(l.kicked)
}

// TestOutOfReach cuts a single server off: reads and writes fail closed and in
// time, and go on when it is back.
func TestOutOfReach(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t), Proxied: true})
	roll := open(t, redis.Options{URL: s.URL(), Timeout: time.Second})
	var in rollcall.LoggedIn
	require.Eventually(t, func() bool {
		var err error
		in, err = roll.Login(t.Context(), rollcall.Login{User: "alice", RetryKey: "once"})
		return err == nil
	}, patience, 10*time.Millisecond, "a login is in time")
	ref := rollcall.SessionRef{Token: in.Token}
	for name, fault := range map[string]func(){"black hole": s.Proxy().BlackHole, "cut": s.Proxy().Cut} {
		fault()
		began := time.Now()
		_, err := roll.Verify(t.Context(), ref)
		require.ErrorIs(t, err, rollcall.ErrUnavailable, name)
		_, err = roll.Touch(t.Context(), ref)
		require.ErrorIs(t, err, rollcall.ErrUnavailable, name)
		require.ErrorIs(t, roll.Ready(t.Context()), rollcall.ErrUnavailable, name)
		require.Less(t, time.Since(began), bound, name)
		s.Proxy().Heal()
		require.Eventually(t, func() bool {
			_, err := roll.Verify(t.Context(), ref)
			return err == nil && roll.Ready(t.Context()) == nil
		}, patience, 10*time.Millisecond, "all works again after the %s", name)
	}
}

// TestScriptsAreLoadedAgain takes the scripts away under a running engine.
func TestScriptsAreLoadedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t)})
	roll := open(t, redis.Options{URL: s.URL()})
	for range 5 {
		_, err := s.Do("SCRIPT", "FLUSH")
		require.NoError(t, err)
		_, err = roll.Login(t.Context(), rollcall.Login{User: "alice"})
		require.NoError(t, err)
		_, err = s.Do("SCRIPT", "FLUSH")
		require.NoError(t, err)
		require.NoError(t, roll.Beat(t.Context(), "alice", "bob"))
	}
	page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10}})
	require.NoError(t, err)
	require.Len(t, page.Items, 5, "no login was done twice")
}

// TestScriptsThatCannotBeLoadedAgainAreAFaultOfRedis takes the scripts and the right
// to load them away. What waits for replicas goes another way to Redis.
func TestScriptsThatCannotBeLoadedAgainAreAFaultOfRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t)})
	for _, wait := range []int{0, 1} {
		roll := open(t, redis.Options{URL: s.URL(), Wait: wait, Timeout: time.Second})
		_, err := s.Do("ACL", "SETUSER", "rollcall", "-script")
		require.NoError(t, err)
		_, err = s.Do("SCRIPT", "FLUSH")
		require.NoError(t, err)
		_, err = roll.Login(t.Context(), rollcall.Login{User: "alice"})
		require.Equal(t, rollcall.CodeUnavailable, rollcall.CodeOf(err), "%v", err)
		require.NotContains(t, err.Error(), "\n", "one cause is enough")
		_, err = s.Do("ACL", "SETUSER", "rollcall", "+script")
		require.NoError(t, err)
	}
}

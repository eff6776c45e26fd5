package e2e

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func secretOf(t *testing.T, text string) []byte {
	t.Helper()
	secret, err := hex.DecodeString(text)
	require.NoError(t, err)
	return secret
}

// patience is how long a test waits for what is going to happen, also on a machine
// that is slow and busy.
const patience = 2 * time.Minute

// TestServers runs three servers on one Cluster.
func TestServers(t *testing.T) {
	binary := buildBinary(t)
	on := sharedCluster(t)
	for _, c := range []struct {
		name     string
		policies string
		test     func(*fleet)
	}{
		{"a limit holds across them", `[{"max_sessions": 3}, {"app": "strict", "max_sessions": 3, "overflow": "reject"}]`, limitAcross},
		{"an end on one is an end on all", `[]`, endAcross},
		{"an end wins against touches everywhere", `[]`, endAgainstTouches},
		{"each tells all events in order", `[{"max_per_device": 2}]`, eventsAcross},
		{"the death of one is nothing to the others", `[{"device": "tv", "idle_timeout": "2s"}]`, deathOfOne},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(startFleet(t, binary, on, 3, "--policies", c.policies)) })
	}
}

// limitAcross logs a user in 100 times at once.
func limitAcross(f *fleet) {
	const logins, limit = 100, 3
	for round := range testbudget.Rounds(f.t, testbudget.Budget{Least: 2, Most: 5, Time: time.Second}) {
		for _, app := range []string{"", "strict"} {
			user := fmt.Sprint("user ", app, round)
			answers, refused := f.loginAtOnce(logins, map[string]any{"user": user, "app": app})
			if app == "strict" {
				require.Equal(f.t, logins-limit, refused)
			} else {
				require.Zero(f.t, refused)
			}
			f.requireLeft(user, limit, answers)
		}
	}
}

// loginAtOnce logs in many times at once, all servers taking part, and says how
// many logins were refused for want of room.
func (f *fleet) loginAtOnce(logins int, body map[string]any) (answers []loginAnswer, refused int) {
	f.t.Helper()
	all, statuses, faults := make([]loginAnswer, logins), make([]int, logins), make([]error, logins)
	var asked sync.WaitGroup
	for i := range all {
		asked.Go(func() { statuses[i], all[i], faults[i] = f.servers[i%len(f.servers)].login(body) })
	}
	asked.Wait()
	for i, status := range statuses {
		require.NoError(f.t, faults[i])
		if status == http.StatusConflict {
			require.Equal(f.t, rollcall.CodeSessionLimit, all[i].Code)
			refused++
			continue
		}
		require.Equal(f.t, http.StatusCreated, status, "%v", all[i])
		answers = append(answers, all[i])
	}
	return answers, refused
}

// requireLeft expects that of a user's logins so many are left, and that lists,
// verification and what the logins were told agree on which, on every server.
func (f *fleet) requireLeft(user string, left int, answers []loginAnswer) {
	f.t.Helper()
	want := f.servers[0].listed(user)
	require.Len(f.t, want, left)
	replaced := map[string]int{}
	for _, a := range answers {
		for _, e := range a.Ended {
			require.Equal(f.t, rollcall.CauseReplaced, e.Cause)
			replaced[e.ID]++
		}
	}
	require.Len(f.t, replaced, len(answers)-left, "each but the last ones was ended by a login")
	for id, n := range replaced {
		require.Equal(f.t, 1, n, "%s was ended once", id)
	}
	for i, s := range f.servers {
		require.Equal(f.t, want, s.listed(user), "server %d", i)
		for _, a := range answers {
			state, err := s.stateOf(a.Token)
			require.NoError(f.t, err)
			if replaced[a.Session.ID] == 1 {
				require.Equal(f.t, "replaced", state)
			} else {
				require.Equal(f.t, "live", state)
				require.Contains(f.t, want, a.Session.ID)
			}
		}
	}
}

// endAcross ends a session through one server, in one way after the other, and
// asks the others at once.
func endAcross(f *fleet) {
	for round := range testbudget.Rounds(f.t, testbudget.Budget{Least: 60, Most: 240, Time: 300 * time.Millisecond}) {
		one, two, three := f.servers[round%3], f.servers[(round+1)%3], f.servers[(round+2)%3]
		user := fmt.Sprint("user-", round%40)
		status, in, err := one.login(map[string]any{"user": user, "device": "web"})
		require.NoError(f.t, err)
		require.Equal(f.t, http.StatusCreated, status)
		for _, s := range f.servers { // whatever a server may remember, it has now
			state, err := s.stateOf(in.Token)
			require.NoError(f.t, err)
			require.Equal(f.t, "live", state)
		}
		kick := func(body map[string]any) request {
			return request{method: http.MethodPost, path: "/v1/kicks", body: body}
		}
		ways := []struct {
			request
			cause rollcall.Cause
		}{
			{kick(map[string]any{"session": in.Session.ID}), rollcall.CauseKicked},
			{kick(map[string]any{"user": user}), rollcall.CauseKicked},
			{kick(map[string]any{"user": user, "device": "web"}), rollcall.CauseKicked},
			{kick(map[string]any{"filter": map[string]any{"users": []string{user}}}), rollcall.CauseKicked},
			{request{method: http.MethodDelete, path: "/v1/sessions/" + in.Session.ID}, rollcall.CauseLogout},
			{request{method: http.MethodPut, path: "/v1/bans/" + user, body: map[string]any{"duration": "1h"}}, rollcall.CauseBanned},
			{request{method: http.MethodDelete, path: "/v1/me/sessions/" + in.Session.ID, token: in.Token}, rollcall.CauseLogout},
			{request{method: http.MethodDelete, path: "/v1/users/" + user}, rollcall.CauseErased},
		}
		way := ways[round%len(ways)]
		two.get(nil, way.request, http.StatusOK, http.StatusNoContent)
		for _, s := range []*server{three, one, two} {
			require.Equal(f.t, http.StatusUnauthorized, s.get(nil, request{method: http.MethodPost, path: "/v1/touch", token: in.Token}, http.StatusUnauthorized))
			state, err := s.stateOf(in.Token)
			require.NoError(f.t, err)
			require.Equal(f.t, string(way.cause), state, "%s", way)
			require.NotContains(f.t, s.listed(user), in.Session.ID)
		}
		if way.cause == rollcall.CauseBanned {
			status, _, err := three.login(map[string]any{"user": user})
			require.NoError(f.t, err)
			require.Equal(f.t, http.StatusForbidden, status)
			one.get(nil, request{method: http.MethodDelete, path: "/v1/bans/" + user}, http.StatusNoContent)
		}
	}
}

// endAgainstTouches kicks while every server is touching: what was kicked is
// never live again, for nobody.
func endAgainstTouches(f *fleet) {
	for round := range testbudget.Rounds(f.t, testbudget.Budget{Least: 30, Most: 300, Time: 300 * time.Millisecond}) {
		_, in, err := f.servers[round%3].login(map[string]any{"user": fmt.Sprint("user-", round)})
		require.NoError(f.t, err)
		kicked := make(chan struct{})
		faults := make([]error, 6)
		var all sync.WaitGroup
		for i := range faults {
			all.Go(func() { faults[i] = touchUntil(f.servers[i%3], in.Token, kicked) })
		}
		f.servers[(round+1)%3].get(nil, request{method: http.MethodPost, path: "/v1/kicks", body: map[string]any{"session": in.Session.ID}}, http.StatusOK)
		close(kicked)
		all.Wait()
		require.NoError(f.t, errors.Join(faults...))
	}
}

// touchUntil touches until one touch that began after the kick has failed.
func touchUntil(s *server, token string, kicked <-chan struct{}) error {
	for {
		over := false
		select {
		case <-kicked:
			over = true
		default:
		}
		status, text, err := s.call(request{method: http.MethodPost, path: "/v1/touch", token: token})
		switch {
		case err != nil:
			return err
		case over && status != http.StatusUnauthorized:
			return fmt.Errorf("touched after the kick: status %d: %s", status, text)
		case over:
			return nil
		}
	}
}

// deathOfOne kills one of the servers in the middle of their work.
func deathOfOne(f *fleet) {
	ctx, cancel := context.WithCancel(f.t.Context())
	roll := f.roll()
	events := follow(ctx, roll)
	defer func() { cancel(); <-events.done }()

	victim := f.servers[2]
	_, on, err := victim.login(map[string]any{"user": "stays"})
	require.NoError(f.t, err)
	_, short, err := victim.login(map[string]any{"user": "silent", "device": "tv"})
	require.NoError(f.t, err)

	stop := make(chan struct{})
	faults, done := make([]error, 4), make([]int, 4)
	var all sync.WaitGroup
	for i := range faults {
		all.Go(func() { done[i], faults[i] = workUntil(f.servers[i%2], fmt.Sprint("worker-", i), stop) })
	}
	var lost sync.WaitGroup
	lost.Go(func() { _, _ = workUntil(victim, "lost", stop) }) // under way when the server goes
	require.Eventually(f.t, func() bool {
		return events.has(func(e rollcall.Event) bool { return e.User == "lost" })
	}, patience, 10*time.Millisecond, "the server that is to die is at work")
	victim.kill()
	lost.Wait()

	// Upkeep goes on without the one: its partitions find another server.
	require.Eventually(f.t, func() bool {
		return events.has(func(e rollcall.Event) bool {
			return e.Type == rollcall.SessionEnded && e.Session.String() == short.Session.ID && e.Cause == rollcall.CauseExpired
		})
	}, patience, 50*time.Millisecond, "a session ends with its event though the server it began on is gone")
	close(stop)
	all.Wait()
	require.NoError(f.t, errors.Join(faults...))
	for i, s := range f.servers[:2] {
		require.Greater(f.t, done[i], 10)
		state, err := s.stateOf(on.Token)
		require.NoError(f.t, err)
		require.Equal(f.t, "live", state)
		s.get(nil, request{method: http.MethodGet, path: "/readyz"}, http.StatusOK)
	}
}

// workUntil logs in, touches and signs out, and reports the first answer that
// is not as it should be, and how many were.
func workUntil(s *server, user string, stop <-chan struct{}) (done int, err error) {
	for {
		select {
		case <-stop:
			return done, nil
		default:
		}
		status, in, err := s.login(map[string]any{"user": user})
		if err != nil || status != http.StatusCreated {
			return done, fmt.Errorf("login: status %d: %w", status, err)
		}
		for _, r := range []request{
			{method: http.MethodPost, path: "/v1/touch", token: in.Token},
			{method: http.MethodGet, path: "/v1/verify", token: in.Token},
			{method: http.MethodDelete, path: "/v1/sessions/" + in.Session.ID},
		} {
			if status, text, err := s.call(r); err != nil || status != http.StatusOK {
				return done, fmt.Errorf("%s: status %d: %s: %w", r, status, text, err)
			}
		}
		done++
	}
}

// eventsAcross has users do things through all servers in turn, while three
// readers follow the events.
func eventsAcross(f *fleet) {
	ctx, cancel := context.WithCancel(f.t.Context())
	tails := make([]*tail, 3)
	for i := range tails {
		tails[i] = follow(ctx, f.roll())
	}
	defer func() {
		cancel()
		for _, t := range tails {
			<-t.done
		}
	}()
	people := make([]*scriptedUser, 12)
	var all sync.WaitGroup
	for i := range people {
		p := newProtagonist(fmt.Sprint("user-", i), rand.New(rand.NewPCG(9, uint64(i))))
		people[i] = p
		all.Go(func() { p.fault = p.act(f.servers, 40) })
	}
	all.Wait()
	for _, p := range people {
		require.NoError(f.t, p.fault)
	}
	for i, t := range tails {
		for _, p := range people {
			require.EventuallyWithT(f.t, func(c *assert.CollectT) { require.NoError(c, p.check(t.of(p.user))) },
				patience, 20*time.Millisecond, "reader %d, %s", i, p.user)
		}
		require.Equal(f.t, tails[0].ids(), t.ids(), "reader %d", i)
	}
}

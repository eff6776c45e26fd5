package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// worker does one action after the other to users of its own, so that what it was
// told about each user is in the order in which it happened.
type worker struct {
	chooser
	accounts []*account
	doubtful map[string]action   // by user: asked for and not answered
	asked    map[string]struct{} // ended sessions that were asked for after a restart
	answered int
	done     int // doubtful actions that turned out to have happened
	undone   int // and those that had not
	fault    error
}

const (
	workers        = 8
	usersPerWorker = 4
)

func newWorkers(seed uint64, day rollcall.Day) []*worker {
	out := make([]*worker, workers)
	for i := range out {
		w := &worker{
			chooser:  chooser{rng: rand.New(rand.NewPCG(seed, uint64(i))), today: day},
			doubtful: map[string]action{}, asked: map[string]struct{}{},
		}
		for j := range usersPerWorker {
			w.accounts = append(w.accounts, newAccount(fmt.Sprintf("user-%d-%d", i, j)))
		}
		out[i] = w
	}
	return out
}

// storm works until the server answers no more. An answer that contradicts the
// account is a fault.
func (w *worker) storm(s *server) {
	for {
		a := w.accounts[w.rng.IntN(len(w.accounts))]
		d := w.next(a)
		status, body, err := s.call(d.request)
		if err != nil {
			w.doubtful[a.user] = d
			return
		}
		w.answered++
		if w.fault = w.note(a, d, status, body); w.fault != nil {
			return
		}
	}
}

// note enters an answer into the account.
func (w *worker) note(a *account, d action, status int, body []byte) error {
	if status != d.status {
		return fmt.Errorf("%s: status %d instead of %d: %s", d, status, d.status, body)
	}
	if d.effect == nil {
		return nil
	}
	var answer struct {
		Session struct {
			ID      string
			LoginAt time.Time `json:"login_at"`
		}
		Token string
	}
	if d.begins {
		if err := json.Unmarshal(body, &answer); err != nil {
			return fmt.Errorf("%s: %w: %s", d, err, body)
		}
	}
	d.effect(a, login{id: answer.Session.ID, token: answer.Token, loginAt: answer.Session.LoginAt})
	return nil
}

// look asks the server for all it knows of an account, and returns the logins
// in its list as well.
func (s *server) look(a *account, day rollcall.Day) (view, map[string]login) {
	s.t.Helper()
	v := view{Live: map[string]string{}, Friends: map[string]bool{}, Days: map[rollcall.Day]bool{}}
	logins := map[string]login{}
	var sessions struct {
		Total int
		Items []struct {
			ID, Device string
			LoginAt    time.Time `json:"login_at"`
		}
	}
	s.get(&sessions, request{method: "GET", path: "/v1/sessions?limit=1000&user=" + a.user}, http.StatusOK)
	require.Len(s.t, sessions.Items, sessions.Total)
	for _, item := range sessions.Items {
		v.Live[item.ID] = item.Device
		logins[item.ID] = login{id: item.ID, loginAt: item.LoginAt}
	}
	v.Banned = s.get(nil, request{method: "GET", path: "/v1/bans/" + a.user}, http.StatusOK, http.StatusNotFound) == http.StatusOK
	var friends struct{ Items []struct{ User string } }
	s.get(&friends, request{method: "GET", path: "/v1/users/" + a.user + "/friends?limit=1000"}, http.StatusOK)
	for _, f := range friends.Items {
		v.Friends[f.User] = true
	}
	var attended struct{ Days []rollcall.Day }
	s.get(&attended, request{
		method: "GET", path: fmt.Sprintf("/v1/attendance/users/%s?from=%s&to=%s", a.user, day-60, day+2),
	}, http.StatusOK)
	for _, d := range attended.Days {
		v.Days[d] = true
	}
	return v, logins
}

// settle compares the account with what the server knows. An action that was not
// answered has happened whole or not at all; which of the two is entered.
func (w *worker) settle(s *server, a *account) *account {
	s.t.Helper()
	seen, logins := s.look(a, w.today)
	d, open := w.doubtful[a.user]
	if !open || d.effect == nil {
		require.Equal(s.t, a.view(), seen, "%s", a.user)
		return a
	}
	var begun login
	for id, l := range logins {
		if _, known := a.live[id]; !known {
			begun = l
		}
	}
	after := a.clone()
	if !d.begins || begun.id != "" {
		d.effect(after, begun)
	}
	if reflect.DeepEqual(seen, after.view()) {
		w.done++
		return after
	}
	w.undone++
	require.Equal(s.t, a.view(), seen, "%s after %s, which was not answered and is neither undone nor done", a.user, d)
	return a
}

// verify settles every account and asks for its sessions: all that live, and
// those that are over and were not asked for before, or all of them.
func (w *worker) verify(s *server, all bool) {
	s.t.Helper()
	byToken, byID := map[string]rollcall.Cause{}, map[string]rollcall.Cause{}
	for i, a := range w.accounts {
		a = w.settle(s, a)
		w.accounts[i] = a
		for id, seat := range a.live {
			r := request{method: "GET", path: "/v1/verify", token: seat.token}
			if seat.token == "" {
				r = request{method: "POST", path: "/v1/verify", body: map[string]any{"session": id}}
			}
			s.get(nil, r, http.StatusOK)
		}
		for id, e := range a.ended {
			if _, old := w.asked[id]; old && !all {
				continue
			}
			w.asked[id] = struct{}{}
			byID[id] = e.cause
			if e.token != "" {
				byToken[e.token] = e.cause
			}
		}
	}
	s.requireEnded("tokens", byToken)
	s.requireEnded("sessions", byID)
	clear(w.doubtful)
}

// TestKillNine kills a server at a random moment of a storm, again and again
// over the same data. What was acknowledged is there each time, what was ended
// stays ended, and what was under way has happened whole or not at all.
func TestKillNine(t *testing.T) {
	t.Parallel()
	const seed = 20260203
	binary, dir := buildBinary(t), t.TempDir()
	moments := rand.New(rand.NewPCG(seed, workers))
	team := newWorkers(seed, today(time.Now()))
	s := start(t, binary, dir)
	rounds := 0
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 8, Most: 50, Time: 3 * time.Second}) {
		rounds++
		stormUntilKilled(s, team, 50*time.Millisecond+time.Duration(moments.Int64N(int64(250*time.Millisecond))))
		requireSound(t, binary, dir)
		s = start(t, binary, dir)
		for _, w := range team {
			require.NoError(t, w.fault, "round %d", round)
			w.verify(s, round%20 == 10)
		}
	}
	for _, w := range team {
		w.verify(s, true)
	}
	s.kill()
	requireStormy(t, team, rounds)
}

func stormUntilKilled(s *server, team []*worker, after time.Duration) {
	s.t.Helper()
	var all sync.WaitGroup
	for _, w := range team {
		all.Go(func() { w.storm(s) })
	}
	moment := time.NewTimer(after)
	defer moment.Stop()
	<-moment.C
	s.kill()
	all.Wait()
}

// requireStormy makes sure that there was something to lose.
func requireStormy(t *testing.T, team []*worker, rounds int) {
	t.Helper()
	answered, done, undone, causes := 0, 0, 0, map[rollcall.Cause]int{}
	for _, w := range team {
		answered, done, undone = answered+w.answered, done+w.done, undone+w.undone
		for _, a := range w.accounts {
			for _, e := range a.ended {
				causes[e.cause]++
			}
		}
	}
	t.Logf("%d answers in %d rounds; sessions ended: %v", answered, rounds, causes)
	t.Logf("of the actions without an answer %d were done and %d were not", done, undone)
	require.Greater(t, answered, rounds*workers)
	for _, cause := range []rollcall.Cause{rollcall.CauseLogout, rollcall.CauseKicked, rollcall.CauseReplaced, rollcall.CauseBanned} {
		require.NotZero(t, causes[cause], "%s", cause)
	}
}

package local

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// linearLimit is how many sessions the one user of a history may have.
const linearLimit = 2

// linearInput is a command of a history, on a session named by the order in
// which its login was called.
type linearInput struct {
	verb    string // login, evict, touch, verify, kick, kickall, count
	session int
	evict   int // the session that a login by evict names
}

// linearOutput is its answer: whether the session was alive, how many there
// were or ended, and which gave way to a login.
type linearOutput struct {
	live  bool
	n     int
	ended string
}

// linearState is the live sessions, oldest first.
type linearState string

func (s linearState) list() []string { return strings.Fields(string(s)) }

func stateOf(list []string) linearState { return linearState(strings.Join(list, " ")) }

// linearStep is what one user's sessions may answer, one command at a time.
// Sessions give way in the order of their ids, which is that of their logins.
func linearStep(state, input, output any) (bool, any) {
	s, in, out := state.(linearState), input.(linearInput), output.(linearOutput) //nolint:forcetypeassert // ours
	list, name := s.list(), fmt.Sprint(in.session)
	at := slices.Index(list, name)
	switch in.verb {
	case "login", "evict":
		// What it names goes first, and is room enough.
		gone := ""
		if named := slices.Index(list, fmt.Sprint(in.evict)); in.verb == "evict" && named >= 0 {
			gone = list[named]
			list = slices.Delete(list, named, named+1)
		} else if len(list) == linearLimit {
			gone, list = list[0], list[1:]
		}
		return out.ended == gone, stateOf(append(list, name))
	case "touch", "verify":
		return out.live == (at >= 0), s
	case "kick":
		if at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		return out.n == len(s.list())-len(list), stateOf(list)
	case "kickall":
		return out.n == len(list), linearState("")
	default:
		return out.n == len(list), s
	}
}

// linearRun collects the history of some callers at work on one user.
type linearRun struct {
	*rig
	mu       sync.Mutex
	sessions []rollcall.LoggedIn // by number, zero while the login is under way
	numbers  map[rollcall.SessionID]int
	history  []porcupine.Operation
	began    time.Time
}

func (r *linearRun) do(ctx context.Context, caller int, in linearInput) {
	r.mu.Lock()
	var ref rollcall.LoggedIn
	if in.verb != "login" {
		ref = r.sessions[in.session]
	}
	if in.verb != "login" && ref.Token == "" { // its login has not answered yet
		r.mu.Unlock()
		return
	}
	begins := in.verb == "login" || in.verb == "evict"
	if begins {
		in.evict, in.session = in.session, len(r.sessions)
		r.sessions = append(r.sessions, rollcall.LoggedIn{})
	}
	r.mu.Unlock()
	op := porcupine.Operation{ClientId: caller, Input: in, Call: time.Since(r.began).Nanoseconds()}
	begun, out, err := r.answer(ctx, in, ref)
	op.Return = time.Since(r.began).Nanoseconds()
	if err != nil {
		r.t.Errorf("%s: %v", in.verb, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if begins {
		r.sessions[in.session] = begun
		r.numbers[begun.Session.ID] = in.session
	}
	op.Output = out
	r.history = append(r.history, op)
}

// answer carries out a command. The sessions a login ended stay ids until the
// history is complete: their own logins may not have answered yet.
func (r *linearRun) answer(ctx context.Context, in linearInput, ref rollcall.LoggedIn) (begun rollcall.LoggedIn, out linearOutput, err error) {
	byToken := rollcall.SessionRef{Token: ref.Token}
	var res rollcall.EndResult
	switch in.verb {
	case "login", "evict":
		l := rollcall.Login{User: "alice"}
		if in.verb == "evict" {
			l.Evict = []rollcall.SessionID{ref.Session.ID}
		}
		begun, err = r.roll.Login(ctx, l)
		for _, e := range begun.Ended {
			out.ended += e.ID.String()
		}
	case "touch":
		_, err = r.roll.Touch(ctx, byToken)
		out.live = err == nil
	case "verify":
		_, err = r.roll.Verify(ctx, byToken)
		out.live = err == nil
	case "kick":
		res, err = r.roll.Kick(ctx, rollcall.Kick{Session: ref.Session.ID})
		out.n = res.Ended
	case "kickall":
		res, err = r.roll.Kick(ctx, rollcall.Kick{User: "alice"})
		out.n = res.Ended
	default:
		var page rollcall.Page[rollcall.Session]
		page, err = r.roll.Sessions(ctx, rollcall.SessionQuery{})
		out.n = page.Total
	}
	if rollcall.CodeOf(err) == rollcall.CodeSessionEnded {
		err = nil
	}
	return begun, out, err
}

// numberedHistory returns the history with numbers for ids.
func (r *linearRun) numberedHistory() []porcupine.Operation {
	names := make(map[string]string, len(r.numbers))
	for id := range maps.Keys(r.numbers) {
		names[id.String()] = fmt.Sprint(r.numbers[id])
	}
	for i := range r.history {
		out := r.history[i].Output.(linearOutput) //nolint:forcetypeassert // ours
		if out.ended != "" {
			out.ended = names[out.ended]
			r.history[i].Output = out
		}
	}
	return r.history
}

func TestCommandsOnOneUserAreLinearizable(t *testing.T) {
	policies, err := rollcall.NewPolicies(rollcall.Policy{IdleTimeout: time.Hour, MaxSessions: linearLimit, Overflow: rollcall.EvictOldest})
	require.NoError(t, err)
	verbs := []string{"login", "login", "evict", "evict", "touch", "touch", "verify", "verify", "kick", "kickall", "count"}
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 5, Most: 25, Time: time.Second}) {
		seed := uint64(round)
		r := &linearRun{rig: newRig(t, 1), numbers: map[rollcall.SessionID]int{}, began: time.Now()}
		r.roll.SetPolicies(policies)
		var wg sync.WaitGroup
		for caller := range 5 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(caller)))
				for range 30 {
					in := linearInput{verb: verbs[rnd.IntN(len(verbs))]}
					r.mu.Lock()
					if n := len(r.sessions); n > 0 { // one of the latest, which may still be alive
						in.session = max(0, n-1-rnd.IntN(4))
					} else {
						in.verb = "login"
					}
					r.mu.Unlock()
					r.do(t.Context(), caller, in)
				}
			})
		}
		wg.Wait()
		model := porcupine.Model{Init: func() any { return linearState("") }, Step: linearStep}
		require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(model, r.numberedHistory(), 2*time.Minute), "seed %d; unknown says that two minutes were too few to tell", seed)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// fleet is several servers on the same data.
type fleet struct {
	t       *testing.T
	on      backend
	store   string
	servers []*server
}

// startFleet starts servers over data of their own.
func startFleet(t *testing.T, binary string, on backend, servers int, flags ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, on: on, store: on.store()}
	for range servers {
		all := append(append(on.flags(f.store), "--secret", sharedSecret, "--log-level", "error"), flags...)
		f.servers = append(f.servers, start(t, binary, t.TempDir(), all...))
	}
	t.Cleanup(func() {
		for _, s := range f.servers {
			if s.cmd.ProcessState == nil {
				s.kill()
			}
		}
	})
	return f
}

// loginAnswer is what a login tells.
type loginAnswer struct {
	Session struct{ ID, User, Device string }
	Token   string
	Ended   []struct {
		ID    string
		Cause rollcall.Cause
	}
	Code rollcall.Code
}

// login asks for a session and returns the status besides.
func (s *server) login(body map[string]any) (int, loginAnswer, error) {
	var out loginAnswer
	status, text, err := s.call(request{method: http.MethodPost, path: "/v1/sessions", body: body})
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return status, out, err
}

// stateOf tells what a server says of a token: "live", how the session ended,
// or "unknown".
func (s *server) stateOf(token string) (string, error) {
	status, text, err := s.call(request{method: http.MethodGet, path: "/v1/verify", token: token})
	if err != nil || status == http.StatusOK {
		return "live", err
	}
	var problem struct {
		Code  rollcall.Code
		Cause rollcall.Cause
	}
	if err := json.Unmarshal(text, &problem); err != nil {
		return "", err
	}
	switch problem.Code {
	case rollcall.CodeSessionEnded:
		return string(problem.Cause), nil
	case rollcall.CodeUnauthenticated:
		return "unknown", nil
	default:
		return "", fmt.Errorf("status %d: %s", status, text)
	}
}

// listed returns the ids of a user's sessions as a server lists them.
func (s *server) listed(user string) []string {
	s.t.Helper()
	var list struct {
		Total int
		Items []struct{ ID string }
	}
	s.get(&list, request{method: http.MethodGet, path: "/v1/sessions?limit=1000&user=" + inPath(user)}, http.StatusOK)
	require.Len(s.t, list.Items, list.Total)
	ids := []string{}
	for _, item := range list.Items {
		ids = append(ids, item.ID)
	}
	return ids
}

// roll opens the fleet's data in this process.
func (f *fleet) roll() *rollcall.Roll {
	f.t.Helper()
	engine := f.on.join(f.t, f.store)
	f.t.Cleanup(func() { require.NoError(f.t, engine.Close()) })
	r, err := rollcall.New(engine, rollcall.Options{Secret: secretOf(f.t, sharedSecret)})
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, r.Close()) })
	return r
}

// tail collects events, each once, as they come.
type tail struct {
	mu     sync.Mutex
	events []rollcall.Event
	met    map[rollcall.EventID]bool
	fault  error
	done   chan struct{}
}

// follow tails all events from the first on, until the context ends.
func follow(ctx context.Context, r *rollcall.Roll) *tail {
	t := &tail{met: map[rollcall.EventID]bool{}, done: make(chan struct{})}
	go func() {
		defer close(t.done)
		var after rollcall.EventID
		for {
			events, err := r.Tail(ctx, after, 100)
			t.enter(events, err)
			if err != nil {
				return
			}
			if len(events) > 0 {
				after = events[len(events)-1].ID
			}
		}
	}()
	return t
}

func (t *tail) enter(events []rollcall.Event, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = err
	for _, e := range events {
		if !t.met[e.ID] {
			t.met[e.ID] = true
			t.events = append(t.events, e)
		}
	}
}

// of returns the events of a user, in the order in which they came.
func (t *tail) of(user string) []rollcall.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []rollcall.Event
	for _, e := range t.events {
		if e.User == user {
			out = append(out, e)
		}
	}
	return out
}

func (t *tail) has(holds func(rollcall.Event) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.events {
		if holds(e) {
			return true
		}
	}
	return false
}

// ids returns the ids of all events.
func (t *tail) ids() map[rollcall.EventID]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[rollcall.EventID]bool, len(t.met))
	for id := range t.met {
		out[id] = true
	}
	return out
}

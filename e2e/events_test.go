package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/testbudget"
)

// TestReadersThatAreKilledMissNothing reads events and live friends on connections
// that are cut at random, under load, while servers are killed and started again.
func TestReadersThatAreKilledMissNothing(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		missNothing(newWatched(t, binary, embedded(), 1))
	})
	t.Run("one server on a Redis", func(t *testing.T) {
		t.Parallel()
		missNothing(newWatched(t, binary, sharedRedis(t), 1))
	})
	t.Run("three servers on a Redis", func(t *testing.T) {
		t.Parallel()
		missNothing(newWatched(t, binary, sharedRedis(t), 3))
	})
}

// watched are servers that readers watch. Those that are killed are started again.
type watched struct {
	t      *testing.T
	binary string
	dirs   []string
	flags  []string

	mu      sync.Mutex
	servers []*server
}

func newWatched(t *testing.T, binary string, on backend, servers int, flags ...string) *watched {
	t.Helper()
	w := &watched{t: t, binary: binary, flags: append([]string{"--secret", sharedSecret, "--log-level", "error"}, flags...)}
	if on.url != "" {
		w.flags = append(w.flags, on.flags(on.store())...)
	}
	for range servers {
		w.dirs = append(w.dirs, t.TempDir())
		w.servers = append(w.servers, start(t, binary, w.dirs[len(w.dirs)-1], w.flags...))
	}
	t.Cleanup(func() {
		for _, s := range w.servers {
			s.kill()
		}
	})
	return w
}

// at is a server, or the one that has come in its place.
func (w *watched) at(n int) *server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.servers[n%len(w.servers)]
}

// replace kills a server and starts another on its data.
func (w *watched) replace(n int) {
	w.t.Helper()
	w.at(n).kill()
	next := start(w.t, w.binary, w.dirs[n], w.flags...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[n] = next
}

// watcher is one reader, who connects again and again.
type watcher struct {
	*watched
	path, token string
	rng         *rand.Rand
	last        string // id to resume behind
	hear        func(name, data string)
}

// sit reads on one connection until it has lasted for some time or breaks.
func (r *watcher) sit(limit time.Duration) {
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.at(r.rng.IntN(8)).url+r.path, nil)
	require.NoError(r.t, err)
	req.Header.Set("Authorization", "Bearer "+r.token)
	if r.last != "" {
		req.Header.Set("Last-Event-ID", r.last)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return // the server is away
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		r.read(resp.Body)
	}
}

// read takes the whole frames of a stream.
func (r *watcher) read(body io.Reader) {
	id, name, data := "", "", ""
	for lines := bufio.NewScanner(body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if id != "" {
				r.last = id
			}
			if name != "" {
				r.hear(name, data)
			}
			id, name, data = "", "", ""
		}
	}
}

// heard is what a reader of events was told, each once.
type heard struct {
	t      *testing.T
	ids    map[string]bool
	byUser map[string][]string // ids in the order in which they came first
	ended  bool
}

const lastUser = "the last one"

func (h *heard) hear(name, data string) {
	require.NotEqual(h.t, "reset", name, "nothing is lost")
	var e struct{ ID, Type, User string }
	require.NoError(h.t, json.Unmarshal([]byte(data), &e), "%s", data)
	if !h.ids[e.ID] {
		h.ids[e.ID] = true
		h.byUser[e.User] = append(h.byUser[e.User], e.ID)
	}
	h.ended = h.ended || (e.User == lastUser && e.Type == "user.banned")
}

func newHeard(t *testing.T) *heard {
	return &heard{t: t, ids: map[string]bool{}, byUser: map[string][]string{}}
}

// live is what a reader of live friends believes.
type live struct {
	t      *testing.T
	online map[string]bool
}

func (l *live) hear(name, data string) {
	var e struct {
		User  string
		Items []struct{ User string }
	}
	require.NoError(l.t, json.Unmarshal([]byte(data), &e), "%s", data)
	switch name {
	case "snapshot": // of few friends: one part
		l.online = map[string]bool{}
		for _, f := range e.Items {
			l.online[f.User] = true
		}
	case "online":
		require.False(l.t, l.online[e.User], "%s came twice", e.User)
		l.online[e.User] = true
	case "offline":
		require.True(l.t, l.online[e.User], "%s went twice", e.User)
		delete(l.online, e.User)
	default:
		require.Fail(l.t, "the session lives", "%s %s", name, data)
	}
}

const watchedUsers = 12

func missNothing(w *watched) {
	_, me, err := w.at(0).login(map[string]any{"user": "me"})
	require.NoError(w.t, err)
	var friends []map[string]any
	for i := range watchedUsers {
		friends = append(friends, map[string]any{"user": fmt.Sprint("u", i)})
	}
	w.at(0).get(nil, request{method: http.MethodPut, path: "/v1/users/me/friends", body: map[string]any{"friends": friends}}, http.StatusNoContent)

	// Users come and go while readers are cut off at random, and servers die.
	h, l := newHeard(w.t), &live{t: w.t}
	events := &watcher{watched: w, path: "/v1/events?after=start", token: adminKey, rng: rand.New(rand.NewPCG(1, 1)), hear: h.hear}
	list := &watcher{watched: w, path: "/v1/me/friends/events", token: me.Token, rng: rand.New(rand.NewPCG(1, 2)), hear: l.hear}
	stop := make(chan struct{})
	var load, readers sync.WaitGroup
	for i := range 3 {
		load.Go(func() { w.comeAndGo(uint64(i), stop) })
	}
	budget := testbudget.Budget{Least: 12, Most: 200, Time: time.Second}
	for round := range testbudget.Rounds(w.t, budget) {
		readers.Go(func() { events.sit(time.Duration(1+events.rng.IntN(60)) * time.Millisecond) })
		readers.Go(func() { list.sit(time.Duration(1+list.rng.IntN(60)) * time.Millisecond) })
		if round%6 == 5 {
			w.replace(round / 6 % len(w.servers))
		}
		readers.Wait()
	}
	close(stop)
	load.Wait()

	// In the end each event that there is was heard.
	w.at(0).get(nil, request{method: http.MethodPut, path: "/v1/bans/" + inPath(lastUser), body: map[string]any{"duration": "1h"}}, http.StatusOK)
	for end := time.Now().Add(patience); !h.ended; events.sit(time.Second) {
		require.True(w.t, time.Now().Before(end), "the last event came")
	}
	logged := w.logged()
	for end := time.Now().Add(patience); !h.hasAll(logged); events.sit(time.Second) {
		require.True(w.t, time.Now().Before(end), "each event that is in the log came")
	}
	w.requireHeard(h, logged)
	w.requireSettled(list, l, me.Token)
}

// comeAndGo logs users in and kicks them.
func (w *watched) comeAndGo(seed uint64, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for {
		select {
		case <-stop:
			return
		default:
		}
		s, user := w.at(rng.IntN(8)), fmt.Sprint("u", rng.IntN(watchedUsers))
		// What a dying server does not answer is nothing to the readers.
		if rng.IntN(2) == 0 {
			_, _, _ = s.login(map[string]any{"user": user})
		} else {
			_, _, _ = s.call(request{method: http.MethodPost, path: "/v1/kicks", body: map[string]any{"user": user}})
		}
	}
}

// logged returns the ids of the events in the log, by their users.
func (w *watched) logged() (byUser map[string][]string) {
	w.t.Helper()
	byUser = make(map[string][]string)
	ended := false
	for after := "start"; !ended; {
		var page struct {
			Items []struct{ ID, Type, User string }
			Next  string
		}
		w.page(&page, "/v1/events?limit=1000&after="+after)
		require.NotEmpty(w.t, page.Items)
		for _, e := range page.Items {
			if slices.Contains(byUser[e.User], e.ID) {
				continue // a page may repeat
			}
			byUser[e.User] = append(byUser[e.User], e.ID)
			ended = ended || (e.User == lastUser && e.Type == "user.banned")
		}
		after = page.Next
	}
	return byUser
}

// hasAll reports whether as many events of each user were heard as there are.
func (h *heard) hasAll(logged map[string][]string) bool {
	for user, ids := range logged {
		if len(h.byUser[user]) < len(ids) {
			return false
		}
	}
	return true
}

// requireHeard compares what was heard with the log.
func (w *watched) requireHeard(h *heard, logged map[string][]string) {
	w.t.Helper()
	n := 0
	for user, ids := range logged {
		got := h.byUser[user]
		require.Equal(w.t, ids, got[:min(len(ids), len(got))], "the events of %q, in order", user)
		n += len(ids)
	}
	w.t.Logf("%d events", n)
	require.Greater(w.t, n, watchedUsers)
}

// page asks the first server for a page of events.
func (w *watched) page(v any, path string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.at(0).url+path, nil)
	require.NoError(w.t, err)
	req.Header.Set("Authorization", "Bearer "+adminKey)
	req.Header.Set("Accept", "application/json")
	resp, err := w.at(0).client.Do(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	require.Equal(w.t, http.StatusOK, resp.StatusCode)
	require.NoError(w.t, json.NewDecoder(resp.Body).Decode(v))
}

// requireSettled expects that a reader of live friends comes to believe what the
// list says.
func (w *watched) requireSettled(r *watcher, l *live, token string) {
	w.t.Helper()
	var believed, listed []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		r.sit(300 * time.Millisecond)
		var list struct{ Items []struct{ User string } }
		w.at(0).get(&list, request{method: http.MethodGet, path: "/v1/me/friends/online?limit=1000", token: token}, http.StatusOK)
		believed, listed = slices.Sorted(maps.Keys(l.online)), []string{}
		for _, f := range list.Items {
			listed = append(listed, f.User)
		}
		if slices.Sort(listed); slices.Equal(believed, listed) {
			return
		}
	}
	require.Equal(w.t, listed, believed, "the list of friends online")
}

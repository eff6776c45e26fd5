package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/internal/testport"
)

// hookMessage is a message of a webhook, as the receiver got it.
type hookMessage struct {
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Secret  string            `json:"secret"`
}

// hookReceiver receives the messages of a webhook at an address that it keeps while it
// is killed and started again.
type hookReceiver struct {
	t       *testing.T
	address string
	take    func(hookMessage) (status int) // called by one request at a time

	mu     sync.Mutex
	server *http.Server
	served chan struct{}
}

func newHookReceiver(t *testing.T, take func(hookMessage) int) *hookReceiver {
	t.Helper()
	port, err := testport.Reserve() // nobody takes it while the receiver is down
	require.NoError(t, err)
	r := &hookReceiver{t: t, address: fmt.Sprintf("127.0.0.1:%d", port), take: take}
	r.start()
	t.Cleanup(r.kill)
	return r
}

func (r *hookReceiver) start() {
	r.t.Helper()
	listener, err := net.Listen("tcp", r.address)
	require.NoError(r.t, err)
	server, served := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	r.server, r.served = server, served
	go func() {
		defer close(served)
		_ = server.Serve(listener) // until it is killed
	}()
}

// kill ends the receiver with all that is under way.
func (r *hookReceiver) kill() {
	_ = r.server.Close()
	<-r.served
}

// ServeHTTP implements [http.Handler].
func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	m := hookMessage{Headers: make(map[string]string), Body: string(body)}
	for name := range req.Header {
		m.Headers[strings.ToLower(name)] = req.Header.Get(name)
	}
	r.mu.Lock()
	status := r.take(m)
	r.mu.Unlock()
	w.WriteHeader(status)
}

// make makes the webhook of the receiver, and returns its id and secret.
func (r *hookReceiver) make(s *server, settings map[string]any) (id, secret string) {
	r.t.Helper()
	settings["url"] = "http://" + r.address
	var made struct{ ID, Secret string }
	s.get(&made, request{method: http.MethodPost, path: "/v1/webhooks", body: settings}, http.StatusCreated)
	return made.ID, made.Secret
}

// TestTheLibraryOfStandardWebhooksTakesOurSignatures checks messages of the real server
// as a receiver in Node would, also those that two secrets sign after a rotation.
func TestTheLibraryOfStandardWebhooksTakesOurSignatures(t *testing.T) {
	t.Parallel()
	tools := installNodeTools(t, "webhook")
	s := start(t, buildBinary(t), t.TempDir(), "--webhooks-allow", "127.0.0.1")
	defer s.kill()
	got := make(chan hookMessage, 100)
	receiver := newHookReceiver(t, func(m hookMessage) int { got <- m; return http.StatusNoContent })
	next := func() hookMessage {
		select {
		case m := <-got:
			return m
		case <-time.After(patience):
			require.Fail(t, "no message came")
			return hookMessage{}
		}
	}
	id, first := receiver.make(s, map[string]any{})
	var messages []hookMessage
	login := func(user string, secrets ...string) {
		_, _, err := s.login(map[string]any{"user": user})
		require.NoError(t, err)
		m := next()
		require.Contains(t, m.Body, `"type":"session.started"`)
		for _, secret := range secrets {
			m.Secret = secret
			messages = append(messages, m)
		}
	}
	login("alice", first)
	login("\u4e01 \"<&>\"", first)

	var rotated struct{ Secret string }
	s.get(&rotated, request{method: http.MethodPost, path: "/v1/webhooks/" + id + "/rotate"}, http.StatusOK)
	require.NotEqual(t, first, rotated.Secret)
	var told struct{ Result string }
	require.Eventually(t, func() bool { // until the deliverer has seen the rotation
		s.get(&told, request{method: http.MethodPost, path: "/v1/webhooks/" + id + "/test"}, http.StatusOK)
		m := next()
		return len(strings.Fields(m.Headers["webhook-signature"])) == 2
	}, patience, 100*time.Millisecond, "a message has two signatures")
	require.Equal(t, "delivered", told.Result)
	login("bob", first, rotated.Secret)

	dir := t.TempDir()
	text, err := json.Marshal(messages)
	require.NoError(t, err)
	list := filepath.Join(dir, "messages.json")
	require.NoError(t, os.WriteFile(list, text, 0o600))
	copyFile(t, filepath.Join("webhook", "check.mjs"), filepath.Join(dir, "check.mjs"))
	require.NoError(t, os.Symlink(filepath.Join(string(tools), "node_modules"), filepath.Join(dir, "node_modules")))
	require.Equal(t, "4\n", tools.run(t, dir, nil, "node", "check.mjs", list))

	// As do the receivers that the guide shows.
	for _, r := range []struct{ language, kept, driver, receiver, begin string }{
		{"js", "receive.mjs", "receive.mjs", "receiver.mjs", ""},
		{"python", "receive.py", "receive.py", "receiver.py", ""},
		{"go", "receive.go.txt", "receive.go", "receiver.go", goReceiver},
	} {
		copyFile(t, filepath.Join("webhook", r.kept), filepath.Join(dir, r.driver))
		write(t, dir, r.receiver, r.begin+codeOf(t, "docs/webhooks.md", r.language, "ebhook"))
		command := map[string][]string{"js": {"node", r.driver}, "python": {"python3", r.driver}, "go": {"go", "run", r.driver, r.receiver}}[r.language]
		require.Equal(t, "4\n", tools.run(t, dir, []string{"GOWORK=off", "GOFLAGS="}, command[0], append(command[1:], list)...), "the receiver in %s", r.language)
	}
}

// goReceiver is what stands before the receiver in Go.
const goReceiver = `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

`

// TestAReceiverThatIsKilledIsToldOfEverything has a webhook's receiver killed and started
// again at random, and refuse some messages, under load, while servers are killed and
// started again.
func TestAReceiverThatIsKilledIsToldOfEverything(t *testing.T) {
	t.Parallel()
	binary := buildBinary(t)
	allow := []string{"--webhooks-allow", "127.0.0.1", "--presence-events", "off"}
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		leaveNothingOut(newWatched(t, binary, embedded(), 1, allow...))
	})
	t.Run("three servers on a Redis", func(t *testing.T) {
		t.Parallel()
		leaveNothingOut(newWatched(t, binary, sharedRedis(t), 3, allow...))
	})
}

func leaveNothingOut(w *watched) {
	w.t.Helper()
	h := newHeard(w.t)
	rng := rand.New(rand.NewPCG(1, 4))
	receiver := newHookReceiver(w.t, func(m hookMessage) int {
		if rng.IntN(50) == 0 {
			return http.StatusServiceUnavailable
		}
		var message struct {
			Type string
			Data json.RawMessage
		}
		if json.Unmarshal([]byte(m.Body), &message) != nil {
			return http.StatusBadRequest
		}
		h.hear(message.Type, string(message.Data))
		return http.StatusNoContent
	})
	receiver.make(w.at(0), map[string]any{})

	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() { w.comeAndGo(7, stop) })
	for round := range testbudget.Rounds(w.t, testbudget.Budget{Least: 8, Most: 200, Time: time.Second}) {
		<-time.After(time.Duration(10+round*7%60) * time.Millisecond) // how long the receiver lives
		receiver.kill()
		if round%6 == 5 {
			w.replace(round / 6 % len(w.servers))
		}
		receiver.start()
	}
	close(stop)
	load.Wait()

	// In the end it was told of each event that there is, those of a user in their order.
	w.at(0).get(nil, request{method: http.MethodPut, path: "/v1/bans/" + inPath(lastUser), body: map[string]any{"duration": "1h"}}, http.StatusOK)
	logged := w.logged()
	told := func() bool {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		return h.ended && h.hasAll(logged)
	}
	require.Eventually(w.t, told, patience, 20*time.Millisecond, "each event that is in the log came")
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	w.requireHeard(h, logged)
}

package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// lines is a log that a test reads while others write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) with(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *lines) option(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(l, nil)) }

func TestEachActOfSecurityIsALineWithoutNames(t *testing.T) {
	log := &lines{}
	s := newSite(t, log.option, func(o *httpapi.Options) { o.RateLimits.Failures.Rate = -1 })
	var key struct{ ID, Key string }
	require.NoError(t, json.Unmarshal([]byte(s.ok(201, "admin", "POST", "/v1/keys", `{"role":"reader","name":"named-key"}`)), &key))
	s.ok(204, "admin", "DELETE", "/v1/keys/"+key.ID, "")
	s.ok(200, "admin", "PUT", "/v1/bans/alice", `{"duration":"1d","reason":"secret-reason"}`)
	s.ok(204, "admin", "DELETE", "/v1/bans/alice", "")
	s.ok(200, "admin", "POST", "/v1/kicks", `{"user":"alice","ban":"1d"}`)
	s.ok(200, "admin", "POST", "/v1/kicks", `{"filter":{"app":"x"},"reason":"secret-reason"}`)
	s.ok(200, "admin", "POST", "/v1/kicks", `{"all":true}`)
	s.ok(200, "admin", "POST", "/v1/kicks", `{"all":true,"dry_run":true}`)
	s.ok(204, "admin", "DELETE", "/v1/users/alice", "")
	s.ok(200, "admin", "POST", "/v1/online/clear", `{"older_than":"1d"}`)
	for event, n := range map[string]int{
		"key_made": 1, "key_revoked": 1, "banned": 2, "ban_lifted": 1, "kicked_by_filter": 1, "kicked_all": 1, "erased": 1, "presence_cleared": 1,
	} {
		require.Equal(t, n, log.with("event="+event+" actor=\"key "), event)
	}
	require.Equal(t, 4, log.with("user="+s.roll.Pseudonym("alice")))
	for _, secret := range []string{"alice", "secret-reason", "named-key", key.Key, s.keys["admin"]} {
		require.Zero(t, log.with(secret), secret)
	}

	for range 100 {
		s.call("rck_"+strings.Repeat("x", 43), "GET", "/v1/keys", "")
		s.call("reader", "GET", "/v1/keys", "")
	}
	require.Equal(t, 1, log.with("event=authentication_failed"), "many failures are one line")
	require.Equal(t, 1, log.with("event=forbidden"))
	text := s.ok(200, "", "GET", "/metrics", "")
	require.Contains(t, text, `rollcall_refused_callers_total{event="authentication_failed"} 100`)
	require.Contains(t, text, `rollcall_refused_callers_total{event="forbidden"} 100`)
}

func TestAFaultThatLastsIsALineAndNotOneForEachRequest(t *testing.T) {
	log := &lines{}
	s, engine := newFaultySite(t, log.option)
	beat := func() int { return s.call("writer", "POST", "/v1/beats", `{"users":["a"]}`).Code }
	engine.err = rollcall.ErrStorageFull
	for range 200 {
		require.Equal(t, 503, beat())
	}
	require.Equal(t, 1, log.with("level=ERROR"))
	engine.err = nil
	for range 10 {
		require.Equal(t, 200, beat())
	}
	require.Equal(t, 1, log.with("requests are answered again"))
	require.Equal(t, 1, log.with("refused=200"))

	engine.err = errors.New("a fault of our own")
	for range 500 {
		require.Equal(t, 500, beat())
	}
	require.Less(t, log.with("level=ERROR"), 100)
	engine.err = context.Canceled
	before := log.with("level=ERROR")
	require.Equal(t, 503, beat())
	require.Equal(t, before, log.with("level=ERROR"), "a client that left is no fault")
}

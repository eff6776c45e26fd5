package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// TestNoSecretInRedis does all that has to do with a secret, and then looks for
// each of them, in every form, in all that Redis holds, in all that it ever
// wrote, in the log and in the files of the server, in the events and in what a webhook
// was sent.
func TestNoSecretInRedis(t *testing.T) {
	t.Parallel()
	const password = "the-password-of-the-server"
	node := redistest.Start(t, redistest.Options{
		Persist: true, User: &redistest.User{Name: "rollcall", Password: password, Rules: "~* &* +@all"},
	})
	on := onRedis(node.URL())
	haystacks, secrets := doWithSecrets(t, on.flags(on.store())...)
	secrets["the password of Redis"] = password

	where, err := node.Do("CONFIG", "GET", "dir")
	require.NoError(t, err)
	_, where, _ = strings.Cut(where, "\n")
	haystacks["what Redis holds"] = lookInto(t, "rollcall", password, node.Addr()).text()
	haystacks["what Redis ever wrote"] = content(t, where, "redis.conf")
	require.Contains(t, haystacks["what Redis holds"], "searched-for")
	require.Contains(t, haystacks["what Redis ever wrote"], "searched-for")
	requireNoSecret(t, secrets, haystacks)
}

// TestNoSecretInTheEmbeddedStore looks for them in the files of the embedded engine.
func TestNoSecretInTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	haystacks, secrets := doWithSecrets(t)
	require.Contains(t, haystacks["the server's other files"], "searched-for")
	requireNoSecret(t, secrets, haystacks)
}

// doWithSecrets has a server do all that has to do with a secret. It returns texts by where
// they stood, and the secrets by what they are.
func doWithSecrets(t *testing.T, flags ...string) (haystacks, secrets map[string]string) {
	t.Helper()
	dir := t.TempDir()
	s := start(t, buildBinary(t), dir, append(flags, "--log-level", "debug", "--webhooks-allow", "127.0.0.1")...)
	var told strings.Builder // all bodies and headers
	last := make(chan struct{}, 1)
	receiver := newHookReceiver(t, func(m hookMessage) int {
		for name, value := range m.Headers {
			told.WriteString(name + ": " + value + "\n")
		}
		told.WriteString(m.Body + "\n")
		if strings.Contains(m.Body, `"session.started"`) && strings.Contains(m.Body, `"user":"`+retriedUser+`"`) {
			select {
			case last <- struct{}{}:
			default:
			}
		}
		return http.StatusNoContent
	})
	id, hookSecret := receiver.make(s, map[string]any{"invisible": true, "types": eventTypes(), "description": "searched-for"})
	secrets = useSecrets(s)
	secrets["secret of a webhook"] = hookSecret
	file, err := os.ReadFile(filepath.Join(dir, "secret"))
	require.NoError(t, err)
	secrets["the server's secret"] = strings.TrimSpace(string(file))
	secrets["the first key"] = adminKey
	select {
	case <-last:
	case <-time.After(patience):
		require.Fail(t, "the webhook was not told of the last login")
	}

	haystacks = make(map[string]string)
	for what, path := range map[string]string{
		"the events": "/v1/events?after=start&limit=1000", "the list of webhooks": "/v1/webhooks",
		"the attempts to deliver": "/v1/webhooks/" + id + "/deliveries", "the audit trail": "/v1/audit", "the list of keys": "/v1/keys",
	} {
		haystacks[what] = answerTo(s, path)
	}
	require.Contains(t, haystacks["the events"], retriedUser)
	s.kill()
	receiver.kill()
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	haystacks["what a webhook was sent"] = told.String()
	require.Contains(t, haystacks["what a webhook was sent"], `"cause":"kicked"`)
	haystacks["the server's other files"] = content(t, dir, "secret")
	haystacks["the server's log"] = s.stderr.String()
	require.NotEmpty(t, haystacks["the server's log"])
	return haystacks, secrets
}

// answerTo returns the answer to a question for JSON.
func answerTo(s *server, path string) string {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	require.NoError(s.t, err)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+adminKey)
	answer, err := s.client.Do(req)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, answer.StatusCode, "%s: %s", path, text)
	return string(text)
}

// eventTypes are all types of events.
func eventTypes() []rollcall.EventType {
	return []rollcall.EventType{rollcall.SessionStarted, rollcall.SessionEnded, rollcall.UserOnline, rollcall.UserOffline}
}

// requireNoSecret looks for secrets, in every form.
func requireNoSecret(t *testing.T, secrets, haystacks map[string]string) {
	t.Helper()
	for what, secret := range secrets {
		for form, text := range forms(secret) {
			for where, hay := range haystacks {
				require.False(t, strings.Contains(hay, text), "%s (%s) is in %s", what, form, where)
			}
		}
	}
}

// useSecrets makes tokens and keys, gives them to the server in every way there
// is, and returns them by what they are.
func useSecrets(s *server) map[string]string {
	s.t.Helper()
	secrets := map[string]string{}
	post := func(path, token string, body any, statuses ...int) {
		s.t.Helper()
		s.get(nil, request{method: http.MethodPost, path: path, body: body, token: token}, statuses...)
	}
	for i := range 8 {
		var in struct {
			Session struct{ ID string }
			Token   string
			BeatKey string `json:"beat_key"`
		}
		s.get(&in, request{method: http.MethodPost, path: "/v1/sessions", body: map[string]any{
			"user": fmt.Sprint("searched-for-", i%3), "device_id": "one",
		}}, http.StatusCreated)
		secrets[fmt.Sprint("token ", i)], secrets[fmt.Sprint("beat key ", i)] = in.Token, in.BeatKey
		post("/v1/touch", in.Token, nil, http.StatusOK)
		post("/v1/touch", "", map[string]any{"tokens": []string{in.Token}}, http.StatusOK)
		s.get(nil, request{method: http.MethodGet, path: "/v1/verify", token: in.Token}, http.StatusOK)
		s.get(nil, request{method: http.MethodGet, path: "/v1/me/sessions", token: in.Token}, http.StatusOK)
		if i%2 == 0 {
			var rotated struct{ Token string }
			s.get(&rotated, request{method: http.MethodPost, path: "/v1/sessions/" + in.Session.ID + "/rotate"}, http.StatusOK)
			secrets[fmt.Sprint("new token ", i)] = rotated.Token
			s.get(nil, request{method: http.MethodGet, path: "/v1/verify", token: in.Token}, http.StatusUnauthorized)
		}
	}
	post("/v1/kicks", "", map[string]any{"user": "searched-for-1", "reason": "found"}, http.StatusOK)
	post("/v1/touch", secrets["token 7"], nil, http.StatusUnauthorized)
	var ticket struct{ Ticket string }
	s.get(&ticket, request{method: http.MethodPost, path: "/v1/events/tickets", body: map[string]any{}}, http.StatusCreated)
	secrets["ticket for events"] = ticket.Ticket
	for _, role := range []string{"reader", "writer", "admin"} {
		var made struct{ Key string }
		s.get(&made, request{method: http.MethodPost, path: "/v1/keys", body: map[string]any{"name": role, "role": role}}, http.StatusCreated)
		secrets["key of a "+role] = made.Key
		s.get(nil, request{method: http.MethodGet, path: "/v1/stats", token: made.Key}, http.StatusOK)
	}
	retried(s, secrets)
	return secrets
}

// retriedUser logs in last.
const retriedUser = "searched-for"

// retried logs in twice under one Idempotency-Key: the token that comes again
// is not kept either.
func retried(s *server, secrets map[string]string) {
	s.t.Helper()
	side := newSide(s)
	in := ask{method: http.MethodPost, path: "/v1/sessions", body: map[string]any{"user": retriedUser}, as: adminKey, retry: "again"}
	for range 2 {
		out, err := side.send(in)
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusCreated, out.status)
	}
	require.Len(s.t, side.tokens, 1, "the second login returned the first one's token")
	secrets["the token of a login that was repeated"] = side.tokens[0].text
}

// forms are the ways in which a secret may be written.
func forms(secret string) map[string]string {
	out := map[string]string{"as it is": secret}
	body := regexp.MustCompile(`^(rct|rck|rcet|whsec)_`).ReplaceAllString(secret, "")
	out["without its prefix"] = body
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if strings.HasPrefix(secret, "whsec_") {
		raw, err = base64.StdEncoding.DecodeString(body)
	}
	if fromHex, hexErr := hex.DecodeString(secret); hexErr == nil {
		raw, err = fromHex, nil
	}
	if err != nil || len(raw) < 24 { // a password: it has no other form
		return out
	}
	if strings.HasPrefix(secret, "rct_") {
		raw = raw[2:] // the rest is the user's hash
	}
	out["as bytes"] = string(raw)
	out["in hex"] = hex.EncodeToString(raw)
	out["in base64"] = base64.RawStdEncoding.EncodeToString(raw)
	out["in base64 for URLs"] = base64.RawURLEncoding.EncodeToString(raw)
	return out
}

// content returns all files in and below a directory but one.
func content(t *testing.T, dir, but string) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == but {
			return err
		}
		text, err := os.ReadFile(path)
		out.Write(text)
		return err
	}))
	return out.String()
}

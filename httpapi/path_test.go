package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rollcall/rollcall/internal/testbudget"
)

// hostile are ids that routers, cleaners and templates like to take for
// something else.
var hostile = []string{
	".", "..", "...", "a/b", "/", "//", "/etc/passwd", "../../users/admin", "a//b", "a/../b", "%2F", "%252F", "a%b", "100%",
	"a:b{c}*", "{user}", "*", "?", "a?b=c", "#", "a#b", "a b", " ", "+", "a+b", ";", "a;b", "&", "=", "online", "friends", "me",
	"007", "7", "😀", "é", "e\u0301", "\u202e", "日本語", "a\\b", `"`, "'", "<script>", "~", "@", "\u00a0", "rc:{1}:seen", strings.Repeat("é", 63),
}

// percentAll encodes every byte, as a careful client may.
func percentAll(id string) string {
	var b strings.Builder
	for i := range len(id) {
		fmt.Fprintf(&b, "%%%02X", id[i])
	}
	return b.String()
}

func requireRoundTrip(t require.TestingT, s *site, id string) {
	name, err := json.Marshal(map[string]string{"name": "n" + id})
	require.NoError(t, err)
	path := "/v1/users/" + percentAll(id)
	require.Equal(t, 200, s.call("writer", "PUT", path, string(name)).Code, "%q", id)
	var got struct{ User, Name string }
	w := s.call("reader", "GET", path, "")
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got), "%q: %s", id, w.Body)
	require.Equal(t, id, got.User)
	require.Equal(t, "n"+id, got.Name, "the same user was written and read")
	require.Equal(t, 200, s.call("reader", "GET", path+"/friends", "").Code, "%q", id)
}

func TestHostileIDsRoundTrip(t *testing.T) {
	s := newSite(t)
	for _, id := range hostile {
		requireRoundTrip(t, s, id)
		friend := percentAll(id)
		s.ok(204, "writer", "PUT", "/v1/users/somebody/friends/"+friend, "")
		s.ok(204, "writer", "DELETE", "/v1/users/somebody/friends/"+friend, "")
		token := s.loginUser(id)
		w := s.call(token, "GET", "/v1/verify", "")
		require.Equal(t, 200, w.Code)
		require.Equal(t, id, unescape(t, w.Header().Get("Rollcall-User")))
	}
}

func TestAnyIDRoundTrips(t *testing.T) {
	s := newSite(t)
	testbudget.Check(t, testbudget.Quick(), func(rt *rapid.T) {
		id := rapid.StringMatching(`[^\pC]{1,30}`).Draw(rt, "id")
		requireRoundTrip(rt, s, id)
	})
}

// TestRawPathsReachTheirUser sends request lines as they stand, past any
// cleaning a client would do.
func TestRawPathsReachTheirUser(t *testing.T) {
	s := newSite(t)
	live := httptest.NewServer(s.server)
	t.Cleanup(live.Close)
	for path, want := range map[string]string{
		"/v1/users/..": "..", "/v1/users/.": ".", "/v1/users/%2e%2E": "..", "/v1/users/a%2Fb": "a/b", "/v1/users/a%2f..%2fb": "a/../b",
		"/v1/users/%F0%9F%98%80": "😀", "/v1/users/a:b%7Bc%7D*": "a:b{c}*", "/v1/users/a:b{c}*": "a:b{c}*", "/v1/users/a+b": "a+b", "/v1/users/%61": "a",
	} {
		status, body := raw(t, live, s.keys["reader"], path)
		require.Equal(t, 200, status, "%s: %s", path, body)
		var got struct{ User string }
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Equal(t, want, got.User, path)
	}
	for _, path := range []string{"/v1//users/a", "/v1/users/", "/v1/users//friends", "/v1/users/a/", "/v1/users/a/b", "/v1/users/../stats"} {
		status, body := raw(t, live, s.keys["reader"], path)
		require.Equal(t, 404, status, "%s: %s", path, body)
	}
}

func raw(t *testing.T, server *httptest.Server, key, path string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", path, key)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	var b strings.Builder
	_, err = bufio.NewReader(answer.Body).WriteTo(&b)
	require.NoError(t, err)
	return answer.StatusCode, b.String()
}

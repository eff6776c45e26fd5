package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
)

// hostileTexts are ids that would reach further than one user if anything were
// put together carelessly. Those with control characters or that are too long
// are to be refused.
func hostileTexts() (taken, refused []string) {
	taken = []string{
		"*", "?", "[a-z]*", "[", "]", "{", "}", "{}", "{0}", "}{", ":", "::", "'", `"`, `\`, "%", "%00", "%2e%2e", "..", ".", "/", "//", "$", "-", "+inf", "(0", "$(id)", "nil",
		"rc:{0}:seen", "{0}:seen", "}:seen", "seen", "part", "user:ann", "u:ann", "f:ann", "ann:", "ann*", "an", "annn", "Ann", "ann ", " ann", "ann}", "{ann}",
		"s:" + unknown, unknown, "tok:x", "by:app:chat", "redis.call('FLUSHALL')", "');redis.call('FLUSHALL')--", "FLUSHALL", "-1", "0", "00", "1e3", "9223372036854775808",
		"\u202eevil", "\ufeff", "\u2028", "ａｎｎ", strings.Repeat("}", 128), strings.Repeat("ü", 64), strings.Repeat("*", 127) + ":",
	}
	refused = []string{
		"", "\r\n", "a\r\nDEL b", "\x00", "ann\x00", "a\nb", "\t", "\x1b[2J", "\x7f", "\u0085", "\xff\xfe", "ann\xc0\x80",
		strings.Repeat("x", 129), strings.Repeat("x", 64<<10), strings.Repeat("\x00", 200), strings.Repeat("{", 64<<10),
	}
	return taken, refused
}

// witnesses are users who must not notice anything.
var witnesses = []string{"ann", "ann:x", "7"}

// TestHostileTexts gives ids and other texts to a server that were made to
// reach other users' keys, on a Cluster, where a script that leaves its slot
// fails.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, redistest.Options{})
	on := onRedis(cluster.URL())
	store := on.store()
	h := &hostility{
		t: t, store: store, keys: lookInto(t, "", "", addresses(cluster)...),
		server: start(t, buildBinary(t), t.TempDir(), append(on.flags(store), "--log-level", "error")...),
	}
	defer h.server.kill()
	for _, w := range witnesses {
		h.furnish(w, "witness", w+"'s friend")
	}
	before := h.view()
	h.all = h.keys.dump()
	taken, refused := hostileTexts()
	for _, text := range taken {
		h.attack(text)
		require.Equal(t, before, h.view(), "%q", text)
	}
	keys := slices.Collect(maps.Keys(h.keys.dump()))
	for _, text := range refused {
		h.refuse(text)
	}
	left := slices.DeleteFunc(slices.Collect(maps.Keys(h.keys.dump())), func(key string) bool {
		return strings.Contains(key, "}:answer:") // the answer to one that was taken, kept for a repetition
	})
	require.Subset(t, keys, left, "what was refused left nothing")
	require.Equal(t, before, h.view())
}

func addresses(c *redistest.Cluster) []string {
	var out []string
	for _, n := range c.Masters() {
		out = append(out, n.Addr())
	}
	return out
}

// hostility is a server, and the keys below it.
type hostility struct {
	t      *testing.T
	store  string
	keys   keyspace
	all    map[string]string // what the keys held when they were looked at last
	server *server
}

func (h *hostility) send(method, path string, body any, statuses ...int) {
	h.t.Helper()
	h.server.get(nil, request{method: method, path: path, body: body}, statuses...)
}

// furnish gives a user something of everything, with a text in all places that
// take any.
func (h *hostility) furnish(user, text, friend string) {
	h.t.Helper()
	in := inPath(user)
	if in == "." || in == ".." { // which no path can hold
		in = strings.ReplaceAll(in, ".", "%2E")
	}
	text = clipped(text)
	h.send("POST", "/v1/sessions", map[string]any{
		"user": user, "app": text, "device": text, "device_id": text, "name": text, "user_agent": text, "attrs": map[string]string{text: text},
	}, http.StatusCreated)
	h.send("POST", "/v1/beats", map[string]any{"users": []string{user}}, http.StatusOK)
	h.send("PUT", "/v1/users/"+in, map[string]any{"name": text, "kind": "office"}, http.StatusOK)
	h.send("PUT", "/v1/users/"+in+"/friends/"+inPath(friend)+"?mutual=1", nil, http.StatusNoContent)
	h.send("POST", "/v1/attendance/marks?import=1", map[string]any{"marks": []any{map[string]any{"user": user, "day": "2017-10-03"}}}, http.StatusOK)
}

// attack does everything under an id that an application may have let through:
// only the user's own partition may change, and what there is of the user goes
// with them.
func (h *hostility) attack(text string) {
	h.t.Helper()
	friend := "friend of " + text[:min(len(text), 60)]
	before := h.all
	h.furnish(text, text, friend)
	h.requireFound(text)
	h.requireOwn(before, text, friend)
	in := strings.ReplaceAll(inPath(text), ".", "%2E")
	for _, body := range []map[string]any{
		{"user": text, "device": clipped(text)},
		{"user": text, "reason": text},
		{"filter": map[string]any{"user": text}},
		{"filter": map[string]any{"app": clipped(text), "device": clipped(text), "name": clipped(text), "attrs": map[string]string{clipped(text): clipped(text)}}},
	} {
		h.furnish(text, text, friend)
		h.send("POST", "/v1/kicks", body, http.StatusOK)
	}
	h.send("PUT", "/v1/bans/"+in, map[string]any{"duration": "1h", "reason": text}, http.StatusOK)
	h.send("DELETE", "/v1/bans/"+in, nil, http.StatusNoContent)
	for _, user := range []string{in, inPath(friend)} {
		h.send("DELETE", "/v1/users/"+user, nil, http.StatusNoContent)
	}
	h.requireOwn(before, text, friend)
	for key := range h.all {
		for _, user := range []string{text, friend} {
			require.False(h.t, isOf(h.store, key, user), "erased, and there is %q", key)
		}
	}
}

// clipped is the part of a text that furnish puts into the session.
func clipped(text string) string { return strings.TrimSuffix(text[:min(len(text), 32)], "\xc3") }

// requireFound expects that lists find the one session by each of its fields.
func (h *hostility) requireFound(user string) {
	h.t.Helper()
	text := clipped(user)
	for _, pairs := range [][]string{
		{"user", user},
		{"app", text},
		{"device", text},
		{"name", text, "user", user},
		{"attr." + text, text},
	} {
		var list struct {
			Total int
			Items []struct{ User string }
		}
		body := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			body[pairs[i]] = pairs[i+1]
		}
		h.server.get(&list, request{method: "POST", path: "/v1/sessions/query", body: body}, http.StatusOK)
		require.Equal(h.t, 1, list.Total, "%q", pairs)
		require.Equal(h.t, user, list.Items[0].User, "%q", pairs)
	}
}

// requireOwn expects that since before only keys of the users' partitions have
// changed, and of these none that is another user's.
func (h *hostility) requireOwn(before map[string]string, users ...string) {
	h.t.Helper()
	own := map[string]bool{}
	for _, u := range users {
		own[fmt.Sprintf("%s:{%d}:", h.store, rollcall.HashUser(u)&7)] = true
	}
	h.all = h.keys.dump()
	touched := map[string]bool{}
	for key, value := range h.all {
		touched[key] = before[key] != value
	}
	for key := range before {
		root := partitionRoot.FindString(key)
		if _, stands := h.all[key]; !stands && key != root+"pres" && key != root+"idles" { // upkeep clears away an empty log, and timeouts that no session has
			touched[key] = true
		}
	}
	for key, is := range touched {
		root := partitionRoot.FindString(key)
		switch {
		case !is || key == root+"part" || key == h.store+":kinds" || key == h.store+":audit" || key == h.store+":samples" || strings.HasPrefix(key, root+"answer:"):
			// Upkeep; the names of kinds; the audit trail and the samples, which have no ids; answers kept for a retry.
		case !own[root]:
			require.Fail(h.t, "another partition's key", "%q by %q", key, users)
		default:
			for _, w := range witnesses {
				require.False(h.t, isOf(h.store, key, w), "%q by %q", key, users)
			}
		}
	}
}

var partitionRoot = regexp.MustCompile(`^[^{]*\{\d+\}:`)

// isOf tells whether a key holds something of one user.
func isOf(store, key, user string) bool {
	rest := strings.TrimPrefix(key, store)
	root := fmt.Sprintf(":{%d}:", rollcall.HashUser(user)&7)
	for _, what := range []string{"user:", "u:", "e:", "f:", "r:"} {
		if rest == root+what+user {
			return true
		}
	}
	return false
}

// refuse gives an id that breaks the rules to every route that takes one.
func (h *hostility) refuse(text string) {
	h.t.Helper()
	bad := http.StatusBadRequest
	list := map[string]any{"users": []string{text}}
	for _, r := range []request{
		{method: "POST", path: "/v1/sessions", body: map[string]any{"user": text}},
		{method: "POST", path: "/v1/beats", body: list},
		{method: "POST", path: "/v1/online/status", body: list},
		{method: "POST", path: "/v1/sessions/query", body: list},
		{method: "POST", path: "/v1/kicks", body: map[string]any{"user": text, "ban": "1h"}},
		{method: "POST", path: "/v1/kicks", body: map[string]any{"filter": list, "ban": "1h"}},
		{method: "POST", path: "/v1/attendance/marks", body: map[string]any{"marks": []any{map[string]any{"user": text}}}},
		{method: "PUT", path: "/v1/users/ann/friends", body: map[string]any{"friends": []any{map[string]any{"user": text}}}},
	} {
		if utf8.ValidString(text) { // JSON holds nothing else
			h.server.get(nil, r, bad)
		}
	}
	for _, field := range []string{"app", "device", "device_id", "name", "user_agent"} {
		if len(text) > 1024 || strings.ContainsAny(text, "\x00\r\n") {
			h.server.get(nil, request{method: "POST", path: "/v1/sessions", body: map[string]any{"user": "mallory", field: text}}, bad)
		}
	}
	in := inPath(text)
	for _, r := range []request{
		{method: "GET", path: "/v1/users/" + in},
		{method: "PUT", path: "/v1/users/" + in, body: map[string]any{"name": "x"}},
		{method: "DELETE", path: "/v1/users/" + in},
		{method: "PUT", path: "/v1/bans/" + in, body: map[string]any{"duration": "1h"}},
		{method: "PUT", path: "/v1/users/ann/friends/" + in},
		{method: "PUT", path: "/v1/users/" + in + "/friends/ann"},
		{method: "GET", path: "/v1/attendance/users/" + in},
		{method: "GET", path: "/v1/sessions?kind=" + in + "%21"},
	} {
		statuses, long := []int{bad}, len(text) > 1<<15
		if long || text == "" {
			statuses = append(statuses, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestHeaderFieldsTooLarge)
		}
		status, body, err := h.server.call(r)
		if long && err != nil {
			continue // the server hung up while the path was still being sent
		}
		require.NoError(h.t, err, "%s %.80q", r.method, r.path)
		require.Contains(h.t, statuses, status, "%s %.80q: %.200s", r.method, r.path, body)
	}
}

// view is all that the server tells of the witnesses, and of lists that
// others must not come into.
func (h *hostility) view() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	paths := []string{"/v1/sessions?limit=1000", "/v1/bans"}
	for _, w := range witnesses {
		in := inPath(w)
		paths = append(paths, "/v1/users/"+in, "/v1/users/"+in+"/friends", "/v1/attendance/users/"+in, "/v1/sessions?user="+in)
	}
	for _, path := range paths {
		status, text, err := h.server.call(request{method: "GET", path: path})
		require.NoError(h.t, err)
		require.Equal(h.t, http.StatusOK, status)
		out[path] = string(text)
	}
	return out
}

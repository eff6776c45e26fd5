package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// script draws what two servers are asked, step after step. The same seed draws
// the same, as far as the servers answer the same.
type script struct {
	seed    uint64
	rng     *rand.Rand
	today   rollcall.Day
	steps   int
	users   []string
	kinds   []string
	counts  counts         // of what there is to name
	tokens  []sideToken    // of one side
	paused  []ask          // lists that go on
	gone    map[int]bool   // sessions of which nothing is known for sure
	touched []time.Time    // when sessions were last seen, for windows that none is at the edge of
	tally   map[string]int // by route and status
}

// counts are how many sessions, keys and cursors there are.
type counts struct{ sessions, keys, cursors int }

// The keys that the prologue makes, by number.
const (
	asAdmin  = adminKey
	asReader = "$key0$"
	asWriter = "$key1$"
	spentKey = 2 // is revoked
)

// unknown is a session id that no login returned, and unknownToken a token.
var (
	unknown      = rollcall.NewSessionID(noon, "ghost", 42).String()
	unknownToken = "rct_" + base64.RawURLEncoding.EncodeToString(make([]byte, 34))
)

func newScript(seed uint64, day rollcall.Day) *script {
	return &script{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), today: day,
		users: []string{
			"ann", "Ann", "bob", "7", "007", "1001", "x y", "a/b", "ü 🙂", "*", "rc:{0}:seen", "%41", "a?b#c", "18446744073709551616",
			strings.Repeat("l", 128),
		},
		kinds: []string{"", "", "user", "office", "client", "a-b_9"},
		gone:  map[int]bool{}, tally: map[string]int{},
	}
}

// prologue makes a reader's, a writer's and a third key.
func (s *script) prologue() []ask {
	var out []ask
	for i, role := range []string{"reader", "writer", "writer"} {
		out = append(out, ask{method: http.MethodPost, path: "/v1/keys", body: map[string]any{"name": fmt.Sprint("key ", i), "role": role}, as: asAdmin})
	}
	out[2].body = map[string]any{"role": "writer", "ttl": "1h"} // without a name its id is the actor
	return append(out,
		ask{method: http.MethodGet, path: "/v1/keys", as: asAdmin},
		ask{method: http.MethodGet, path: "/healthz"},
		ask{method: http.MethodGet, path: "/readyz"},
	)
}

// epilogue asks for everything there is.
func (s *script) epilogue() []ask {
	var out []ask
	for _, as := range []string{asAdmin, asReader} {
		for _, path := range []string{
			"/v1/sessions?limit=7", "/v1/sessions?limit=7&sort=login_at", "/v1/sessions?limit=7&sort=-seen_at", "/v1/bans?limit=2",
		} {
			out = append(out, ask{method: http.MethodGet, path: path, as: as, walk: true})
		}
		out = append(out,
			ask{method: http.MethodGet, path: "/v1/online?limit=4", as: as, walk: true, order: bySecond},
			ask{method: http.MethodGet, path: "/v1/online/count?window=all", as: as},
			ask{method: http.MethodPost, path: "/v1/online/status", body: map[string]any{"users": s.users}, as: as},
			ask{method: http.MethodGet, path: "/v1/stats", as: as},
		)
		for _, u := range s.users {
			out = append(out,
				ask{method: http.MethodGet, path: "/v1/users/" + inPath(u), as: as},
				ask{method: http.MethodGet, path: "/v1/users/" + inPath(u) + "/friends?limit=1000", as: as},
				ask{method: http.MethodGet, path: "/v1/attendance/users/" + inPath(u) + "?from=2017-01-01&to=2026-12-31", as: as},
			)
		}
	}
	return append(out, s.figures("?from=2017-01-01&to="+s.today.String()+"&period=month")...)
}

// figures asks all that is asked of a range of days.
func (s *script) figures(query string) []ask {
	var out []ask
	for _, route := range []string{"series", "retention", "lifecycle", "stickiness", "streaks"} {
		q := query
		if route != "retention" && route != "lifecycle" {
			q, _, _ = strings.Cut(query, "&period")
		}
		out = append(out, ask{method: http.MethodGet, path: "/v1/attendance/" + route + q, as: asReader})
	}
	return out
}

// see learns from one side how much there is to name.
func (s *script) see(one *serverSide) {
	s.counts, s.tokens = counts{len(one.sessions), len(one.keys), len(one.cursors)}, one.tokens
}

// took enters a step that was taken, and how many cursors there are by now.
func (s *script) took(a ask, status, cursors int) {
	s.steps++
	if cursors > s.counts.cursors && a.pauses() {
		path, _, _ := strings.Cut(a.path, "&cursor=")
		a.path = fmt.Sprintf("%s&cursor=$cursor%d$", path, cursors-1)
		s.paused = append(s.paused, a)
		s.paused = s.paused[max(0, len(s.paused)-8):]
	}
	route, _, _ := strings.Cut(a.path, "?")
	for _, part := range s.users {
		route = strings.ReplaceAll(route, "/"+inPath(part), "/U")
	}
	s.tally[fmt.Sprint(a.method, " ", placeholder.ReplaceAllString(route, "X"), " ", status)]++
	if !a.reads() {
		s.touched = append(s.touched, time.Now())
		s.touched = s.touched[max(0, len(s.touched)-200):]
	}
}

// pauses tells that a list may go on after other things have happened. The
// order must be the same for all engines, and the conditions at all times.
func (a ask) pauses() bool {
	path, rest, _ := strings.Cut(a.path, "?")
	return a.method == http.MethodGet && a.order == exact && !a.walk && rest != "" &&
		!strings.Contains(rest, "page=") && !strings.Contains(rest, "seen_within") && !strings.HasSuffix(path, "/online")
}

// resume goes on with a list.
func (s *script) resume() ask {
	if len(s.paused) == 0 {
		return s.list()
	}
	i := s.rng.IntN(len(s.paused))
	a := s.paused[i]
	s.paused = slices.Delete(s.paused, i, i+1)
	return a
}

func (s *script) forget(session int) { s.gone[session] = true }

// requireRich makes sure that the script did not go round in circles.
func (s *script) requireRich(t *testing.T) {
	t.Helper()
	done, refused := map[string]bool{}, 0
	for what, n := range s.tally {
		if status := what[strings.LastIndexByte(what, ' ')+1:]; status < "400" {
			done[what] = true
		} else {
			refused += n
		}
	}
	require.Greater(t, len(done), 35, "%v", slices.Sorted(maps.Keys(done)))
	require.Greater(t, refused, s.steps/20)
}

// one draws from a list.
func one[T any](s *script, list ...T) T { return list[s.rng.IntN(len(list))] }

// chance is true in one of n cases.
func (s *script) chance(n int) bool { return s.rng.IntN(n) == 0 }

func (s *script) user() string {
	if s.chance(40) {
		return "nobody"
	}
	if s.chance(3) { // some are busier than others
		return s.users[s.rng.IntN(3)]
	}
	return one(s, s.users...)
}

func (s *script) some(most int) []string {
	out := make([]string, s.rng.IntN(most+1))
	for i := range out {
		out[i] = s.user()
	}
	return out
}

// session draws a session's number, mostly of a late one; false if there is
// none yet.
func (s *script) session() (int, bool) {
	for range 20 {
		if s.counts.sessions == 0 {
			break
		}
		i := s.rng.IntN(s.counts.sessions)
		if !s.chance(3) {
			i = max(0, s.counts.sessions-1-s.rng.IntN(20))
		}
		if !s.gone[i] {
			return i, true
		}
	}
	return 0, false
}

// id draws the name of a session, now and then of one that is none.
func (s *script) id() string {
	i, ok := s.session()
	if !ok || s.chance(25) {
		return unknown
	}
	return fmt.Sprintf("$id%d$", i)
}

// token draws a token, mostly of a late session.
func (s *script) token() string {
	n := len(s.tokens)
	if n == 0 || s.chance(25) {
		return unknownToken
	}
	i := s.rng.IntN(n)
	if !s.chance(3) {
		i = max(0, n-1-s.rng.IntN(20))
	}
	if s.gone[s.tokens[i].session] {
		return unknownToken
	}
	return fmt.Sprintf("$token%d$", i)
}

// reader draws a caller that may read.
func (s *script) reader() string { return one(s, asAdmin, asReader) }

func (s *script) writer() string { return one(s, asAdmin, asWriter, asWriter) }

// next draws a step.
func (s *script) next() ask {
	weighted := []struct {
		weight int
		draw   func() ask
	}{
		{16, s.login},
		{4, s.touch},
		{3, s.touchMany},
		{4, s.verify},
		{3, s.lookup},
		{10, s.list},
		{6, s.resume},
		{3, s.query},
		{3, s.change},
		{4, s.kick},
		{1, s.kickMany},
		{3, s.mine},
		{3, s.ban},
		{5, s.beat},
		{7, s.online},
		{1, s.clear},
		{5, s.account},
		{1, s.erase},
		{8, s.friends},
		{7, s.mark},
		{10, s.attendance},
		{2, s.key},
		{7, s.bad},
	}
	sum := 0
	for _, w := range weighted {
		sum += w.weight
	}
	n := s.rng.IntN(sum)
	for _, w := range weighted {
		if n -= w.weight; n < 0 {
			return w.draw()
		}
	}
	return s.beat()
}

// inPath writes a text as one element of a path.
func inPath(text string) string { return url.PathEscape(text) }

// query writes parameters, leaving out empty ones. Placeholders stay as they
// are.
func query(path string, pairs ...string) string {
	join := "?"
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		path += join + pairs[i] + "=" + strings.ReplaceAll(url.QueryEscape(pairs[i+1]), "%24", "$")
		join = "&"
	}
	return path
}

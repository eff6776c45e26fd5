package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

// noon is a Tuesday.
var noon = time.Date(2026, 2, 3, 12, 0, 0, 789e6, time.UTC)

// side is one of two services that are asked the same: the library itself, and
// the client of a server over the same kind of engine.
type side struct {
	service
	roll     *rollcall.Roll
	server   *httptest.Server // nil for the library
	actor    string           // to name in kicks and bans; the server takes the key's name
	sessions []rollcall.SessionID
	tokens   []string
	keys     []string // ids
	hooks    []string // ids of webhooks
	cursor   string   // of the last page
	place    rollcall.EventID
}

// keyName is the name of the key that the client has.
const keyName = "operations"

func newSide(t testing.TB, clock rollcall.Clock, remote bool) *side {
	t.Helper()
	engine, err := local.Open(t.TempDir(), local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	policies, err := rollcall.NewPolicies(
		rollcall.Policy{App: "strict", MaxSessions: 2, Overflow: rollcall.Reject},
		rollcall.Policy{Device: "web", MaxPerDevice: 3},
	)
	require.NoError(t, err)
	zone, err := time.LoadLocation("Asia/Shanghai")
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{
		Clock: clock, Secret: []byte(strings.Repeat("s", 32)), Policies: policies, Timezone: zone,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, roll.Close()) })
	_, text, err := roll.CreateKey(t.Context(), rollcall.NewKey{Name: keyName, Role: rollcall.RoleAdmin})
	require.NoError(t, err)
	s := &side{service: roll, roll: roll, actor: keyName}
	if !remote {
		return s
	}
	handler, err := httpapi.New(roll, httpapi.Options{})
	require.NoError(t, err)
	s.server = httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.EndStreams()
		s.server.Close()
	})
	c, err := client.New(s.server.URL+"/", client.Options{Key: text})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	s.service, s.actor = c, ""
	return s
}

// TestClientAnswersAsTheLibraryDoes asks both the same, step after step.
func TestClientAnswersAsTheLibraryDoes(t *testing.T) {
	clock := rollcall.NewManualClock(noon)
	sides := [2]*side{newSide(t, clock, false), newSide(t, clock, true)}
	s := &script{rng: rand.New(rand.NewPCG(11, 7)), today: sides[0].roll.Today()}
	called := map[string]int{}
	wrong, failed, answered := 0, 0, map[string]bool{}
	ask := func(step step) {
		clock.Advance(time.Millisecond) // within one, ids decide orders, and they are random
		var said [2]string
		for i, one := range sides {
			answer, err := step.run(rollcall.WithActor(t.Context(), "the script"), one) // which the server does not hear of
			if err != nil {
				answer = nil
			}
			said[i] = one.told(t, answer, err)
			if i == 0 && err != nil {
				failed++
			} else if err == nil {
				answered[step.method] = true
			}
		}
		if !assert.Equal(t, said[0], said[1], "%s: the library says the first", step.method) {
			if wrong++; wrong == 5 {
				t.FailNow()
			}
		}
		called[step.method]++
	}
	for range 600 {
		ask(s.next())
		s.sessions = len(sides[0].sessions)
		if s.rng.IntN(4) == 0 {
			clock.Advance(time.Duration(s.rng.IntN(90_000)) * time.Millisecond)
			for _, one := range sides {
				require.NoError(t, one.roll.Tick(t.Context()))
			}
		}
	}
	for _, step := range s.edges() {
		ask(step)
	}
	require.Greater(t, failed, 40)
	for method := range reflect.TypeFor[service]().Methods() {
		require.Positive(t, called[method.Name], "%s was never asked", method.Name)
		require.True(t, answered[method.Name], "%s only failed", method.Name)
	}
}

// told is an answer as both sides can give it: sessions by their number, times in
// UTC, without what is random or not sent.
func (s *side) told(t testing.TB, answer any, err error) string {
	t.Helper()
	var e *rollcall.Error
	if errors.Is(err, rollcall.ErrEventsGone) {
		err = &rollcall.Error{Code: "events are gone"}
	}
	if err != nil {
		require.True(t, errors.As(err, &e), "%v", err)
		told := *e
		told.Err, told.Detail = nil, ""
		if told.Field != "" { // of several at fault either may name another
			told.Field = "named"
		}
		e = &told
	}
	text, err := json.Marshal(map[string]any{"answer": answer, "error": e})
	require.NoError(t, err)
	plain := string(text)
	for i, id := range s.sessions {
		plain = strings.ReplaceAll(plain, id.String(), fmt.Sprint("session ", i))
	}
	for i, id := range s.keys {
		plain = strings.ReplaceAll(plain, id, fmt.Sprint("key ", i))
	}
	var tree any
	require.NoError(t, json.Unmarshal([]byte(plain), &tree))
	out, err := json.MarshalIndent(simplify(tree), "", " ")
	require.NoError(t, err)
	return string(out)
}

// simplify makes lists and maps without anything the same as none, and times UTC.
// Of a session it leaves out what is not sent.
func simplify(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		if end, ok := v["End"].(map[string]any); ok {
			delete(end, "Actor")
		}
		delete(v, "DeviceID")
		for k, x := range v {
			if x = simplify(x); x != nil {
				out[k] = x
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = simplify(v[i])
		}
		return v
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return at.UTC().Format(time.RFC3339Nano)
		}
		return v
	default:
		return v
	}
}

// step is one question to either side.
type step struct {
	method string
	run    func(context.Context, *side) (any, error)
}

// script draws steps.
type script struct {
	rng      *rand.Rand
	today    rollcall.Day
	sessions int // begun so far
}

func one[T any](s *script, list ...T) T { return list[s.rng.IntN(len(list))] }

func (s *script) user() string {
	return one(s, "ann", "bob", "7", "x y", "a/b", "..", "ü 🙂", "%41", "a?b#c", `\ufffd`)
}

func (s *script) badUser() string { return one(s, "", "\xff", strings.Repeat("l", 129), "a\nb") }

// anyUser is sometimes none that can be.
func (s *script) anyUser() string {
	if s.rng.IntN(25) == 0 {
		return s.badUser()
	}
	return s.user()
}

func (s *script) days() rollcall.DayRange {
	to := s.today - rollcall.Day(s.rng.IntN(10))
	return rollcall.DayRange{From: to - rollcall.Day(s.rng.IntN(40)) + 2, To: to} // at times the wrong way round
}

func (s *script) page() rollcall.PageRequest {
	return one(s,
		rollcall.PageRequest{Limit: 3}, rollcall.PageRequest{Limit: 3}, rollcall.PageRequest{Limit: 1000}, rollcall.PageRequest{},
		rollcall.PageRequest{Limit: 2, Number: 2}, rollcall.PageRequest{Limit: -1}, rollcall.PageRequest{Limit: 1001}, rollcall.PageRequest{Limit: 3, Cursor: "nonsense"},
	)
}

// session chooses a session by number, and says how to find its id and its token
// on a side. One beyond the last is unknown.
func (s *script) session() (id func(*side) rollcall.SessionID, ref func(*side) rollcall.SessionRef) {
	n, byToken := s.rng.IntN(s.sessions+1), s.rng.IntN(2) == 0
	if s.rng.IntN(3) > 0 { // rather one of the last
		n = max(0, s.sessions-1-s.rng.IntN(10))
	}
	id = func(one *side) rollcall.SessionID {
		if n < len(one.sessions) {
			return one.sessions[n]
		}
		return rollcall.NewSessionID(noon, "ghost", 42)
	}
	return id, func(one *side) rollcall.SessionRef {
		if byToken && n < len(one.tokens) {
			return rollcall.SessionRef{Token: one.tokens[n]}
		}
		return rollcall.SessionRef{ID: id(one)}
	}
}

// login makes a login and notes what came of it.
func (s *script) login() step {
	l := rollcall.Login{
		User: s.anyUser(), Kind: one(s, "", "", "staff", "No Kind"), Name: one(s, "", "Ann A", "Zoë"), App: one(s, "", "chat", "strict"),
		Device: one(s, "", "web", "web", "ios"), DeviceID: one(s, "", "", "phone 1"), UserAgent: one(s, "", "Mozilla/5.0"),
	}
	if s.rng.IntN(3) == 0 {
		l.IP = mustAddr(one(s, "192.0.2.1", "2001:db8::1"))
		l.Attrs = map[string]string{"city": one(s, "Ulm", "Bonn"), "<&>": "\u2028"}
	}
	evict, _ := s.session()
	if s.rng.IntN(4) > 0 {
		evict = nil
	}
	return step{"Login", func(ctx context.Context, one *side) (any, error) {
		l := l
		if evict != nil {
			l.Evict = []rollcall.SessionID{evict(one)}
		}
		return one.begin(ctx, l)
	}}
}

// begin logs in, and leaves out of the answer what differs.
func (s *side) begin(ctx context.Context, l rollcall.Login) (any, error) {
	in, err := s.Login(ctx, l)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.sessions, in.Session.ID) {
		s.sessions, s.tokens = append(s.sessions, in.Session.ID), append(s.tokens, in.Token)
	}
	return map[string]any{"session": in.Session, "ended": in.Ended, "beat key": in.BeatKey == s.roll.BeatKey(in.Session.ID)}, nil
}

// paged notes the cursor of a page and hides it.
func paged[T any](s *side, p rollcall.Page[T], err error) (any, error) {
	s.cursor = p.Next
	more := p.Next != ""
	p.Next = ""
	return map[string]any{"page": p, "more": more}, err
}

// shares writes a triangle so that JSON takes it.
func shares(r rollcall.Retention) any {
	mean := make([]string, len(r.Mean))
	for i, m := range r.Mean {
		mean[i] = "none"
		if !math.IsNaN(m) {
			mean[i] = fmt.Sprint(m)
		}
	}
	return map[string]any{"query": r.Query, "rows": r.Rows, "mean": mean}
}

// next draws a step.
func (s *script) next() step {
	families := []func() step{s.login, s.login, s.aboutSession, s.aboutSession, s.kick, s.list, s.presence, s.presence, s.aboutUser, s.friends, s.marks, s.figures, s.visits, s.events}
	return one(s, families...)()
}

// methods that a client has beyond those of a Roll, and the tests that call them.
var beyond = map[string]string{
	"Backup":            "the files of Roll.Backup, packed",
	"Server":            "TestServerTellsItsTime",
	"CreateConsoleLink": "TestALinkToTheConsoleIsMade",
	"AllSessions":       "TestListsAreWalkedByCursor",
	"AllOnline":         "TestListsAreWalkedByCursor",
	"AllKnownUsers":     "TestListsAreWalkedByCursor",
	"AllFriends":        "TestListsAreWalkedByCursor",
	"AllOnlineFriends":  "TestListsAreWalkedByCursor",
	"AllBans":           "TestListsAreWalkedByCursor",
	"AllActive":         "TestListsAreWalkedByCursor",
	"AllAudit":          "TestTheAuditTrailIsWalkedAndChecked",
	"WholeTimeline":     "TestATimelineIsWalkedByCursor",
	"Events":            "TestEventsGoOnAfterAConnectionIsLost",
	"TestWebhook":       "TestAWebhookIsTested",
}

// without are the methods of a Roll that a client does not have, and why.
var without = map[string]string{
	"As":                "the role of the key decides what is seen",
	"Authenticate":      "the server does, with every request",
	"NewConsoleLink":    "CreateConsoleLink has the link; the key is the client's own",
	"SignIn":            "for pages of browsers",
	"ConsoleSession":    "for pages of browsers",
	"UseConsoleSession": "for pages of browsers",
	"SignOut":           "for pages of browsers",
	"ConfigureAdminKey": "configuration of a server",
	"Audit":             "the server writes it",
	"ImportKey":         "for imports into the server's own engine",
	"ImportWebhook":     "for imports into the server's own engine",
	"BeatKey":           "LoggedIn has it; the secret stays with the server",
	"KeyBeatKey":        "the secret stays with the server",
	"Pseudonym":         "the secret stays with the server",
	"SecretID":          "the secret stays with the server",
	"Export":            "a command of the server's machine",
	"ExportParts":       "a command of the server's machine",
	"Import":            "a command of the server's machine",
	"Compact":           "a command of the server's machine",
	"Backup":            "Client.Backup fetches the packed files",
	"AttendanceSpan":    "no route",
	"DaysOf":            "Attended says them with the streak",
	"SetPolicies":       "configuration of a server",
	"Tick":              "the server does",
	"Now":               "Server",
	"Today":             "Server",
	"Timezone":          "Server",
	"DayAt":             "Server has the time zone",
	"DayStart":          "Server has the time zone",
	"HourAt":            "Server has the time zone",
	"Window":            "the server's own window is taken for 0",
	"NewEventTicket":    "for pages of browsers",
	"OpenEventTicket":   "the server does",
	"ConsoleSessionOf":  "the server does",
	"StopWebhook":       "the server does",
	"EndReplay":         "the server does",
	"FriendsOfMany":     "for the streams of a server: a client reads one list at a time",
	"WebhookKeys":       "the secret stays with the server",
}

// TestEveryMethodOfRollHasItsCounterpart compares the method sets.
func TestEveryMethodOfRollHasItsCounterpart(t *testing.T) {
	shared := map[string]bool{}
	for m := range reflect.TypeFor[service]().Methods() {
		shared[m.Name] = true // the compiler has compared the types
	}
	for m := range reflect.TypeFor[*rollcall.Roll]().Methods() {
		_, missing := without[m.Name]
		require.True(t, shared[m.Name] != missing, "%s must stand either in service or in without", m.Name)
		delete(shared, m.Name)
	}
	require.Empty(t, slices.Collect(maps.Keys(shared)))
	for m := range reflect.TypeFor[*client.Client]().Methods() {
		_, more := beyond[m.Name]
		_, ok := reflect.TypeFor[service]().MethodByName(m.Name)
		require.True(t, ok != more, "%s must stand either in service or in beyond", m.Name)
	}
}

// clientOf is the client that a side is.
func clientOf(t *testing.T, s *side) *client.Client {
	t.Helper()
	c, ok := s.service.(*client.Client)
	require.True(t, ok)
	return c
}

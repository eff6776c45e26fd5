package enginetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// Store is one set of data, empty at first, which outlives the engines that are
// opened on it. The suite has one engine open at a time, and closes each.
type Store interface {
	Open() (rollcall.Engine, error)
}

// Crasher is a [Store] that can fail like a machine does. Crash is called with
// an engine open: what the engine had made durable by then is what the next
// Open finds, and the engine left behind is closed without touching it.
type Crasher interface {
	Store
	Crash()
}

// Opener makes a new, empty store. What the store needs to release it registers
// with t.Cleanup.
type Opener func(t testing.TB) Store

// test is a case of the suite: its name is the sentence it holds engines to.
type test struct {
	name string
	run  func(h *harness)
}

// group is cases about one subject. The long ones put together what the others
// hold one by one, or ask it of much data.
type group struct {
	name        string
	tests, long []test
}

func groups() []group {
	return []group{
		{name: "policy", tests: policyTests()},
		{name: "evict", tests: evictTests()},
		{name: "limits", tests: limitTests()},
		{name: "retry", tests: retryTests()},
		{name: "sessions", tests: sessionTests()},
		{name: "expiry", tests: expiryTests()},
		{name: "kick", tests: kickTests()},
		{name: "bans", tests: banTests()},
		{name: "list", tests: listTests(), long: longListTests()},
		{name: "walk", tests: walkTests()},
		{name: "presence", tests: presenceTests()},
		{name: "gone", tests: goneTests()},
		{name: "friends", tests: friendTests()},
		{name: "attendance", tests: attendanceTests()},
		{name: "figures", tests: figureTests(), long: longFigureTests()},
		{name: "archival", tests: archivalTests(), long: longArchivalTests()},
		{name: "visits", tests: visitTests()},
		{name: "events", tests: append(eventTests(), eventKeptTests()...)},
		{name: "transitions", tests: transitionTests()},
		{name: "leave", tests: leaveTests()},
		{name: "users", tests: userTests()},
		{name: "kinds", tests: kindTests()},
		{name: "invisible", tests: invisibleTests()},
		{name: "outage", tests: outageTests()},
		{name: "erase", tests: eraseTests()},
		{name: "restart", tests: restartTests()},
		{name: "admin", tests: adminTests()},
		{name: "webhooks", tests: webhookTests()},
		{name: "samples", tests: sampleTests()},
		{name: "console", tests: consoleTests(), long: longConsoleTests()},
		{name: "counts", tests: sessionCountTests()},
		{name: "audit", tests: auditTests()},
		{name: "timeline", tests: timelineTests()},
	}
}

// Run runs the whole suite, each case on a store of its own.
func Run(t *testing.T, open Opener) {
	for _, g := range groups() {
		t.Run(g.name, func(t *testing.T) { runCases(t, open, slices.Concat(g.tests, g.long)) })
	}
}

// RunShort runs every nth case of the suite but the long ones, from the case first on.
// It is for one more way to run or set up an engine that the whole suite runs on
// already: of several ways each may take other cases.
func RunShort(t *testing.T, open Opener, first, nth int) {
	turn := 0
	for _, g := range groups() {
		var some []test
		for _, c := range g.tests {
			if turn%nth == first {
				some = append(some, c)
			}
			turn++
		}
		if len(some) > 0 {
			t.Run(g.name, func(t *testing.T) { runCases(t, open, some) })
		}
	}
}

func runCases(t *testing.T, open Opener, cases []test) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, t, t.Context(), open)
			h.open(rollcall.Options{})
			defer h.close()
			c.run(h)
		})
	}
}

// harness is a Roll over an engine on a store, and the clock they go by. The
// assertions it carries end the case at the first failure.
type harness struct {
	*require.Assertions
	ctx     context.Context
	outer   testing.TB
	opener  Opener
	store   Store
	options rollcall.Options
	clock   *rollcall.ManualClock
	engine  rollcall.Engine
	roll    *rollcall.Roll
	marks   int // sentinels drawn by events
	turn    int // of what is asked by turns
	asked   int // how often everything was asked
}

// start is when every case begins: a Wednesday noon, so that a case may move
// some hours without leaving the day.
func start() time.Time { return time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC) }

func newHarness(t require.TestingT, outer testing.TB, ctx context.Context, opener Opener) *harness {
	return &harness{
		Assertions: require.New(t), ctx: ctx, outer: outer, opener: opener,
		store: opener(outer), clock: rollcall.NewManualClock(start()),
	}
}

// open opens an engine on the store, and a Roll with the options over it.
func (h *harness) open(o rollcall.Options) {
	h.options = o
	engine, err := h.store.Open()
	h.NoError(err)
	h.engine = engine
	h.configure()
}

func (h *harness) configure() {
	o := h.options
	o.Clock, o.Secret = h.clock, []byte("the secret of the conformance suite")
	roll, err := rollcall.New(h.engine, o)
	h.NoError(err)
	h.roll = roll
}

// close closes the engine as a server that is stopped does.
func (h *harness) close() {
	if h.engine == nil {
		return
	}
	engine := h.engine
	h.engine = nil
	h.NoError(h.roll.Close())
	h.NoError(engine.Close())
}

// restart stops the engine and opens the same data again.
func (h *harness) restart() {
	h.close()
	h.open(h.options)
}

// fresh begins again with an empty store and other options.
func (h *harness) fresh(o rollcall.Options) {
	h.close()
	h.store = h.opener(h.outer)
	h.open(o)
}

// policies begins again with an empty store and these policies.
func (h *harness) policies(list ...rollcall.Policy) {
	h.fresh(rollcall.Options{Policies: h.newPolicies(list...)})
}

func (h *harness) newPolicies(list ...rollcall.Policy) *rollcall.Policies {
	p, err := rollcall.NewPolicies(list...)
	h.NoError(err)
	return p
}

// advance moves the clock without a tick.
func (h *harness) advance(d time.Duration) { h.clock.Advance(d) }

func (h *harness) tick() { h.NoError(h.roll.Tick(h.ctx)) }

// ticksUntil ticks until a condition holds, at one instant: what takes longer than a tick
// may is left to the next ones.
func (h *harness) ticksUntil(what string, holds func() bool) {
	for range 1000 {
		h.tick()
		if holds() {
			return
		}
	}
	h.Fail("many ticks did not do it", what)
}

// live moves the clock by d as a server lives it: with a tick every second.
func (h *harness) live(d time.Duration) {
	for end := h.clock.Now().Add(d); h.clock.Now().Before(end); {
		h.advance(min(time.Second, end.Sub(h.clock.Now())))
		h.tick()
	}
}

func (h *harness) now() time.Time { return h.clock.Now() }

// code requires an error of a code and returns it.
func (h *harness) code(want rollcall.Code, err error) *rollcall.Error {
	h.Error(err)
	h.Equal(want, rollcall.CodeOf(err), "%v", err)
	var e *rollcall.Error
	h.ErrorAs(err, &e)
	return e
}

// all is a page request for everything a case has made.
func all() rollcall.PageRequest { return rollcall.PageRequest{Limit: rollcall.MaxLimit} }

// maxPages ends a walk that would go round in circles.
const maxPages = 100_000

// walk follows a list's cursor from its first page to its last. Every page but
// the last must be full; between is called after each page that has a next.
func walk[T any](h *harness, limit int, list func(rollcall.PageRequest) (rollcall.Page[T], error), between func(page int)) []T {
	var items []T
	p := rollcall.PageRequest{Limit: limit}
	for page := 1; page < maxPages; page++ {
		got, err := list(p)
		h.NoError(err)
		h.LessOrEqual(len(got.Items), limit)
		items = append(items, got.Items...)
		if got.Next == "" {
			return items
		}
		h.Len(got.Items, limit, "page %d is not the last and not full", page)
		p.Cursor = got.Next
		if between != nil {
			between(page)
		}
	}
	h.Fail("the walk does not end")
	return nil
}

// numbered makes n names: prefix0000, prefix0001, …, in the order of text.
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	return out
}

func ptr[T any](v T) *T { return &v }

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// differentialPolicies give every limit and every way to make room a turn.
const differentialPolicies = `[
	{"idle_timeout": "1h"},
	{"device": "web", "max_per_device": 3},
	{"app": "single", "max_sessions": 1},
	{"kind": "office", "max_sessions": 3, "overflow": "evict_idle"},
	{"app": "strict", "max_sessions": 2, "overflow": "reject"},
	{"device": "tv", "idle_timeout": "3s"},
	{"app": "bank", "device": "web", "idle_timeout": "1h", "lifetime": "4s", "max_per_device": 2, "overflow": "reject"}
]`

// sharedSecret is the servers' secret, where they must have the same one.
var sharedSecret = strings.Repeat("5e", 32)

// duel is two servers that are asked the same and must answer the same.
type duel struct {
	t      *testing.T
	sides  [2]*serverSide
	script *script
	steps  []string // the last ones
	done   time.Time
}

// lastSteps is how many steps are told of when an answer differs.
const lastSteps = 20

// TestDifferential asks two servers of different engines the same, step after
// step, and expects the same answers. E2E_SEED and E2E_STEPS choose another
// script, whose other engine is one Redis if the seed is even, else a Cluster.
func TestDifferential(t *testing.T) {
	binary := buildBinary(t)
	seeds, steps := []uint64{1, 2, 3}, testbudget.Budget{Least: 250, Most: 1200, Time: 2 * time.Second}
	if text := os.Getenv("E2E_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		seeds = []uint64{seed}
	}
	if text := os.Getenv("E2E_STEPS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		steps.Least, steps.Most = n, n
	}
	others := []backend{
		sharedRedis(t),
		sharedCluster(t),
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			differential(t, binary, others[seed%2], seed, steps)
		})
	}
}

func differential(t *testing.T, binary string, other backend, seed uint64, steps testbudget.Budget) {
	zone := []string{"UTC", "Asia/Shanghai", "America/New_York"}[seed%3]
	common := []string{
		"--policies", differentialPolicies, "--secret", sharedSecret, "--trusted-proxies", "127.0.0.1", "--log-level", "error",
		"--archive-schedule", "off", "--archive-keep-hot", "3d", "--timezone", zone, "--attendance-on", []string{"beat", "manual", "login"}[seed%3], "--presence-window", []string{"5m", "3s"}[seed/2%2],
	}
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	d := &duel{t: t, script: newScript(seed, rollcall.DayOf(time.Now(), location))}
	d.sides[0] = newSide(start(t, binary, t.TempDir(), common...))
	archived := "sqlite:" + filepath.Join(t.TempDir(), "archive.db")
	d.sides[1] = newSide(start(t, binary, t.TempDir(), append(append(common, "--archive-dsn", archived), other.flags(other.store())...)...))
	for i, engine := range []string{"local", "redis"} {
		var stats struct{ Engine string }
		d.sides[i].get(&stats, request{method: http.MethodGet, path: "/v1/stats"}, http.StatusOK)
		require.Equal(t, engine, stats.Engine)
	}
	for _, a := range d.script.prologue() {
		d.step(a)
	}
	for i := range testbudget.Rounds(t, steps) {
		if i%archiveEvery == archiveEvery-1 {
			d.archive()
		}
		d.calm()
		d.script.see(d.sides[0])
		d.step(d.script.next())
	}
	for _, a := range d.script.epilogue() {
		d.step(a)
	}
	t.Logf("seed %d: %d steps, %d kinds of answers", seed, d.script.steps, len(d.script.tally))
	d.script.requireRich(t)
	for _, s := range d.sides {
		s.kill()
	}
}

// archiveEvery is after how many steps old days leave both servers.
const archiveEvery = 150

// archive has a run of the archive done on both sides.
func (d *duel) archive() {
	d.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for _, s := range d.sides {
		var run struct {
			ID    int64
			State string
			Error string
		}
		s.get(&run, request{method: http.MethodPost, path: "/v1/archive/runs"}, http.StatusAccepted)
		for run.State == "running" {
			<-again.C
			var list struct{ Items []json.RawMessage }
			s.get(&list, request{method: http.MethodGet, path: "/v1/archive/runs?limit=1"}, http.StatusOK)
			require.NoError(d.t, json.Unmarshal(list.Items[0], &run))
		}
		require.Equal(d.t, "completed", run.State, "%s", run.Error)
	}
	d.steps = append(d.steps, "old days leave")
}

// step asks both sides and compares what they say. What the end of a second or
// a deadline came into is asked again if it only reads, and left out at last.
func (d *duel) step(a ask) {
	d.t.Helper()
	d.steps = append(d.steps, a.String())
	d.steps = d.steps[max(0, len(d.steps)-lastSteps):]
	for tries := time.Now().Add(patience); time.Now().Before(tries); {
		d.calm()
		began := time.Now()
		answers := d.both(a)
		calm := began.Unix() == time.Now().Unix() && !d.crossed(began)
		if !calm && a.reads() {
			continue
		}
		if calm || a.path != "/v1/online/clear" {
			d.compare(a, answers)
		}
		d.script.took(a, answers[0].status, len(d.sides[0].cursors))
		if !calm {
			d.steady(began)
		}
		d.settle(a)
		return
	}
	d.t.Logf("left out, as no second was long enough for it: %s", a)
}

// both asks both sides at once.
func (d *duel) both(a ask) [2]answer {
	d.t.Helper()
	var answers [2]answer
	var faults [2]error
	var asked sync.WaitGroup
	for i, s := range d.sides {
		asked.Go(func() {
			if a.walk {
				answers[i], faults[i] = s.walk(a)
			} else {
				answers[i], faults[i] = s.send(a)
			}
		})
	}
	asked.Wait()
	d.done = time.Now()
	for i, err := range faults {
		require.NoError(d.t, err, "side %d: %s\n%s", i, a, d.sides[i].stderr.String())
	}
	return answers
}

// maxPages is more than any list of a script has.
const maxPages = 1000

// walk follows a list's cursor to the end, and returns all items as one answer.
func (s *serverSide) walk(a ask) (answer, error) {
	var out answer
	var all, pages []any
	path := a.path
	for range maxPages {
		page, err := s.send(ask{method: a.method, path: path, body: a.body, as: a.as})
		if err != nil || page.status != http.StatusOK {
			return page, err
		}
		if out.status == 0 {
			out = page
		}
		object := page.body.(map[string]any)
		items := object["items"].([]any)
		all, pages = append(all, items...), append(pages, strconv.Itoa(len(items)))
		next, more := object["next"].(string)
		if !more {
			out.body = map[string]any{"items": all, "total": object["total"], "pages": pages}
			return out, nil
		}
		path = a.path + "&cursor=" + next
	}
	return out, fmt.Errorf("a walk does not end: %s", a)
}

func (d *duel) compare(a ask, answers [2]answer) {
	d.t.Helper()
	difference := differ(a, d.sides, answers)
	if difference == "" {
		require.NotEqual(d.t, http.StatusInternalServerError, answers[0].status, "%s\n%s", a, d.sides[0].stderr.String())
		return
	}
	require.Fail(d.t, "the servers differ", "E2E_SEED=%d, step %d: %.2000s\n%s\n\none: %d %.8000s%.2000s\n\nother: %d %.8000s%.2000s\n\nthe last steps:\n%s",
		d.script.seed, d.script.steps, difference, a,
		answers[0].status, fmt.Sprint(d.sides[0].shared(answers[0].body)), answers[0].text,
		answers[1].status, fmt.Sprint(d.sides[1].shared(answers[1].body)), answers[1].text,
		strings.Join(d.steps, "\n"))
}

// How close a step may come to the end of a second, and to a deadline.
const (
	secondBegins = 50 * time.Millisecond
	secondEnds   = 920 * time.Millisecond
	beforeEnd    = 100 * time.Millisecond
	afterEnd     = 50 * time.Millisecond
)

// calm waits for a moment at which no second ends and no session does, so that
// both servers take the step on the same side of them; and for a millisecond of
// its own, which puts sessions into the same order.
func (d *duel) calm() {
	for {
		now := time.Now()
		wait := time.Duration(0)
		second := now.Sub(now.Truncate(time.Second))
		switch {
		case now.Sub(d.done) < 2*time.Millisecond:
			wait = time.Millisecond
		case second < secondBegins:
			wait = secondBegins - second
		case second > secondEnds:
			wait = time.Second - second + secondBegins
		default:
			wait = d.untilCalm(now)
		}
		if wait <= 0 {
			return
		}
		<-time.After(wait)
	}
}

// untilCalm returns how long it takes until no deadline is near.
func (d *duel) untilCalm(now time.Time) (wait time.Duration) {
	for _, s := range d.sides {
		for _, x := range s.sessions {
			if left := x.ends.Sub(now); left < beforeEnd && left > -afterEnd {
				wait = max(wait, left+afterEnd)
			}
		}
	}
	return wait
}

// crossed tells whether a deadline came into what began then.
func (d *duel) crossed(began time.Time) bool {
	for _, s := range d.sides {
		for _, x := range s.sessions {
			if x.ends.After(began) && x.ends.Before(time.Now().Add(afterEnd)) {
				return true
			}
		}
	}
	return false
}

// settle asks for the sessions with an end in sight that a batch of touches may
// have put off, so that their deadlines are known.
func (d *duel) settle(a ask) {
	d.t.Helper()
	if a.path != "/v1/touch" {
		return
	}
	var near []int // all of them before one is asked for, as that may wait past the end of another
	for i, x := range d.sides[0].sessions {
		if left := time.Until(x.ends); left > 0 && left < time.Minute {
			near = append(near, i)
		}
	}
	for _, i := range near {
		d.step(ask{method: http.MethodGet, path: fmt.Sprintf("/v1/sessions/$id%d$", i), as: adminKey})
	}
}

// steady makes both sides the same again after a step that they may have taken
// in different seconds, or on different sides of a deadline.
func (d *duel) steady(began time.Time) {
	d.t.Helper()
	for {
		for i, x := range d.sides[0].sessions {
			if x.ends.After(began.Add(-apart)) && x.ends.Before(time.Now().Add(apart)) {
				d.both(ask{method: http.MethodPost, path: "/v1/kicks", body: map[string]any{"session": fmt.Sprintf("$id%d$", i)}, as: adminKey})
				d.script.forget(i)
				for _, side := range d.sides {
					side.sessions[i].ends = time.Time{}
				}
			}
		}
		for _, u := range d.script.users {
			d.both(ask{method: http.MethodPut, path: "/v1/users/" + inPath(u), body: map[string]any{"invisible": false}, as: adminKey})
		}
		d.calm()
		began = time.Now()
		d.both(ask{method: http.MethodPost, path: "/v1/beats", body: map[string]any{"users": d.script.users}, as: adminKey})
		if began.Unix() == time.Now().Unix() {
			return
		}
	}
}

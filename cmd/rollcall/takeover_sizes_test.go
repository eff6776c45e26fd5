package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/client"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/takeover"
)

// handBuilt is a system built by hand, filled as the article about it says.
type handBuilt struct {
	layout      takeover.Layout
	users, long int      // how many there are, and in a long run
	names       []string // flags that name its keys
	flags       []string // other flags of the import
	back        []string // other flags of the write-back
	entries     func(users int) int
	faults      []string // that doctor must name

	fill   func(o *oldSystem)
	change func(o *oldSystem, i int) // the old system goes on, while it is followed
	use    func(o *oldSystem)        // the application goes on in Rollcall
	equal  func(o *oldSystem)        // both sides are asked the same
}

// oldSystem is such a system on a Redis of its own, and what it became.
type oldSystem struct {
	*handBuilt
	t      *testing.T
	n      int // users
	began  time.Time
	server *redistest.Server
	redis  rueidis.Client
	here   *client.Client // once it is taken over
	rng    *rand.Rand
	batch  []rueidis.Completed
}

// add queues a command; flush sends what is queued.
func (o *oldSystem) add(words ...string) {
	o.batch = append(o.batch, o.redis.B().Arbitrary(words...).Build())
	if len(o.batch) == 5000 {
		o.flush()
	}
}

func (o *oldSystem) flush() {
	o.t.Helper()
	for _, r := range o.redis.DoMulti(o.t.Context(), o.batch...) {
		if err := r.Error(); !rueidis.IsRedisNil(err) {
			require.NoError(o.t, err)
		}
	}
	o.batch = o.batch[:0]
}

// list asks for a list of texts.
func (o *oldSystem) list(words ...string) []string {
	o.t.Helper()
	out, err := o.redis.Do(o.t.Context(), o.redis.B().Arbitrary(words...).Build()).AsStrSlice()
	require.NoError(o.t, err, "%q", words)
	return out
}

// number asks for a number; false if there is none.
func (o *oldSystem) number(words ...string) (int64, bool) {
	o.t.Helper()
	m, err := o.redis.Do(o.t.Context(), o.redis.B().Arbitrary(words...).Build()).ToMessage()
	if rueidis.IsRedisNil(err) {
		return 0, false
	}
	require.NoError(o.t, err, "%q", words)
	if n, err := m.AsInt64(); err == nil {
		return n, true
	}
	f, err := m.AsFloat64()
	require.NoError(o.t, err, "%q", words)
	return int64(f), true
}

// sample is some users at random.
func (o *oldSystem) sample() []string {
	out := make([]string, 100)
	for i := range out {
		out[i] = o.user(o.rng.IntN(o.n))
	}
	return out
}

// user is the id of a user.
func (*oldSystem) user(i int) string { return strconv.Itoa(100_000 + i) }

// TestEachLayoutIsTakenOverAndGivenBack fills a Redis as each article does, has doctor name what
// is wrong, imports while it keeps changing, switches, compares the answers, and goes back.
func TestEachLayoutIsTakenOverAndGivenBack(t *testing.T) {
	beside(t)
	for _, one := range []struct {
		name   string
		system func() *handBuilt
	}{
		{"O1 online list", onlineList},
		{"O2 pages", onlinePages},
		{"O3 heartbeats", heartbeats},
		{"O4 login days", loginDays},
		{"O5 last seen and friends", seenWithFriends},
		{"O5 minute sets", minuteSets},
	} {
		for _, engine := range []string{"local", "redis"} {
			t.Run(one.name+"/"+engine, func(t *testing.T) {
				beside(t)
				takeOverAndBack(t, one.system(), engine)
			})
		}
	}
}

// beside has a test run beside others, unless it is to tell times.
func beside(t *testing.T) {
	if !testbudget.Long() {
		t.Parallel()
	}
}

func takeOverAndBack(t *testing.T, system *handBuilt, engine string) {
	o := &oldSystem{handBuilt: system, t: t, n: system.users, server: redistest.Start(t, redistest.Options{}), rng: rand.New(rand.NewPCG(1, 2))}
	if testbudget.Long() {
		o.n = system.long
	}
	var err error
	o.redis, err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{o.server.Addr()}, DisableCache: true, ForceSingleClient: true})
	require.NoError(t, err)
	defer o.redis.Close()
	o.began = time.Now()
	system.fill(o)
	o.flush()
	t.Logf("%s, %s: %d users filled in %.0f s, %d MiB of Redis", system.layout, engine, o.n, time.Since(o.began).Seconds(), o.server.UsedMemory()>>20)

	// Doctor names what is wrong.
	began := time.Now()
	found := o.doctor()
	t.Logf("doctor: %.1f s, %v", time.Since(began).Seconds(), found)
	for _, fault := range system.faults {
		require.Contains(t, found, fault)
	}

	// Imported, and followed while it changes.
	data := filepath.Join(t.TempDir(), "data")
	store := []string{"--data-dir", data}
	if engine == "redis" {
		target := redistest.Start(t, redistest.Options{})
		require.NoError(t, os.Mkdir(data, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(data, secretFile), []byte(strings.Repeat("5e", 32)), 0o600))
		store = append(store, "--engine", "redis", "--redis-url", target.URL())
	} else {
		store = append(store, "--create")
	}
	o.takeOver(append(store, o.layoutFlags()...))

	// Both are asked the same by the command, and by the application that switches.
	store = slices.DeleteFunc(store, func(flag string) bool { return flag == "--create" })
	o.shadow(append(slices.Clone(store), o.layoutFlags()...))
	const key = "rck_the_admin_key_of_this_test_has_32_characters"
	cmd, s, _ := spawn(t, append(store, "--admin-key", key)...)
	o.here, err = client.New(s.base, client.Options{Key: key})
	require.NoError(t, err)
	defer func() { require.NoError(t, o.here.Close()) }()
	began = time.Now()
	system.equal(o)
	t.Logf("answers of both sides compared in %.1f s", time.Since(began).Seconds())

	// The application goes on here, and the old keys follow, so that it can go back.
	system.use(o)
	back := o.writeBack(s.base, key)
	system.equal(o)
	back()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), s.log)
}

func (o *oldSystem) layoutFlags() []string {
	flags := []string{"--from", o.server.URL(), "--layout", string(o.layout), "--rate", "10000000"}
	return slices.Concat(flags, o.names, o.flags)
}

// doctor returns the faults that doctor names.
func (o *oldSystem) doctor() []string {
	o.t.Helper()
	args := []string{"doctor", "--json", "--rate", "1000000", o.server.URL()}
	if args = append(args, o.names...); slices.Contains(o.names, "--key") {
		args = append(args, "--layout", string(o.layout)) // else it finds out
	}
	cmd := exec.CommandContext(o.t.Context(), "rollcall", args...) //nolint:gosec // our own command
	text, _ := cmd.Output()
	require.Equal(o.t, exitFailed, cmd.ProcessState.ExitCode(), "%s", text)
	var report takeover.Report
	require.NoError(o.t, json.Unmarshal(text, &report))
	var codes []string
	for _, f := range report.Findings {
		for _, fault := range f.Faults {
			codes = append(codes, fault.Code)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// takeOver imports while the old system goes on, and ends with the comparison.
func (o *oldSystem) takeOver(args []string) {
	t := o.t
	cmd := exec.CommandContext(t.Context(), "rollcall", append([]string{"import", "redis", "--json", "--follow", "--every", "1s"}, args...)...) //nolint:gosec // our own command
	said := &syncBuffer{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	var text []byte
	go func() {
		defer close(ended)
		text, err = io.ReadAll(out)
	}()

	// It goes on all the while, and for three looks after all was read once.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var changes sync.WaitGroup
	changed := 0
	changes.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; changed++ {
			o.change(o, changed)
			o.flush()
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	require.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
			return strings.Contains(said.String(), "All is read once")
		}
	}, longPatience(), 50*time.Millisecond, "all is read once")
	require.Contains(t, said.String(), "All is read once", "it did not end before")
	read := time.Since(began)
	before := time.Now()
	require.Eventually(t, func() bool { return time.Since(before) > 3*time.Second }, patience, 100*time.Millisecond, "it has looked three times")
	stop()
	changes.Wait()
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	asked := time.Now()
	<-ended
	compared := time.Since(asked)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "%s\n%s", text, said)
	var report imported
	require.NoError(t, json.Unmarshal(text, &report))
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	require.True(t, ok)
	t.Logf("import: %d entries, %.1f s to read once, %.0f a second; %d changes meanwhile; %.1f s from Ctrl-C with the comparison of %d; %d MiB; processor %.1f s",
		report.Read, read.Seconds(), float64(report.Entered)/read.Seconds(), changed, compared.Seconds(), report.Comparison.Compared, usage.Maxrss>>10,
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	t.Logf("%+v; %+v", report.Summary, *report.Comparison)
	require.Zero(t, report.Comparison.Differences)
	// A change takes one entry away at most, and a slow machine leaves time for many.
	require.Greater(t, report.Comparison.Compared, int64(o.entries(o.n)*9/10-changed))
}

// shadow asks both sides for a while: no entry may differ, however short a time.
func (o *oldSystem) shadow(args []string) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), "rollcall", append([]string{"import", "redis", "--json", "--shadow", "2s"}, args...)...) //nolint:gosec // our own command
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	require.NoError(o.t, err, "%s", &said)
	var report imported
	require.NoError(o.t, json.Unmarshal(text, &report))
	require.NotEmpty(o.t, report.Shadow)
	for _, s := range report.Shadow {
		o.t.Logf("shadow: %+v", s)
		require.Zero(o.t, s.Differences+s.InDoubt, s.Question)
	}
}

// writeBack brings the old keys up to date, and keeps them so until the function is called.
func (o *oldSystem) writeBack(server, key string) func() {
	t := o.t
	args := append([]string{"import", "redis", "--write-back", "--server", server, "--every", "1s"}, o.layoutFlags()...)
	cmd := exec.CommandContext(t.Context(), "rollcall", append(args, o.back...)...) //nolint:gosec // our own command
	cmd.Env = append(cmd.Environ(), "ROLLCALL_KEY="+key)
	said := &syncBuffer{}
	cmd.Stderr = said
	began := time.Now()
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "The old keys are up to date") }, longPatience(), 50*time.Millisecond, "the old keys are up to date")
	took := time.Since(began)
	return func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		require.NoError(t, cmd.Wait(), said)
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		require.True(t, ok)
		t.Logf("write-back: %.1f s until the old keys are up to date, %d MiB", took.Seconds(), usage.Maxrss>>10)
	}
}

// longPatience is patience with much data.
func longPatience() time.Duration {
	if testbudget.Long() {
		return 15 * patience
	}
	return patience
}

// ago is a score.
func (o *oldSystem) ago(d time.Duration, unit time.Duration) string {
	return strconv.FormatInt(o.began.Add(-d).UnixNano()/int64(unit), 10)
}

func score(unit time.Duration) string {
	return strconv.FormatInt(time.Now().UnixNano()/int64(unit), 10)
}

// between asks for a count before and after, and expects the other side's answer to lie between:
// what changed while it was followed is up to a minute later here.
func (o *oldSystem) between(what string, count func(slack time.Duration) int64, here func() (int, error)) {
	o.t.Helper()
	least := count(-slack)
	n, err := here()
	require.NoError(o.t, err)
	most := count(slack + time.Minute)
	require.LessOrEqual(o.t, least, int64(n), what)
	require.GreaterOrEqual(o.t, most, int64(n), fmt.Sprint(what, ": the least is ", least))
}

// slack is for the time between two questions.
const slack = 2 * time.Second

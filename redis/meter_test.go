package redis

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// slowScript is what no script may take of Redis's main thread, whatever the data, on a
// machine that runs referenceScript in referenceTime; a slower one is given more.
const (
	slowScript      = 10 * time.Millisecond
	referenceScript = `local x = 0 for i = 1, 1000000 do x = (x + i) % 7 end return x`
	referenceTime   = 20 * time.Millisecond
)

// meter measures the commands of engines on a server that nobody else uses: what
// each takes of the processor time of Redis's main thread. The slow log
// has the time on the wall, which on a busy machine is that of other programs too.
// It begins with the first call of slow.
type meter struct {
	t     *testing.T
	names map[string]string // of scripts

	mu     sync.Mutex
	client rueidis.Client           // of the engine that was opened last
	limit  time.Duration            // of a command; zero until the machine's speed is known
	on     bool                     // commands are measured
	spent  map[string]time.Duration // the most that one run took
	ran    int
}

func newMeter(t *testing.T) *meter {
	t.Helper()
	all, err := loadScripts()
	require.NoError(t, err)
	m := &meter{t: t, names: make(map[string]string), spent: make(map[string]time.Duration)}
	for _, s := range all.all {
		m.names[s.sha] = s.name
	}
	return m
}

// wrap is an option of an engine.
func (m *meter) wrap(c rueidis.Client) rueidis.Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client = c
	if m.on {
		m.calibrate()
	}
	return &meteredClient{c, m}
}

// calibrate finds out how fast the machine is, by the quickest of some runs, unless that
// is known.
func (m *meter) calibrate() {
	if m.limit > 0 || m.client == nil {
		return
	}
	m.limit = slowScript
	c, quickest := m.client, time.Hour
	for range 5 {
		info := func() rueidis.Completed { return c.B().Info().Section("cpu").Build() }
		results := c.DoMulti(m.t.Context(), info(), c.B().Eval().Script(referenceScript).Numkeys(0).Build(), info())
		before, ok1 := cpuOf(results[0])
		after, ok2 := cpuOf(results[2])
		if ok1 && ok2 && results[1].Error() == nil {
			quickest = min(quickest, after-before)
		}
	}
	if quickest > referenceTime && quickest < time.Hour {
		m.limit = slowScript * quickest / referenceTime
	}
	m.t.Logf("the reference took %v, so a command may take %v", quickest, m.limit)
}

type meteredClient struct {
	rueidis.Client
	m *meter
}

func (c *meteredClient) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if !c.m.measures() {
		return c.Client.Do(ctx, command)
	}
	return c.DoMulti(ctx, command)[0]
}

// DoMulti has Redis say what it has spent before each command and after the last.
func (c *meteredClient) DoMulti(ctx context.Context, some ...rueidis.Completed) []rueidis.RedisResult {
	if !c.m.measures() {
		return c.Client.DoMulti(ctx, some...)
	}
	info := func() rueidis.Completed { return c.Client.B().Info().Section("cpu").Build() }
	all, words := rueidis.Commands{info()}, make([][]string, len(some))
	for i, command := range some {
		words[i] = append([]string(nil), command.Commands()[:min(2, len(command.Commands()))]...)
		all = append(all, command, info())
	}
	m := c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	results := c.Client.DoMulti(ctx, all...)
	out := make([]rueidis.RedisResult, len(some))
	for i := range some {
		out[i] = results[2*i+1]
		before, ok1 := cpuOf(results[2*i])
		after, ok2 := cpuOf(results[2*i+2])
		if ok1 && ok2 {
			name := strings.Join(words[i], " ")
			if script := m.names[words[i][len(words[i])-1]]; script != "" {
				name = "script " + script
			}
			m.ran++
			m.spent[name] = max(m.spent[name], after-before)
		}
	}
	return out
}

func cpuOf(r rueidis.RedisResult) (cpu time.Duration, ok bool) {
	info, err := r.ToString()
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
			sec, err := strconv.ParseFloat(value, 64)
			cpu += time.Duration(sec * float64(time.Second))
			ok = err == nil
		}
	}
	return cpu, ok && err == nil
}

// measures tells whether commands are measured.
func (m *meter) measures() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// rest has no commands measured until the next call of slow.
func (m *meter) rest() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = false
}

// slow returns what took longer than it may since the last call. The first one begins
// to measure.
func (m *meter) slow() map[string]time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = true
	m.calibrate()
	out := make(map[string]time.Duration)
	for name, spent := range m.spent {
		if spent >= m.limit {
			out[name] = spent
		}
	}
	clear(m.spent)
	return out
}

// costliest says what took most since the last call of slow.
func (m *meter) costliest() (name string, spent time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, d := range maps.All(m.spent) {
		if d > spent {
			name, spent = n, d
		}
	}
	return name, spent
}

// requireQuick does something, and again if a command of it was slow: processor
// time too is more when others use the caches. No command may be slow each time.
func (m *meter) requireQuick(t *testing.T, what string, do func()) {
	t.Helper()
	var slow map[string]time.Duration
	m.slow()
	defer m.rest()
	for range 4 {
		do()
		name, spent := m.costliest()
		t.Logf("%s: %s took most, %v", what, name, spent)
		if slow = m.slow(); len(slow) == 0 {
			return
		}
	}
	require.Failf(t, "slow commands", "%s: processor time of Redis: %v", what, slow)
}

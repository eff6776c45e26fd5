package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

const (
	serversOfFleet = 3
	partitions     = 8
)

// redisSite is several servers on one Redis or on a Cluster.
type redisSite struct {
	r       *run
	tb      *redisOwner
	rng     *rand.Rand
	one     *redistest.Server // nil on a Cluster
	cluster *redistest.Cluster
	moves   int
	turn    atomic.Uint64

	mu      sync.Mutex
	servers []*server
}

func newRedisSite(r *run) (*redisSite, error) {
	r.clocks.err = redisError
	f := &redisSite{r: r, tb: &redisOwner{dir: r.o.dir}, rng: rand.New(rand.NewPCG(r.o.seed, 99)), servers: make([]*server, serversOfFleet)}
	return f, f.tb.try(func() error {
		o := redistest.Options{Persist: true, Proxied: true}
		if r.o.engine == "cluster" {
			f.cluster = redistest.StartCluster(f.tb, o)
		} else {
			f.one = redistest.Start(f.tb, o)
		}
		return nil
	})
}

// redisOwner stands for a test, as the owner of servers of Redis. What would fail a test
// ends what is being tried.
type redisOwner struct {
	testing.TB
	dir   string
	dirs  int
	after []func()
}

func (o *redisOwner) Helper()            {}
func (o *redisOwner) Cleanup(end func()) { o.after = append(o.after, end) }

func (o *redisOwner) TempDir() string {
	o.dirs++
	dir := filepath.Join(o.dir, fmt.Sprintf("redis-%d", o.dirs))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		o.Fatal(err)
	}
	return dir
}

// ownerFailure is what a test would have failed of.
type ownerFailure struct{ error }

func (o *redisOwner) Fatal(args ...any) { panic(ownerFailure{errors.New(fmt.Sprint(args...))}) }
func (o *redisOwner) Fatalf(format string, args ...any) {
	panic(ownerFailure{fmt.Errorf(format, args...)})
}
func (o *redisOwner) Errorf(format string, args ...any) { o.Fatalf(format, args...) }

// try does something with the servers of Redis.
func (o *redisOwner) try(do func() error) (err error) {
	defer func() {
		if f, ok := recover().(ownerFailure); ok {
			err = f
		}
	}()
	return do()
}

func (f *redisSite) url() string {
	if f.cluster != nil {
		return f.cluster.URL()
	}
	return f.one.URL()
}

func (f *redisSite) flags() []string {
	return []string{
		"--engine", "redis", "--redis-url", f.url(), "--redis-prefix", fmt.Sprintf("store%d", f.moves),
		"--redis-partitions", fmt.Sprint(partitions),
	}
}

// call asks the servers in turn.
func (f *redisSite) call(ctx context.Context, r request) (answer, error) {
	n := f.turn.Add(1) % serversOfFleet
	f.mu.Lock()
	url := f.servers[n].url
	f.mu.Unlock()
	return f.r.api.call(ctx, url, r)
}

func (f *redisSite) start(ctx context.Context) error {
	for n := range f.servers {
		if err := f.startOne(ctx, n); err != nil {
			return err
		}
	}
	return f.well(ctx)
}

func (f *redisSite) startOne(ctx context.Context, n int) error {
	dir := filepath.Join(f.r.o.dir, fmt.Sprintf("server-%d", n))
	s, err := startServer(ctx, f.r.o.tools.binary, dir, dir+".log", f.r.clocks, f.flags()...)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[n] = s
	return nil
}

func (f *redisSite) stop() error {
	var err error
	for _, s := range f.servers {
		err = errors.Join(err, s.stop())
	}
	return err
}

func (f *redisSite) clean() {
	for _, s := range f.servers {
		if s != nil && !s.dead() {
			s.kill()
		}
	}
	for n := len(f.tb.after) - 1; n >= 0; n-- {
		f.tb.after[n]()
	}
}

// compareEvents reads the events as a server of its own would. What is missing is
// looked for again: others may write events that stand before the newest.
func (f *redisSite) compareEvents(ctx context.Context) error {
	var missing error
	for range 3 {
		engine, err := redis.Open(ctx, redis.Options{URL: f.url(), Prefix: fmt.Sprintf("store%d", f.moves), Partitions: partitions, Timeout: time.Minute})
		if err != nil {
			return err
		}
		err = f.r.told.read(ctx, engine, f.r.clocks.now().hi)
		if err := errors.Join(err, engine.Close()); err != nil {
			return err
		}
		if missing = f.r.world.compareEvents(&f.r.told); missing == nil {
			return nil
		}
	}
	return missing
}

// well returns once every server takes writes in every partition.
func (f *redisSite) well(ctx context.Context) error {
	for _, s := range f.servers {
		if err := f.r.untilWritten(ctx, s.url); err != nil {
			return err
		}
	}
	return pause(ctx, 300*time.Millisecond) // what was on its way has come
}

// rest waits until no erasure is left that has been begun.
func (f *redisSite) rest(ctx context.Context) error {
	began := time.Now()
	for p := 0; p < partitions; { // while nobody works none is begun
		key := fmt.Sprintf("store%d:{%d}:erasing", f.moves, p)
		var left string
		err := f.tb.try(func() (err error) {
			var node *redistest.Node
			if f.cluster != nil {
				node = f.cluster.MasterOf(key)
			} else {
				node = f.one.Node
			}
			left, err = node.Do("ZRANGE", key, "0", "-1")
			return err
		})
		switch {
		case err != nil:
			return err
		case left == "":
			p++
			continue
		case time.Since(began) > patience:
			return &difference{nil, fmt.Errorf("erasures of %s are not finished after %s", left, patience)}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// during makes an incident of what is done to Redis: strike breaks it, mend makes
// it well. Meanwhile partitions may be away.
func (f *redisSite) during(name string, strike func() error, least, most time.Duration, mend func() error) incident {
	var away *outage
	var from span
	return incident{
		name: name,
		strike: func(ctx context.Context) error {
			from = f.r.clocks.now()
			from.lo = from.lo.Add(-gap)
			away = f.r.world.outages.begin(from)
			if err := f.tb.try(strike); err != nil {
				return err
			}
			return pause(ctx, least+time.Duration(f.rng.Int64N(int64(most-least)+1)))
		},
		mend: func(ctx context.Context) error {
			if err := f.tb.try(mend); err != nil {
				return err
			}
			if err := f.well(ctx); err != nil {
				return err
			}
			f.r.world.outages.over(away, f.r.clocks.now().hi.Add(gap))
			f.r.world.forgetUntoldEnds(from.lo)
			return nil
		},
	}
}

func nothing() error { return nil }

func (f *redisSite) incidents() []incident {
	victim := f.rng.IntN(serversOfFleet)
	ctx := context.Background()
	list := []incident{
		f.during("server killed", func() error { f.servers[victim].kill(); return nil }, 0, time.Second,
			func() error { return f.startOne(ctx, victim) }),
		f.during("server stopped", func() error { return f.servers[victim].stop() }, 0, time.Second,
			func() error { return f.startOne(ctx, victim) }),
		f.during("server frozen", func() error {
			s := f.servers[victim]
			time.AfterFunc(time.Duration(f.rng.Int64N(int64(8*time.Second))), func() { _ = s.thaw() }) // one that is dead is noticed
			return s.freeze()
		}, 0, 0, nothing),
		f.during("all servers killed", func() error {
			for _, s := range f.servers {
				s.kill()
			}
			return nil
		}, 0, time.Second, func() error {
			for n := range f.servers {
				if err := f.startOne(ctx, n); err != nil {
					return err
				}
			}
			return nil
		}),
		f.moved(),
	}
	if f.one != nil {
		return append(list, f.ofOne()...)
	}
	list = append(list, f.ofCluster()...)
	return append(list, f.ofCluster()...)
}

// ofOne are incidents of a Redis that stands alone.
func (f *redisSite) ofOne() []incident {
	proxy := f.one.Proxy()
	set := func(name, value string) func() error {
		return func() error {
			_, err := f.one.Do("CONFIG", "SET", name, value)
			return err
		}
	}
	return []incident{
		f.during("redis killed", func() error { f.one.Kill(); return nil }, 0, time.Second, func() error { f.one.Restart(); return nil }),
		f.during("redis frozen", func() error { f.one.Stop(); return nil }, 0, 8*time.Second, func() error { f.one.Continue(); return nil }),
		f.during("redis cut off", func() error { proxy.Cut(); return nil }, 0, 2*time.Second, func() error { proxy.Heal(); return nil }),
		f.during("replies lost", func() error { proxy.Cut(); proxy.Heal(); return nil }, 0, 500*time.Millisecond, nothing),
		f.during("black hole", func() error { proxy.BlackHole(); return nil }, 0, 8*time.Second, func() error { proxy.Heal(); return nil }),
		f.during("redis full", set("maxmemory", "1mb"), 0, 2*time.Second, set("maxmemory", "0")),
	}
}

// ofCluster are incidents of a Cluster.
func (f *redisSite) ofCluster() []incident {
	key := func() string { return fmt.Sprintf("store%d:{%d}:part", f.moves, f.rng.IntN(partitions)) }
	var move *redistest.Move
	node := func() *redistest.Node { return f.cluster.MasterOf(key()) }
	var replica *redistest.Node
	return []incident{
		f.during("slot moves", func() error {
			move = f.cluster.BeginMove(key())
			move.Step(5)
			return nil
		}, 0, time.Second, func() error { move.Finish(); return nil }),
		f.during("master fails over", func() error {
			return f.failOver(node())
		}, 0, time.Second, func() error { f.cluster.Await(); return nil }),
		f.during("replies lost", func() error { p := node().Proxy(); p.Cut(); p.Heal(); return nil }, 0, 500*time.Millisecond, nothing),
		f.during("replica killed", func() error {
			for _, n := range f.cluster.Nodes {
				if role, err := n.Values("ROLE"); err == nil && role[0] == "slave" {
					replica = n
				}
			}
			replica.Kill()
			return nil
		}, 0, 500*time.Millisecond, func() error { replica.Restart(); f.cluster.Await(); return nil }),
	}
}

// failOver has a replica of a master take over, in agreement with it: nothing that
// was acknowledged is lost then, which is what the model holds servers to.
func (f *redisSite) failOver(master *redistest.Node) error {
	id, err := master.Do("CLUSTER", "MYID")
	if err != nil {
		return err
	}
	for _, n := range f.cluster.Nodes {
		if slaveOf(n, id) {
			_, err := n.Do("CLUSTER", "FAILOVER")
			return err
		}
	}
	return errors.New("the master has no replica")
}

// moved exports the data and imports it under another prefix.
func (f *redisSite) moved() incident {
	return f.during("moved", f.stop, 0, 0, func() error {
		ctx := context.Background()
		file := filepath.Join(f.r.o.dir, fmt.Sprintf("export-%d", f.moves))
		dir := filepath.Join(f.r.o.dir, "server-0")
		base := []string{"--data-dir", dir, "--secret", secret, "--archive-dsn", "off"}
		if _, err := tool(ctx, f.r.o.tools.binary, f.r.clocks, append(append([]string{"export"}, append(base, f.flags()...)...), file)...); err != nil {
			return err
		}
		f.moves++
		if _, err := tool(ctx, f.r.o.tools.binary, f.r.clocks, append(append([]string{"import", "store", "--create", "--keys"}, append(base, f.flags()...)...), file)...); err != nil {
			return err
		}
		f.r.world.moved()
		f.r.told.newLog(f.r.clocks.now())
		for n := range f.servers {
			if err := f.startOne(ctx, n); err != nil {
				return err
			}
		}
		return os.Remove(file)
	})
}

// slaveOf says whether a node follows a master.
func slaveOf(n *redistest.Node, master string) bool {
	role, err := n.Values("ROLE")
	if err != nil || len(role) == 0 || role[0] != "slave" {
		return false
	}
	nodes, err := n.Do("CLUSTER", "NODES")
	if err != nil {
		return false
	}
	for line := range strings.Lines(nodes) {
		if strings.Contains(line, "myself,") && strings.Contains(line, master) {
			return true
		}
	}
	return false
}

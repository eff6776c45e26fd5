package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/redis"
)

// mostMasters is the largest Cluster that is measured.
const mostMasters = 3

// measureRedisCluster measures logins and heartbeats on Clusters of one to three masters, and
// what a command makes Redis append to its file and send to a replica.
func measureRedisCluster(ctx context.Context, sizes []int) (section, error) {
	s := section{
		title: "Distributed engine: masters of a Cluster, and what is written",
		about: "All masters run on one machine with this process, so the rate says little once its processors are busy: *Redis, each* is the processor time of all masters for one login or beat, and *a processor's worth* is how many they do in a second of it. " +
			fmt.Sprintf("Logins with all fields from %d callers, then beats of 50 callers × 100 users for %v, of users who have logged in.", sharers, beatFor),
	}
	t := table{head: []string{"masters", "logins", "logins a second", "Redis, each", "a processor's worth", "beats a second", "Redis, each", "a processor's worth"}}
	most := sizes[len(sizes)-1]
	for n := 1; n <= mostMasters; n++ {
		row, err := clusterCost(ctx, n, most)
		if err != nil {
			return s, fmt.Errorf("%d masters: %w", n, err)
		}
		t.add(row...)
	}
	s.tables = append(s.tables, t)
	written, err := writtenBytes(ctx, sizes[len(sizes)/2])
	s.tables = append(s.tables, written)
	return s, err
}

// cluster is a Redis Cluster of masters without replicas.
type cluster []*peer

func startCluster(ctx context.Context, masters int) (c cluster, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
		}
	}()
	const slots = 16384
	var buses []string
	for i := range masters {
		bus, err := freePort(ctx)
		if err != nil {
			return c, err
		}
		p, err := startPeer(ctx, "--cluster-enabled", "yes", "--cluster-port", bus)
		if err != nil {
			return c, err
		}
		c, buses = append(c, p), append(buses, bus)
		if _, err := p.call("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return c, err
		}
		if _, err := p.call("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/masters), strconv.Itoa((i+1)*slots/masters-1)); err != nil {
			return c, err
		}
	}
	for i, p := range c[1:] {
		if _, err := c[0].call("CLUSTER", "MEET", "127.0.0.1", p.port, buses[i+1]); err != nil {
			return c, err
		}
	}
	for _, p := range c {
		if err := p.whole(ctx, masters); err != nil {
			return c, err
		}
	}
	return c, nil
}

// whole waits until a master knows all others and serves.
func (p *peer) whole(ctx context.Context, masters int) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		info, err := p.call("CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d", masters)) {
			return nil
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the Cluster was not whole within a minute")
}

func (c cluster) stop() error {
	var errs []error
	for _, p := range c {
		errs = append(errs, p.stop())
	}
	return errors.Join(errs...)
}

func (c cluster) url() string {
	var hosts []string
	for _, p := range c {
		hosts = append(hosts, "127.0.0.1:"+p.port)
	}
	return "redis+cluster://" + strings.Join(hosts, ",")
}

// cpu returns the processor time of all masters.
func (c cluster) cpu() (all time.Duration, err error) {
	for _, p := range c {
		used, e := p.cpu()
		all, err = all+used, errors.Join(err, e)
	}
	return all, err
}

// clusterCost is the row of so many masters.
func clusterCost(ctx context.Context, masters, logins int) (row []string, err error) {
	c, err := startCluster(ctx, masters)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	engine, err := redis.Open(ctx, redis.Options{URL: c.url(), Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	defer func() { err = errors.Join(err, roll.Close(), engine.Close()) }()

	row = []string{strconv.Itoa(masters), count(float64(logins))}
	add := func(n, rate float64, used time.Duration) {
		each := used.Seconds() / n
		row = append(row, perSecond(rate), fmt.Sprintf("%.1f µs", each*1e6), perSecond(1/each))
	}
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	rate, _, err := loginRun(ctx, roll, logins, 0, sharers, makeLogin)
	if err != nil {
		return nil, err
	}
	between, err := c.cpu()
	if err != nil {
		return nil, err
	}
	add(float64(logins), rate, between-before)

	r := beatRivals{own: &shared{Roll: roll, engine: engine}, users: logins, pool: make([]string, 1<<20)}
	for i := range r.pool {
		r.pool[i] = strconv.Itoa(i * 7919 % logins)
	}
	beats, err := r.beat(ctx, depth{50, 100})
	if err != nil {
		return nil, err
	}
	after, err := c.cpu()
	if err != nil {
		return nil, err
	}
	add(beats*beatFor.Seconds(), beats, after-between)
	return row, nil
}

// writtenBytes is what a login makes Redis append to its file and send to a replica, of n logins,
// of the engine and of the list by hand.
func writtenBytes(ctx context.Context, n int) (table, error) {
	t := table{head: []string{"of " + count(float64(n)), "appended, each", "sent to a replica, each"}}
	own, err := startWritten(ctx)
	if err != nil {
		return t, err
	}
	engine, err := redis.Open(ctx, redis.Options{URL: "redis://127.0.0.1:" + own.master.port, Timeout: time.Minute})
	if err != nil {
		return t, errors.Join(err, own.stop())
	}
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		return t, errors.Join(err, engine.Close(), own.stop())
	}
	users := make([]string, n)
	for i := range users {
		users[i] = strconv.Itoa(i)
	}
	err = errors.Join(
		own.row(ctx, &t, "logins, all fields", n, func() error {
			_, _, err := loginRun(ctx, roll, n, 0, sharers, makeLogin)
			return err
		}),
		own.row(ctx, &t, "beats, 1,000 at once", n, func() error {
			for from := 0; from < n; from += beatBatch {
				if err := roll.Beat(ctx, users[from:min(n, from+beatBatch)]...); err != nil {
					return err
				}
			}
			return nil
		}),
		roll.Close(), engine.Close(), own.stop())
	if err != nil {
		return t, err
	}
	hand, err := startWritten(ctx)
	if err != nil {
		return t, err
	}
	err = hand.row(ctx, &t, "by hand: logins, three writes in a script", n, func() error {
		_, err := hand.master.loginRate(ctx, n, sharers)
		return err
	})
	t.note = "With `appendonly yes` and one replica. The engine's bytes hold its upkeep too, as long as the commands took. Of the list by hand, `ZADD`, `SADD` and `SET` are written, with the record as JSON."
	return t, errors.Join(err, hand.stop())
}

// written is a master that keeps an append-only file, with a replica.
type written struct{ master, replica *peer }

func startWritten(ctx context.Context) (*written, error) {
	master, err := startPeer(ctx, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	if err != nil {
		return nil, err
	}
	replica, err := startPeer(ctx, "--replicaof", "127.0.0.1 "+master.port)
	if err != nil {
		return nil, errors.Join(err, master.stop())
	}
	w := &written{master, replica}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		info, err := replica.call("INFO", "replication")
		if err != nil || strings.Contains(info, "master_link_status:up") {
			return w, err
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return nil, errors.Join(err, w.stop())
		}
	}
	return nil, errors.Join(errors.New("the replica did not follow within a minute"), w.stop())
}

func (w *written) stop() error { return errors.Join(w.replica.stop(), w.master.stop()) }

// row measures what n commands write.
func (w *written) row(ctx context.Context, t *table, name string, n int, run func() error) error {
	file, sent, err := w.sizes(ctx)
	if err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	file2, sent2, err := w.sizes(ctx)
	t.add(name, each(file2-file, n), each(sent2-sent, n))
	return err
}

// sizes returns the size of the file, once what was written lately is in it, and the place in the
// stream of the replica.
func (w *written) sizes(ctx context.Context) (file, sent int64, err error) {
	if err := wait(ctx, 1500*time.Millisecond); err != nil {
		return 0, 0, err
	}
	info, err := w.master.call("INFO", "everything")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(info) {
		name, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "aof_current_size":
			file, err = strconv.ParseInt(v, 10, 64)
		case "master_repl_offset":
			sent, err = strconv.ParseInt(v, 10, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return file, sent, nil
}

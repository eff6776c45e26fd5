// Command bench measures the embedded engine beside what teams build by hand on
// Redis, in the same run on the same machine, and writes RESULTS.md. It starts
// its own Redis; redis-server and redis-benchmark must be installed, and for
// forward-auth nginx.
//
//	go -C bench run . -what all
//	go -C bench run . -what targets
//	go -C bench run . -what pages
//	go -C bench run -tags holds . -what expiry
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// part is what can be measured on its own.
type part struct {
	name    string
	sizes   []int // of users, sessions, logins or readers; to see how the cost grows, each ten times the one before
	aimed   []int // the sizes of its targets; nil if it has none
	measure func(ctx context.Context, sizes []int) (section, error)
}

// parts are what can be measured, in the order of the report. Readers of live friends have
// so many friends each.
func parts(friends int) []part {
	const k, m = 1_000, 1_000_000
	events := func(ctx context.Context, sizes []int) (section, error) { return measureEvents(ctx, sizes, friends) }
	return []part{
		{"memory", tenfold(10 * m), nil, measureMemory},
		{"beats", tenfold(100 * m), []int{10 * m, 100 * m}, measureBeats},
		{"doors", tenfold(m), []int{m}, measureDoors},
		{"resp", tenfold(10 * m), []int{10 * m}, measureRESP},
		{"forward-auth", []int{authSessions}, []int{authSessions}, measureForwardAuth},
		{"sessions", tenfold(m), nil, measureSessions},
		{"whole", tenfold(100 * m), []int{100 * m}, measureWhole},
		{"pages", tenfold(10 * m), []int{10 * m}, measurePages},
		{"friends", tenfold(5 * m), []int{5 * m}, measureFriends},
		{"logins", tenfold(200 * k), []int{200 * k}, measureLogins},
		{"events", tenfold(10 * k), []int{10 * k}, events},
		{"import", tenfold(10 * m), nil, measureImport},
		{"expiry", []int{250 * k, 2500 * k}, []int{2500 * k}, measureExpiry},
		{"attendance", tenfold(100 * m), []int{10 * m, 100 * m}, measureAttendance},
		{"redis-beats", tenfold(10 * m), []int{m}, measureRedisBeats},
		{"redis-friends", tenfold(5 * m), []int{5 * m}, measureRedisFriends},
		{"redis-pages", tenfold(m), []int{m}, measureRedisPages},
		{"redis-memory", tenfold(m), []int{m}, measureRedisMemory},
		{"redis-cluster", tenfold(200 * k), nil, measureRedisCluster},
		{"archive", nil, nil, measureArchive},
		{"redis-figures", tenfold(500 * k), nil, measureRedisFigures},
		{"redis-due", tenfold(2500 * k), nil, measureRedisDue},
		{"redis-logins", tenfold(200 * k), []int{200 * k}, measureRedisLogins},
		{"build", nil, []int{0}, measureBuild},
		{"console", tenfold(m), []int{m}, measureConsole},
	}
}

// tenfold returns three sizes, each ten times the one before.
func tenfold(most int) []int { return []int{most / 100, most / 10, most} }

// everyTarget is the section of all targets, of one run.
const everyTarget = "targets"

// names are what can be asked for, besides all of it.
func names() []string {
	list := []string{everyTarget}
	for _, p := range parts(friendsOfReader) {
		list = append(list, p.name)
	}
	return list
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	what := flags.String("what", "all", "what to measure: all, "+strings.Join(names(), ", "))
	out := flags.String("out", "RESULTS.md", "the report; of the parts not measured now it keeps the old figures")
	child := flags.String("child", "", "measure a part in this process and print it; the command calls itself with it")
	size := flags.Int("size", 0, "users or sessions, with -child")
	dir := flags.String("dir", "", "the data directory, with -child \"whole\" and \"whole again\"")
	users := flags.Int("users", 0, "users, sessions, logins or readers of the largest size; 0 for the part's own")
	friends := flags.Int("friends", friendsOfReader, "friends of each reader of events: at least 20")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *users != 0 && *users < 10_000:
		return fmt.Errorf("-users %d: must be at least 10,000", *users)
	case !slices.Contains(append(names(), "all"), *what):
		return fmt.Errorf("-what %s: must be all, %s", *what, strings.Join(names(), ", "))
	case *child == wholeFill || *child == wholeReopen:
		return wholeChild(ctx, *child, *dir, *size)
	case *child != "":
		return runChild(ctx, *child, *size)
	case *what == everyTarget:
		return measureTargets(ctx, *users, *out)
	}
	for _, p := range parts(*friends) {
		if *what != "all" && *what != p.name {
			continue
		}
		flags := ""
		if *users != 0 && len(p.sizes) > 1 {
			p.sizes, flags = tenfold(*users), fmt.Sprintf("-users %d ", *users)
		}
		if *friends != friendsOfReader && p.name == "events" {
			flags += fmt.Sprintf("-friends %d ", *friends)
		}
		s, err := p.run(ctx, p.sizes)
		if err != nil {
			return err
		}
		s.flags = flags
		fmt.Println(s.markdown(p.name))
		if err := writeSection(*out, p.name, s); err != nil {
			return err
		}
	}
	return nil
}

// run measures a part.
func (p part) run(ctx context.Context, sizes []int) (section, error) {
	fmt.Fprintf(os.Stderr, "bench: measuring %s\n", p.name)
	began := time.Now()
	s, err := p.measure(ctx, sizes)
	s.took = time.Since(began)
	if err != nil {
		return s, fmt.Errorf("%s: %w", p.name, err)
	}
	return s, nil
}

// measureTargets measures every part that has targets, with their sizes only. What was measured
// so far is in the report whatever comes of the rest. With a number of users the sizes are that,
// to try it out.
func measureTargets(ctx context.Context, users int, out string) error {
	var all []target
	began := time.Now()
	for _, p := range parts(friendsOfReader) {
		if p.aimed == nil {
			continue
		}
		if users != 0 {
			p.aimed = []int{users}
		}
		s, err := p.run(ctx, p.aimed)
		if err != nil {
			return err
		}
		fmt.Println(s.markdown(p.name))
		all = append(all, s.targets...)
		slices.SortStableFunc(all, func(a, b target) int { return cmp.Compare(a.number(), b.number()) })
		whole := targetsOf(all)
		whole.took = time.Since(began)
		if users != 0 {
			whole.flags = fmt.Sprintf("-users %d ", users)
		}
		if err := writeSection(out, everyTarget, whole); err != nil {
			return err
		}
	}
	return nil
}

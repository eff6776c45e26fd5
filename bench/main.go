// Command bench measures the embedded engine beside what teams build by hand on
// Redis, in the same run on the same machine, and writes RESULTS.md. It starts
// its own Redis; redis-server and redis-benchmark must be installed, and for
// forward-auth nginx.
//
//	go -C bench run . -what all
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
	"strings"
	"time"
)

// part is one figure that can be measured on its own.
type part struct {
	name    string
	measure func(context.Context) (section, error)
}

// parts are the figures, in the order of the report. Those on Redis are taken of
// so many users or sessions and, to see how the cost grows, of a tenth and a
// hundredth of them; 0 stands for their own number.
func parts(users int, readers streamReaders) []part {
	ofUsers := func(most int, measure func(context.Context, int) (section, error)) func(context.Context) (section, error) {
		return func(ctx context.Context) (section, error) { return measure(ctx, cmp.Or(users, most)) }
	}
	return []part{
		{"memory", measureMemory},
		{"beats", measureBeats},
		{"doors", ofUsers(1_000_000, measureDoors)},
		{"resp", ofUsers(1_000_000, measureRESP)},
		{"forward-auth", measureForwardAuth},
		{"sessions", measureSessions},
		{"whole", ofUsers(100_000_000, measureWhole)},
		{"pages", ofUsers(10_000_000, measurePages)},
		{"friends", ofUsers(5_000_000, measureFriends)},
		{"logins", measureLogins},
		{"events", func(ctx context.Context) (section, error) { return measureEvents(ctx, readers) }},
		{"import", measureImport},
		{"expiry", ofUsers(2_500_000, measureExpiry)},
		{"attendance", ofUsers(100_000_000, measureAttendance)},
		{"redis-beats", ofUsers(10_000_000, measureRedisBeats)},
		{"redis-friends", ofUsers(5_000_000, measureRedisFriends)},
		{"redis-pages", ofUsers(1_000_000, measureRedisPages)},
		{"redis-memory", ofUsers(1_000_000, measureRedisMemory)},
		{"archive", measureArchive},
		{"redis-figures", ofUsers(500_000, measureRedisFigures)},
		{"redis-due", ofUsers(2_500_000, measureRedisDue)},
		{"redis-logins", ofUsers(200_000, measureRedisLogins)},
		{"console", ofUsers(1_000_000, measureConsole)},
	}
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
	var names []string
	for _, p := range parts(0, streamReaders{}) {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	what := flags.String("what", "all", "what to measure: all, "+strings.Join(names, ", "))
	out := flags.String("out", "RESULTS.md", "the report; of the parts not measured now it keeps the old figures")
	child := flags.String("child", "", "measure a part in this process and print it; the command calls itself with it")
	size := flags.Int("size", 0, "users or sessions, with -child")
	dir := flags.String("dir", "", "the data directory, with -child \"whole\" and \"whole again\"")
	users := flags.Int("users", 0, "users, sessions or logins of the largest size, for a quick run of whole, pages, friends, attendance, expiry or a redis- part; 0 for its own")
	var readers streamReaders
	flags.IntVar(&readers.most, "readers", mostReaders, "readers of the largest size of events")
	flags.IntVar(&readers.friends, "friends", friendsOfReader, "friends of each reader of events: at least 20")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *users != 0 && *users < 100_000 {
		return fmt.Errorf("-users %d: must be at least 100,000", *users)
	}
	if *child != "" {
		if *child == wholeFill || *child == wholeReopen {
			return wholeChild(ctx, *child, *dir, *size)
		}
		return runChild(ctx, *child, *size)
	}
	known := *what == "all"
	for _, p := range parts(*users, readers) {
		if *what != "all" && *what != p.name {
			continue
		}
		known = true
		fmt.Fprintf(os.Stderr, "bench: measuring %s\n", p.name)
		began := time.Now()
		s, err := p.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		s.took = time.Since(began)
		if *users != 0 {
			s.flags = fmt.Sprintf("-users %d ", *users)
		}
		if p.name == "events" && readers != (streamReaders{mostReaders, friendsOfReader}) {
			s.flags += fmt.Sprintf("-readers %d -friends %d ", readers.most, readers.friends)
		}
		fmt.Println(s.markdown(p.name))
		if err := writeSection(*out, p.name, s); err != nil {
			return err
		}
	}
	if !known {
		return fmt.Errorf("-what %s: must be all, %s", *what, strings.Join(names, ", "))
	}
	return nil
}

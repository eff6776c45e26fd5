package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := command(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// command does the run that the flags ask for.
func command() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{out: os.Stdout}
	flag.StringVar(&o.engine, "engine", "local", "local, redis or cluster")
	flag.Uint64Var(&o.seed, "seed", 1, "decides commands and incidents")
	within := flag.Duration("for", time.Minute, "no round begins later")
	most := flag.Int("rounds", 0, "rounds at most; 0 for no bound")
	flag.StringVar(&o.only, "only", "", "only this incident")
	flag.BoolVar(&o.verbose, "v", false, "tell of each round")
	flag.StringVar(&o.dir, "dir", "", "where to keep data and logs (default: a temporary directory, removed if all is well)")
	flag.StringVar(&o.tools.binary, "binary", "", "a binary that such a run has built (default: built anew)")
	flag.Parse()
	o.rounds = rounds(*within, *most)
	return torture(ctx, o)
}

// torture does a run. Its error says what was different, and where things are.
func torture(ctx context.Context, o options) error {
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "torture-")
		if err != nil {
			return err
		}
		o.dir = dir
	} else if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	if o.tools.binary == "" {
		var err error
		if o.tools, err = buildTools(ctx, o.dir); err != nil {
			return err
		}
	}
	r, err := newRun(o)
	if err != nil {
		return err
	}
	err = r.do(ctx, o.rounds)
	r.site.clean()
	r.report()
	if err == nil {
		fmt.Fprintln(o.out, "no difference")
		return os.RemoveAll(o.dir)
	}
	what := "FAILED"
	if d := (*difference)(nil); errors.As(err, &d) {
		what = "DIFFERENCE"
	}
	return fmt.Errorf("%s: engine %s, seed %d, round %d: %w\n%s", what, o.engine, o.seed, r.round, err, r.keep())
}

// tools are what a run works with.
type tools struct{ binary string }

func buildTools(ctx context.Context, dir string) (tools, error) {
	root, err := projectRoot(ctx)
	if err != nil {
		return tools{}, err
	}
	binary, err := build(ctx, root, dir)
	return tools{binary}, err
}

// newSite starts nothing yet.
func newSite(r *run) (site, error) {
	switch r.o.engine {
	case "local":
		return newLocalSite(r)
	case "redis", "cluster":
		return newRedisSite(r)
	default:
		return nil, fmt.Errorf("there is no engine %q: local, redis or cluster", r.o.engine)
	}
}

// untilWritten waits until a server takes writes.
func (r *run) untilWritten(ctx context.Context, url string) error {
	deadline := time.Now().Add(patience)
	var last answer
	for time.Now().Before(deadline) {
		var err error
		if last, err = r.api.call(ctx, url, request{method: "POST", path: "/v1/attendance/marks", body: map[string]any{"marks": []any{}}}); err == nil && last.status == 200 {
			if last, err = r.api.call(ctx, url, request{method: "GET", path: "/readyz"}); err == nil && last.status == 200 {
				return nil
			}
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the server takes no writes: %s", last)
}

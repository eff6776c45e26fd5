// Command bench measures the embedded engine beside what teams build by hand on
// Redis, in the same run on the same machine, and writes RESULTS.md. It starts
// its own Redis; redis-server and redis-benchmark must be installed.
//
//	go -C bench run . -what all
//	go -C bench run . -what pages
package main

import (
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

// parts are the figures, in the order of the report.
func parts() []part {
	return []part{
		{"memory", measureMemory},
		{"beats", measureBeats},
		{"sessions", measureSessions},
		{"pages", measurePages},
		{"logins", measureLogins},
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
	for _, p := range parts() {
		names = append(names, p.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	what := flags.String("what", "all", "what to measure: all, "+strings.Join(names, ", "))
	out := flags.String("out", "RESULTS.md", "the report; of the parts not measured now it keeps the old figures")
	child := flags.String("child", "", "measure a part in this process and print it; the command calls itself with it")
	size := flags.Int("size", 0, "users or sessions, with -child")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *child != "" {
		return runChild(ctx, *child, *size)
	}
	known := *what == "all"
	for _, p := range parts() {
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

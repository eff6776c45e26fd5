package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// bench is an engine in a directory of its own.
type bench struct {
	*rollcall.Roll
	engine *local.Engine
	dir    string
}

func open(l local.Options, o rollcall.Options) (*bench, error) {
	dir, err := os.MkdirTemp("", "rollcall-bench")
	if err != nil {
		return nil, err
	}
	b, err := openIn(dir, l, o)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return b, nil
}

// openIn opens an engine in a directory that is another's to remove.
func openIn(dir string, l local.Options, o rollcall.Options) (*bench, error) {
	engine, err := local.Open(dir, l)
	if err != nil {
		return nil, err
	}
	roll, err := rollcall.New(engine, o)
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return &bench{Roll: roll, engine: engine, dir: dir}, nil
}

func (b *bench) close() error {
	return errors.Join(b.Close(), b.engine.Close(), os.RemoveAll(b.dir))
}

// footprint is the memory of a process: that of the whole process as the system
// sees it, and that of the engine's parts as the engine does.
type footprint struct {
	RSS   int64
	Parts []rollcall.MemoryPart
}

func (f footprint) of(names ...string) int64 {
	var sum int64
	for _, p := range f.Parts {
		for _, name := range names {
			if p.Name == name {
				sum += p.Bytes
			}
		}
	}
	return sum
}

// footprint lets the process settle first: the seconds go on until what the
// load left behind is flushed, collected and given back.
func (b *bench) footprint(ctx context.Context) (footprint, error) {
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	least, waited := int64(math.MaxInt64), 0
	for steady := 0; steady < 3 && waited < 30; waited++ {
		select {
		case <-ctx.Done():
			return footprint{}, ctx.Err()
		case <-seconds.C:
		}
		debug.FreeOSMemory()
		rss, err := residentBytes()
		if err != nil {
			return footprint{}, err
		}
		steady++
		if rss < least-least/100 {
			steady = 0
		}
		least = min(least, rss)
	}
	stats, err := b.Stats(ctx)
	return footprint{RSS: least, Parts: stats.Memory}, err
}

func residentBytes() (int64, error) { return residentBytesOf("self") }

// residentBytesOf returns the resident size of a process.
func residentBytesOf(process string) (int64, error) {
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the system does not tell VmRSS")
}

// inChild measures a footprint in a process of its own, which nothing measured
// before has grown.
func inChild(ctx context.Context, what string, size int) (footprint, error) {
	var f footprint
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	cmd := exec.CommandContext(ctx, self, "-child", what, "-size", strconv.Itoa(size)) //nolint:gosec // this very binary
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("%s of %d: %w", what, size, err)
	}
	return f, json.Unmarshal(out, &f)
}

func runChild(ctx context.Context, what string, size int) error {
	if what == eventServer {
		return serveEvents(ctx, size)
	}
	fill := map[string]func(context.Context, *bench, int) error{
		"users": fillUsers, "sessions": fillSessions, "bare sessions": fillBare,
	}[what]
	if fill == nil {
		return fmt.Errorf("nothing is called %q", what)
	}
	b, err := open(local.Options{Durability: local.Interval}, rollcall.Options{})
	if err != nil {
		return err
	}
	err = fill(ctx, b, size)
	f, err2 := b.footprint(ctx)
	return errors.Join(err, err2, json.NewEncoder(os.Stdout).Encode(f), b.close())
}

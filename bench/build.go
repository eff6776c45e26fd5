package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// measureBuild measures what a first start compiles, and what the binary weighs.
func measureBuild(ctx context.Context, _ []int) (section, error) {
	s := section{
		title: "Binary and first build",
		about: "*binary*: `CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' ./cmd/rollcall`. *first build*: `go build ./cmd/rollcall` with all modules downloaded and nothing compiled yet (an empty `GOCACHE`), as the first `go run` has it, with a C compiler and without (`CGO_ENABLED=0`, as README has it). The target is for the latter.",
	}
	dir, err := os.MkdirTemp("", "rollcall-bench-build")
	if err != nil {
		return s, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := table{head: []string{"", "took", "processor time", "binary"}}
	build := func(name, cache, cgo string, flags ...string) (time.Duration, int64, error) {
		out := filepath.Join(dir, "rollcall")
		cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, flags...), "-o", out, "./cmd/rollcall")...) //nolint:gosec // our own program
		cmd.Dir, cmd.Stderr = "..", os.Stderr
		cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if cache != "" {
			cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(dir, cache))
		}
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", name, err)
		}
		waited := time.Since(began)
		info, err := os.Stat(out)
		if err != nil {
			return 0, 0, err
		}
		t.add(name, waited.Round(time.Second).String(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Second).String(), megabytes(float64(info.Size())))
		return waited, info.Size(), nil
	}
	_, size, err := build("binary", "", "0", "-trimpath", "-ldflags=-s -w")
	_, _, err2 := build("first build, with C", "with-c", "1")
	first, _, err3 := build("first build, without C", "without-c", "0") // as README has it
	if err := errors.Join(err, err2, err3); err != nil {
		return s, err
	}
	s.atMost("P15", "binary, stripped", float64(size), 45e6, megabytes)
	s.atMost("P15", "first build, seconds", first.Seconds(), 90, trimmed)
	s.tables = append(s.tables, t)
	return s, nil
}

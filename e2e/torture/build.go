package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// clockVariable names the file that a server reads how far its clock is off from.
const clockVariable = "TORTURE_CLOCK"

// offset is the source of how far the wall clock is off.
const offset = `

func tortureOffset() time.Duration {
	text, err := os.ReadFile(os.Getenv("` + clockVariable + `"))
	if err != nil {
		return 0
	}
	off, _ := strconv.ParseInt(string(text), 10, 64)
	return time.Duration(off)
}
`

// build builds the binary, with a wall clock that can be set. The sources stay as
// they are: the build is told to read another clock.go in the place of the
// project's, which differs from it in that alone.
func build(ctx context.Context, root, dir string) (string, error) {
	overlay := map[string]map[string]string{"Replace": {}}
	source := filepath.Join(root, "clock.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	changed, err := withWall(string(text))
	if err != nil {
		return "", err
	}
	other := filepath.Join(dir, "clock.go")
	overlay["Replace"][source] = other
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	overlayFile, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "rollcall")
	if err := os.WriteFile(other, []byte(changed), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlayFile, list, 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-overlay", overlayFile, "-o", binary, "./cmd/rollcall") //nolint:gosec // our own arguments
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w\n%s", err, out)
	}
	return binary, nil
}

// withWall is the source of the clock, with a wall clock that is off. What it
// reads of the monotonic clock stays as it is.
func withWall(source string) (string, error) {
	const reading = ".Round(0)" // drops the monotonic clock
	if n := strings.Count(source, reading); n != 2 {
		return "", fmt.Errorf("clock.go reads the wall clock in %d places, and 2 were expected: look what has changed", n)
	}
	source = strings.ReplaceAll(source, reading, reading+".Add(tortureOffset())")
	return strings.Replace(source, `"sync"`, "\"os\"\n\t\"strconv\"\n\t\"sync\"", 1) + offset, nil
}

// projectRoot is the directory of the module.
func projectRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

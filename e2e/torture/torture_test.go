package main

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/testbudget"
)

// within is how long each engine has. "./test.sh -e2e" gives it a minute.
var within = flag.Duration("torture", time.Second, "no round of TestTorture begins later")

// TestTorture is a short run on each engine, side by side. What it proves, "go run
// ./e2e/torture" goes on looking for.
func TestTorture(t *testing.T) {
	dir := t.TempDir()
	tools, err := buildTools(t.Context(), dir)
	require.NoError(t, err)
	engines := []string{"local", "redis"}
	if testbudget.Long() {
		engines = append(engines, "cluster")
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			kept, err := os.MkdirTemp("", "torture-") // kept if something is different
			require.NoError(t, err)
			require.NoError(t, torture(t.Context(), options{
				engine: engine, seed: 20260203, dir: kept, out: t.Output(), tools: tools,
				rounds: testbudget.Rounds(t, testbudget.Budget{Time: *within}),
			}))
		})
	}
}

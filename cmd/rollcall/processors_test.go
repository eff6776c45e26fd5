package main

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheServerRunsAFewGoroutinesAtOnceOnHoweverFewProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })

	(&app{environ: []string{"GOMAXPROCS=1"}}).shareProcessors()
	require.Equal(t, 1, runtime.GOMAXPROCS(0), "the variable has the last word")
	(&app{}).shareProcessors()
	require.Equal(t, leastThreads, runtime.GOMAXPROCS(0))
	runtime.GOMAXPROCS(2 * leastThreads)
	(&app{}).shareProcessors()
	require.Equal(t, 2*leastThreads, runtime.GOMAXPROCS(0), "it never takes any away")
}

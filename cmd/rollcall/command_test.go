package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/cli"
)

// TestEveryVerbRuns looks at each verb that has none below it.
func TestEveryVerbRuns(t *testing.T) {
	program, err := commandLine(new(commands))
	require.NoError(t, err)
	verbs := 0
	var look func(*cli.Command)
	look = func(c *cli.Command) {
		for _, child := range c.Commands {
			look(child)
		}
		if len(c.Commands) == 0 {
			verbs++
			_, runs := c.Target().(verb)
			require.True(t, runs, "%s has no method Run", c.Path())
		}
	}
	look(program)
	require.Greater(t, verbs, 50)
}

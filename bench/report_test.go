package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASectionTakesItsPlaceInTheReportAndLeavesTheOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	write := func(name, title string) {
		t.Helper()
		require.NoError(t, writeSection(path, name, section{title: title, about: "How."}))
	}
	titles := func() (all []string) {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if title, ok := strings.CutPrefix(line, "## "); ok {
				all = append(all, strings.TrimSpace(title))
			}
		}
		return all
	}
	write("pages", "Pages")
	write("console", "Console")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	byHand := strings.Replace(string(text), "## Console", "## By hand\n\nKept.\n\n## Console", 1)
	require.NoError(t, os.WriteFile(path, []byte(byHand), 0o600))

	write("beats", "Beats")
	write("pages", "Pages again")
	write(everyTarget, "Targets")
	require.Equal(t, []string{"Targets", "Beats", "Pages again", "By hand", "Console"}, titles())
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePicturesShowTheFiguresOfTheReport(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, run("../RESULTS.md", folder))
	for _, name := range []string{"results.svg", "growth.svg"} {
		drawn, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		kept, err := os.ReadFile(filepath.Join("../../docs", name))
		require.NoError(t, err)
		require.Equal(t, string(kept), string(drawn), "%s: draw it again: go -C bench run ./plot", name)
	}
}

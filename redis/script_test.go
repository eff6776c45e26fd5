package redis

import (
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	luaComment  = regexp.MustCompile(`--[^\n]*`)
	luaArgument = regexp.MustCompile(`ARGV\[(\d+)\]|argumentsFrom\((\d+)\)`)
)

// TestScriptsNameTheirArguments reads the scripts: each begins with what it does, returns
// and costs, and names every key and argument right behind that, in their order. Nowhere
// else does one stand by its number.
func TestScriptsNameTheirArguments(t *testing.T) {
	t.Parallel()
	paths, err := fs.Glob(sources, "lua/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := sources.ReadFile(path)
		require.NoError(t, err)
		header, code, _ := strings.Cut(string(text), "\n\n")
		for line := range strings.Lines(header) {
			require.True(t, strings.HasPrefix(line, "--"), "%s: its header ends with an empty line", path)
		}
		require.Contains(t, header, "\n-- returns  ", path)
		require.Contains(t, header, "\n-- costs    ", path)

		// Comments and code in front of the first empty line with code before it.
		block, body := "", code
		for strings.TrimSpace(luaComment.ReplaceAllString(block, "")) == "" && body != "" {
			var part string
			part, body, _ = strings.Cut(body, "\n\n")
			block += part + "\n"
		}
		block, body = luaComment.ReplaceAllString(block, ""), luaComment.ReplaceAllString(body, "")
		require.NotRegexp(t, `\b(ARGV|KEYS|argumentsFrom)\b`, body, "%s: an argument without a name", path)
		next := 1
		if strings.HasPrefix(header, "-- needs: env") {
			next = 2
		}
		for _, m := range luaArgument.FindAllStringSubmatch(block, -1) {
			require.Equal(t, strconv.Itoa(next), m[1]+m[2], "%s: the arguments in their order", path)
			next++
		}
	}
}

// TestPartsOfScriptsSayWhatTheyGive reads the parts that scripts share.
func TestPartsOfScriptsSayWhatTheyGive(t *testing.T) {
	t.Parallel()
	paths, err := fs.Glob(sources, "lua/lib/*.lua")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := sources.ReadFile(path)
		require.NoError(t, err)
		header, code, _ := strings.Cut(string(text), "\n\n")
		require.Regexp(t, `\bGives\b`, header, path)
		if path != "lua/lib/env.lua" {
			require.NotRegexp(t, `\b(ARGV|KEYS)\b`, luaComment.ReplaceAllString(code, ""), path)
		}
	}
}

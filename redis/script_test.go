package redis

import (
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	luaComment  = regexp.MustCompile(`--[^\n]*`)
	luaKey      = regexp.MustCompile(`\bkey\('([a-z]+)`)
	luaField    = regexp.MustCompile(`\bsetState\('([a-z]+)'|\bpart, '([a-z]+)'`)
	luaFunction = regexp.MustCompile(`(?m)^local function (\w+)|^  function (\w+)`)
	luaCall     = regexp.MustCompile(`\b(\w+)\(`)
	luaLocal    = regexp.MustCompile(`\blocal ([^=\n]*)`)
	luaWord     = regexp.MustCompile(`\w+`)
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
		if strings.HasPrefix(header, "-- needs: env") || strings.HasPrefix(header, "-- needs: glance\n") {
			next = 2
		}
		for _, m := range luaArgument.FindAllStringSubmatch(block, -1) {
			require.Equal(t, strconv.Itoa(next), m[1]+m[2], "%s: the arguments in their order", path)
			next++
		}
	}
}

// TestScriptsNeedWhatTheyCall looks in each script for calls of functions that only a part
// gives which the script does not have: the call would fail, perhaps in a rare case alone.
func TestScriptsNeedWhatTheyCall(t *testing.T) {
	t.Parallel()
	all, err := loadScripts()
	require.NoError(t, err)
	given := map[string]bool{}
	for _, s := range all.all {
		for _, m := range luaFunction.FindAllStringSubmatch(s.text, -1) {
			given[m[1]+m[2]] = true
		}
	}
	require.True(t, given["isBefore"] && given["placeSession"])
	for _, s := range all.all {
		code := luaComment.ReplaceAllString(s.text, "")
		local := map[string]bool{}
		for _, m := range luaLocal.FindAllStringSubmatch(code, -1) {
			for _, name := range luaWord.FindAllString(m[1], -1) {
				local[name] = true
			}
		}
		for _, m := range luaCall.FindAllStringSubmatch(code, -1) {
			if name := m[1]; given[name] {
				require.True(t, local[name], "%s calls %s, and needs no part that gives it", s.name, name)
			}
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
		if path != "lua/lib/env.lua" && path != "lua/lib/glance.lua" {
			require.NotRegexp(t, `\b(ARGV|KEYS)\b`, luaComment.ReplaceAllString(code, ""), path)
		}
	}
}

// TestFormatsNameEveryKeyOfTheScripts compares docs/formats.md with the keys and the fields
// of a partition's state that scripts use.
func TestFormatsNameEveryKeyOfTheScripts(t *testing.T) {
	t.Parallel()
	formats, err := os.ReadFile("../docs/formats.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(formats), "## Keys in Redis")
	require.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	all, err := loadScripts()
	require.NoError(t, err)
	keys, fields := make(map[string]bool), make(map[string]bool)
	for _, s := range all.all {
		for _, m := range luaKey.FindAllStringSubmatch(s.text, -1) {
			keys[m[1]] = true
		}
		for _, m := range luaField.FindAllStringSubmatch(s.text, -1) {
			fields[m[1]+m[2]] = true
		}
	}
	require.Greater(t, len(keys), 40)
	require.Greater(t, len(fields), 10)
	delete(keys, "both") // gone at the end of the script that makes it
	for key := range keys {
		require.Regexp(t, "`rc:\\{p\\}:"+key+"\\b", text)
	}
	for field := range fields {
		require.Regexp(t, `(?m)^\|[a-z, ]*\b`+field+`\b[a-z, ]*\|`, text)
	}
}

package rollcall_test

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryBlockOfTheDocsIsHeld expects code and configuration of proxies in files that
// tests run, and data that can be read. Blocks of commands and of other languages are run
// by tests of their own, in e2e (docs_test.go, docs_code_test.go).
func TestEveryBlockOfTheDocsIsHeld(t *testing.T) {
	files := repository(t)
	from := map[string]string{"nginx": "examples/forward-auth/nginx.conf", "caddy": "examples/forward-auth/Caddyfile"}
	others := []string{"", "sh", "console", "text", "yaml", "sql", "js", "python", "java", "php"}
	for _, doc := range documents(files) {
		for _, m := range regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```").FindAllStringSubmatch(read(t, doc), -1) { //nolint:gocritic // with (?m), ^ is where a line begins
			language, text := m[1], m[2]
			switch {
			case language == "go" && strings.HasPrefix(text, "func "):
				// Other tests run a function that stands alone.
			case language == "go":
				require.True(t, slices.ContainsFunc(files, func(f string) bool {
					return (strings.HasSuffix(f, "_test.go") || strings.HasPrefix(f, "examples/")) && path.Ext(f) == ".go" && hasLines(read(t, f), text)
				}), "%s has code that no test runs:\n%s", doc, text)
			case from[language] != "":
				require.True(t, hasLines(read(t, from[language]), text), "%s has what is not in %s:\n%s", doc, from[language], text)
			case language == "json" || language == "jsonl":
				for decoder := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, ", …", ""))); decoder.More(); {
					var v map[string]any
					require.NoError(t, decoder.Decode(&v), "%s: %s", doc, text)
				}
			default:
				require.Contains(t, others, language, "%s has a block in a language that no test holds:\n%s", doc, text)
			}
		}
	}
}

// hasLines reports whether all lines of a part stand in a text, in their order. What …
// stands for, and comments, may be others.
func hasLines(text, part string) bool {
	rest := strings.Split(text, "\n")
	for line := range strings.Lines(part) {
		line = strings.TrimSpace(line)
		if line == "" || line == "…" || strings.HasPrefix(line, "//") {
			continue
		}
		for len(rest) > 0 && strings.TrimSpace(rest[0]) != line {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return false
		}
	}
	return true
}

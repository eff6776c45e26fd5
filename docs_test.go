package rollcall_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryTestThatTheDocsNameExists holds the tables of docs/ to the code: a test
// that was renamed or removed shows nothing any more.
func TestEveryTestThatTheDocsNameExists(t *testing.T) {
	defined := make(map[string]bool)
	definition := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range definition.FindAllStringSubmatch(string(text), -1) {
			defined[m[1]] = true
		}
		return err
	}))

	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(string(text), -1) {
			require.True(t, defined[name], "%s names %s, which is not there", doc, name)
		}
	}
}

package docs_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/docs"
)

// TestEveryPageIsServedAndListed expects each page for readers in the program, and in the
// contents, which README.md is.
func TestEveryPageIsServedAndListed(t *testing.T) {
	forDevelopers := []string{"architecture.md", "decisions.md", "developing.md", "formats.md"}
	for _, folder := range []string{"", "zh-CN/"} {
		pages, err := filepath.Glob(folder + "*.md")
		require.NoError(t, err)
		if len(pages) == 0 {
			continue
		}
		contents, err := fs.ReadFile(docs.Files, folder+"README.md")
		require.NoError(t, err)
		for _, page := range pages {
			name := filepath.Base(page)
			if slices.Contains(forDevelopers, name) {
				continue
			}
			_, err := fs.Stat(docs.Files, filepath.ToSlash(page))
			require.NoError(t, err, "docs/embed.go does not name %s", page)
			if name != "README.md" {
				require.True(t, strings.Contains(string(contents), "\n- ["), "the contents")
				require.Contains(t, string(contents), "]("+name+")", "%sREADME.md does not list %s", folder, page)
			}
		}
	}
}

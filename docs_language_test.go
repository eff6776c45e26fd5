package rollcall_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBothLanguagesOfThePagesShowTheSameCode compares each Chinese page with the English
// one of its name, block by block, without comments. The commands of the English page are
// run by a test, so those of the Chinese one are as right.
func TestBothLanguagesOfThePagesShowTheSameCode(t *testing.T) {
	blocks := func(name string) []string {
		return fenced.FindAllString(regexp.MustCompile(`(?m)( +|^)(#|//) .*`).ReplaceAllString(read(t, name), ""), -1)
	}
	pages, err := filepath.Glob("docs/zh-CN/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	contents := read(t, "docs/zh-CN/README.md")
	for _, page := range pages {
		name := filepath.Base(page)
		require.Equal(t, blocks("docs/"+name), blocks(filepath.ToSlash(page)), "%s", page)
	}
	// The contents name each English page too: in Chinese, or as one that is English only.
	english, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range english {
		name := filepath.Base(page)
		if name == "README.md" {
			continue
		}
		inChinese, onlyEnglish := strings.Contains(contents, "]("+name+")"), strings.Contains(contents, "](../"+name+")")
		require.True(t, inChinese != onlyEnglish, "docs/zh-CN/README.md lists %s once", name)
	}
}

package rollcall_test

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheArchitectureNamesEveryPackage keeps the map whole: internal packages may be
// named by their own name alone.
func TestTheArchitectureNamesEveryPackage(t *testing.T) {
	files := repository(t)
	named := words(read(t, "docs/architecture.md"))
	for _, name := range files {
		folder := path.Dir(name)
		if path.Ext(name) != ".go" || folder == "." {
			continue
		}
		short, area := strings.TrimPrefix(folder, "internal/"), strings.Split(folder, "/")[0]
		require.True(t, slices.ContainsFunc([]string{folder, short, area}, func(s string) bool { return slices.Contains(named, s) }),
			"docs/architecture.md does not name the package %s: add it to the table", folder)
	}
}

// section returns what stands under a heading of a document, up to the next one of its
// level or above.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, body, found := strings.Cut(text, "\n"+heading+"\n")
	require.True(t, found, "there is no heading %q", heading)
	level := strings.Index(heading, " ")
	if end := regexp.MustCompile(`(?m)^#{1,` + strconv.Itoa(level) + `} `).FindStringIndex(body); end != nil {
		body = body[:end[0]]
	}
	return body
}

// columnFolders are the folders that the columns of "Where a feature is" stand for.
var columnFolders = map[string]string{
	"httpapi": "httpapi/", "root": "", "local": "local/", "redis": "redis/", "Lua": "redis/lua/", "suite": "enginetest/",
}

// featureTable returns the patterns of files in the tables of "Where a feature is": paths,
// of those in a layer's column, and names of the others, which say no folder.
func featureTable(t *testing.T) (paths, others []string) {
	t.Helper()
	var columns []string // of the table at hand
	for line := range strings.Lines(section(t, read(t, "docs/architecture.md"), "## Where a feature is")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			columns = nil
			continue
		case columns == nil:
			for _, cell := range cells {
				columns = append(columns, strings.Trim(cell, " `"))
			}
			continue
		}
		for i, cell := range cells {
			folder, isLayer := columnFolders[columns[i]]
			for _, word := range words(cell) {
				switch {
				case path.Ext(word) != ".go" && path.Ext(word) != ".lua":
				case isLayer:
					paths = append(paths, folder+word)
				default:
					others = append(others, word)
				}
			}
		}
	}
	require.Greater(t, len(paths), 200)
	return paths, others
}

// TestEveryFileStandsInItsColumnOfTheFeatureTable expects each file that a column of
// "Where a feature is" names in that column's folder, and each file of the root, of the
// scripts and of the suite in a row.
func TestEveryFileStandsInItsColumnOfTheFeatureTable(t *testing.T) {
	files := repository(t)
	paths, others := featureTable(t)
	matches := func(pattern, file string) bool {
		ok, err := path.Match(pattern, file)
		return err == nil && ok
	}
	for _, p := range paths {
		require.True(t, slices.ContainsFunc(files, func(f string) bool { return matches(p, f) }),
			"docs/architecture.md: there is no %s: write its new name, or put it into another column", p)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || path.Base(file) == "doc.go" || (path.Ext(file) != ".go" && path.Ext(file) != ".lua") ||
			!slices.Contains([]string{".", "redis/lua", "redis/lua/lib", "enginetest"}, path.Dir(file)) {
			continue
		}
		named := slices.ContainsFunc(paths, func(p string) bool { return matches(p, file) }) ||
			slices.ContainsFunc(others, func(p string) bool { return matches(path.Base(p), path.Base(file)) })
		require.True(t, named, "docs/architecture.md has no place for %s: add it to a row of \"Where a feature is\"", file)
	}
}

// TestTheArchitectureKnowsTheNounOfEveryFile keeps its tables whole where engines and
// their suite are concerned: a file is found by its noun, the part of its name before the
// first underscore.
func TestTheArchitectureKnowsTheNounOfEveryFile(t *testing.T) {
	noun := func(file string) string {
		return strings.FieldsFunc(path.Base(file)+"_", func(r rune) bool { return strings.ContainsRune("_.*", r) })[0]
	}
	known := map[string]bool{"doc": true}
	for _, word := range words(read(t, "docs/architecture.md")) {
		if slices.Contains([]string{".go", ".lua"}, path.Ext(word)) {
			known[noun(word)] = true
		}
	}
	for _, file := range repository(t) {
		folder := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || !slices.Contains([]string{".go", ".lua"}, path.Ext(file)) ||
			!slices.Contains([]string{"local", "redis", "redis/lua", "redis/lua/lib", "enginetest"}, folder) {
			continue
		}
		require.True(t, known[noun(file)], "docs/architecture.md has no place for %s: add it to a row of \"Where a feature is\"", file)
	}
}

package rollcall_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// repository lists the files of the repository, without folders that only hold what
// was built or fetched.
func repository(t *testing.T) []string {
	t.Helper()
	skipped := []string{".git", "node_modules", "dist", "rollcall-data"}
	var files []string
	require.NoError(t, filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(skipped, entry.Name()) {
			return filepath.SkipDir
		}
		if !entry.IsDir() {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	}))
	return files
}

// read returns the text of one of the files.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// documents are the files that people read.
func documents(files []string) []string {
	return slices.DeleteFunc(slices.Clone(files), func(name string) bool {
		return path.Ext(name) != ".md" || strings.HasPrefix(name, "testdata/")
	})
}

// fenced matches a block of code in a document.
var fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```") //nolint:gocritic // with (?m), ^ is where a line begins

// words returns what stands between backticks in the prose of a document.
func words(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		out = append(out, m[1])
	}
	return out
}

// TestEveryTestThatTheDocsNameExists holds the tables of docs/ to the code: a test
// that was renamed or removed shows nothing any more.
func TestEveryTestThatTheDocsNameExists(t *testing.T) {
	files := repository(t)
	defined := make(map[string]bool)
	definition := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range definition.FindAllStringSubmatch(read(t, name), -1) {
				defined[m[1]] = true
			}
		}
	}
	for _, doc := range documents(files) {
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`).FindAllString(read(t, doc), -1) {
			require.True(t, defined[name], "%s names %s, which is not there: write its new name", doc, name)
		}
	}
}

func TestEveryFileThatTheDocsNameExists(t *testing.T) {
	files := repository(t)
	for _, doc := range documents(files) {
		for _, word := range append(words(read(t, doc)), pathsInPictures(read(t, doc))...) {
			if isPath(files, word) {
				require.True(t, slices.ContainsFunc(files, func(f string) bool { return names(word, f) }),
					"%s names the file %s, which is not there: write its new name", doc, word)
			}
		}
	}
}

// pathsInPictures returns the names of files in the pictures of a document.
func pathsInPictures(text string) []string {
	var out []string
	for _, block := range fenced.FindAllString(text, -1) {
		if strings.HasPrefix(strings.TrimSpace(block), "```text") {
			out = append(out, regexp.MustCompile(`[\w/]+\.(?:go|lua)\b`).FindAllString(block, -1)...)
		}
	}
	return out
}

// isPath reports whether a word looks like a path of the repository: it ends as
// source files do, or begins with one of its folders.
func isPath(files []string, word string) bool {
	if strings.ContainsAny(word, " (){}<>…$:=\",") || strings.HasPrefix(word, "-") {
		return false
	}
	if slices.Contains([]string{".go", ".lua", ".sh", ".txtar", ".sql", ".md"}, path.Ext(word)) || slices.Contains(files, word) {
		return true
	}
	folder, _, deeper := strings.Cut(word, "/")
	return deeper && folder != "" && slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, folder+"/") })
}

// names reports whether a word, which may be a pattern, is the path of a file or of a
// folder it is in, or the end of one. Scripts are named below redis/lua.
func names(word, file string) bool {
	word = strings.Trim(strings.TrimPrefix(word, "./"), "/")
	if strings.HasSuffix(word, ".lua") {
		ok, err := path.Match(strings.TrimPrefix(word, "redis/lua/"), strings.TrimPrefix(file, "redis/lua/"))
		return err == nil && ok
	}
	elements := strings.Split(file, "/")
	for from := range elements {
		for to := from + 1; to <= len(elements); to++ {
			if ok, err := path.Match(word, strings.Join(elements[from:to], "/")); err == nil && ok {
				return true
			}
		}
	}
	return false
}

// TestEveryIdentifierThatTheDocsNameIsInTheCode knows an identifier by capitals among
// small letters. Those that are no names of this code are listed.
func TestEveryIdentifierThatTheDocsNameIsInTheCode(t *testing.T) {
	foreign := []string{"Rollcall_User", "Secure", "HttpOnly", "postMessage"}
	files := repository(t)
	known := make(map[string]bool)
	identifier := regexp.MustCompile(`[A-Za-z_]\w*`)
	for _, name := range files {
		if slices.Contains([]string{".go", ".lua", ".sql", ".ts"}, path.Ext(name)) {
			for _, word := range identifier.FindAllString(read(t, name), -1) {
				known[word] = true
			}
		}
	}
	whole := regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\(\))?$`)
	for _, doc := range documents(files) {
		for _, word := range words(read(t, doc)) {
			mixed := strings.ContainsFunc(word, unicode.IsUpper) && strings.ContainsFunc(word, unicode.IsLower)
			if !mixed || !whole.MatchString(word) || isPath(files, word) || slices.Contains(foreign, word) {
				continue
			}
			for _, part := range identifier.FindAllString(word, -1) {
				require.True(t, known[part], "%s names %s, which is not in the code: write its new name", doc, word)
			}
		}
	}
}

// TestEachStepOfDevelopingNamesWhatItsFilesHave expects the identifiers of a step in the
// files that the step names.
func TestEachStepOfDevelopingNamesWhatItsFilesHave(t *testing.T) {
	files := repository(t)
	identifier := regexp.MustCompile(`^[A-Za-z_]\w*$`)
	checked := 0
	steps := regexp.MustCompile(`(?m)^\d+\. `).Split(section(t, read(t, "docs/developing.md"), "## How to add …"), -1)
	for _, step := range steps {
		step, _, _ = strings.Cut(step, "\n\n") // what follows the list is of no step
		var code, unknown []string
		for _, word := range words(step) {
			switch {
			case isPath(files, word):
				for _, file := range files { // a path from the root of the repository
					if ok, err := path.Match(word, file); err == nil && ok {
						code = append(code, read(t, file))
					}
				}
			case identifier.MatchString(word):
				unknown = append(unknown, word)
			}
		}
		if code == nil {
			continue
		}
		for _, name := range unknown {
			whole := regexp.MustCompile(`\b` + name + `\b`)
			require.True(t, slices.ContainsFunc(code, whole.MatchString), "docs/developing.md: no file of this step has %s:\n%s", name, step)
			checked++
		}
	}
	require.Greater(t, checked, 25)
}

func TestEveryLinkOfTheDocsLeadsSomewhere(t *testing.T) {
	files := repository(t)
	for _, doc := range documents(files) {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(fenced.ReplaceAllString(read(t, doc), ""), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			at := doc
			if target != "" {
				at = path.Join(path.Dir(doc), target)
			}
			_, err := os.Stat(at)
			require.NoError(t, err, "%s links to %s", doc, m[1])
			if heading != "" {
				require.Contains(t, headings(read(t, at)), heading, "%s links to %s", doc, m[1])
			}
		}
	}
}

// headings returns the anchors of a document's headings, as GitHub makes them.
func headings(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		out = append(out, kept)
	}
	return out
}

// TestTheFirstLinesOfThePackageDocAreCompiled expects the lines of code in doc.go in an
// example.
func TestTheFirstLinesOfThePackageDocAreCompiled(t *testing.T) {
	examples := strings.ReplaceAll(read(t, "example_test.go"), "local.Open(dir,", `local.Open("rollcall-data",`)
	lines := regexp.MustCompile(`(?m)^//\t(\t?\S.*)$`).FindAllStringSubmatch(read(t, "doc.go"), -1)
	require.Greater(t, len(lines), 10)
	for _, m := range lines {
		require.Contains(t, examples, strings.TrimSpace(m[1]))
	}
}

// TestThePictureOfTheResultsHasTheirFigures expects each figure of the picture in the
// tables it was drawn from.
func TestThePictureOfTheResultsHasTheirFigures(t *testing.T) {
	results := read(t, "bench/RESULTS.md")
	figures := regexp.MustCompile(`class="value"[^>]*>([^<]+)<`).FindAllStringSubmatch(read(t, "docs/results.svg"), -1)
	require.Len(t, figures, 8)
	for _, m := range figures {
		require.Contains(t, results, " "+m[1]+" |", "docs/results.svg is older than bench/RESULTS.md: run go -C bench run ./plot")
	}
}

// TestBothReadmesShowTheSamePicturesOfTheConsole expects each picture for light and dark,
// with words for whoever does not see it, and all of them to load quickly.
func TestBothReadmesShowTheSamePicturesOfTheConsole(t *testing.T) {
	pictures := func(name string) (out []string) {
		for _, m := range regexp.MustCompile(`(?s)<picture>(.*?)</picture>`).FindAllStringSubmatch(read(t, name), -1) {
			require.Regexp(t, `<img[^>]* alt="[^"]{20,}"`, m[1], "%s", name)
			dark := regexp.MustCompile(`prefers-color-scheme: dark\)" srcset="([^"]+)-dark\.png"`).FindStringSubmatch(m[1])
			light := regexp.MustCompile(`<img[^>]* src="([^"]+)-light\.png"`).FindStringSubmatch(m[1])
			require.True(t, len(dark) == 2 && len(light) == 2 && dark[1] == light[1], "%s: %s", name, m[1])
			out = append(out, dark[1])
		}
		return out
	}
	all := pictures("README.md")
	require.Len(t, all, 3)
	require.Equal(t, all, pictures("README.zh-CN.md"))
	size := 0
	for _, name := range all {
		for _, scheme := range []string{"-light.png", "-dark.png"} {
			size += len(read(t, name+scheme))
		}
	}
	require.Less(t, size, 1_000_000, "bytes of all pictures: docs/images/make.sh makes them smaller")
}

// TestTheReadmesSayTheVersionOfGoThatIsNeeded reads it from go.mod.
func TestTheReadmesSayTheVersionOfGoThatIsNeeded(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	for _, name := range []string{"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs/developing.md"} {
		require.Contains(t, read(t, name), "Go "+version, "%s", name)
		for _, badge := range regexp.MustCompile(`badge/Go-[\d.]+`).FindAllString(read(t, name), -1) {
			require.Equal(t, "badge/Go-"+version, badge, "%s", name)
		}
	}
}

// TestFormatsListsEveryTableOfTheStore also holds the number of the format to the code.
func TestFormatsListsEveryTableOfTheStore(t *testing.T) {
	formats := read(t, "docs/formats.md")
	tables := regexp.MustCompile(`(?m)^\ttab\w+ += '(.)'`).FindAllStringSubmatch(read(t, "local/store_keys.go"), -1)
	require.Greater(t, len(tables), 30)
	for _, m := range tables {
		require.Contains(t, formats, "\n| `"+m[1]+"` ", "docs/formats.md has no row for the table %s", m[1])
	}
	number := regexp.MustCompile(`(?m)^const format = (\d+)$`).FindStringSubmatch(read(t, "local/engine.go"))
	require.Contains(t, formats, "now "+number[1]+".", "docs/formats.md says another number of the format")
}

func TestTheDocsListEverySetting(t *testing.T) {
	documented := append(words(read(t, "docs/configuration.md")), words(read(t, "docs/operations.md"))...)
	for _, m := range regexp.MustCompile(`key:"([a-z._]+)"`).FindAllStringSubmatch(read(t, "cmd/rollcall/config_keys.go"), -1) {
		require.True(t, slices.Contains(documented, m[1]), "neither docs/configuration.md nor docs/operations.md names the setting %s", m[1])
	}
}

func TestEveryMetricThatTheDocsNameIsMeasured(t *testing.T) {
	files := repository(t)
	var code strings.Builder
	for _, name := range files {
		if (strings.HasPrefix(name, "httpapi/") || strings.HasPrefix(name, "cmd/rollcall/")) && strings.HasSuffix(name, ".go") {
			code.WriteString(read(t, name))
		}
	}
	for _, doc := range documents(files) {
		for _, name := range regexp.MustCompile(`\brollcall_[a-z_]+`).FindAllString(fenced.ReplaceAllString(read(t, doc), ""), -1) {
			if name != "rollcall_login_days" { // a table of the archive
				short := strconv.Quote(strings.TrimPrefix(name, "rollcall_"))
				require.True(t, strings.Contains(code.String(), name) || strings.Contains(code.String(), short), "%s names the metric %s", doc, name)
			}
		}
	}
}

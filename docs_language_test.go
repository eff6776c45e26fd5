package rollcall_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// englishOnly are the pages that have no Chinese one, and why.
func englishOnly() map[string]string {
	const forDevelopers = "for those who change the code, whose comments are in English"
	return map[string]string{
		"architecture.md": forDevelopers,
		"decisions.md":    forDevelopers,
		"developing.md":   forDevelopers,
		"formats.md":      forDevelopers,
	}
}

// TestEachPageOfTheManualIsThereInBothLanguages also expects the contents of each language
// to name each page once.
func TestEachPageOfTheManualIsThereInBothLanguages(t *testing.T) {
	english, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	contents, inChinese := read(t, "docs/README.md"), read(t, "docs/zh-CN/README.md")
	for _, page := range english {
		name := filepath.Base(page)
		_, err := os.Stat("docs/zh-CN/" + name)
		why, only := englishOnly()[name]
		require.Equal(t, only, err != nil, "docs/zh-CN/%s: write it, or say why there is none (%s)", name, why)
		if name == "README.md" {
			continue
		}
		require.Equal(t, 1, strings.Count(contents, "]("+name+")"), "docs/README.md lists %s", name)
		link := "](" + name + ")"
		if only {
			link = "](../" + name + ")"
		}
		require.Equal(t, 1, strings.Count(inChinese, link), "docs/zh-CN/README.md lists %s", name)
	}
	chinese, err := filepath.Glob("docs/zh-CN/*.md")
	require.NoError(t, err)
	require.Equal(t, len(english)-len(englishOnly()), len(chinese), "each Chinese page has an English one")
}

// TestBothLanguagesOfThePagesSayTheSame compares each Chinese page with the English one,
// section by section, by what does not depend on the language: a page that was changed in
// one language alone is found.
func TestBothLanguagesOfThePagesSayTheSame(t *testing.T) {
	pages, err := filepath.Glob("docs/zh-CN/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		page = filepath.ToSlash(page)
		requireSame(t, path.Join("docs", path.Base(page)), page)
	}
	requireSame(t, "README.md", "README.zh-CN.md")
}

func requireSame(t *testing.T, english, chinese string) {
	t.Helper()
	want, got := docSections(read(t, english)), docSections(read(t, chinese))
	require.Len(t, got, len(want), "sections of %s and %s", english, chinese)
	for i := range want {
		where := chinese + ", " + got[i].heading + " (" + want[i].heading + ")"
		require.Equal(t, want[i].level, got[i].level, "the level of %s", where)
		require.Equal(t, want[i].code, got[i].code, "the blocks of code of %s", where)
		require.Equal(t, want[i].rows, got[i].rows, "the rows of tables of %s", where)
		require.Equal(t, want[i].items, got[i].items, "the items of lists of %s", where)
		require.Equal(t, want[i].names, got[i].names, "what stands in backticks in %s", where)
		require.Equal(t, want[i].figures, got[i].figures, "the figures of %s", where)
	}
}

// docSection is what the section of a page has in every language.
type docSection struct {
	heading     string
	level       int
	code        []string // blocks, without comments
	rows, items int      // of tables, of lists
	names       []string // between backticks: each once, sorted
	figures     []string // likewise
}

var (
	docHeading = regexp.MustCompile(`(?m)^(#+) (.+)$`)
	docComment = regexp.MustCompile(`(?m)( +|^)(#|//) .*`)
	docRow     = regexp.MustCompile(`(?m)^ *\|`)
	docItem    = regexp.MustCompile(`(?m)^ *(-|\d+\.) `)
	docLink    = regexp.MustCompile(`\]\([^)]*\)`)
	docName    = regexp.MustCompile("`[^`]+`")
	// docFigure does not look at a figure of one digit, nor at one with a word such as
	// million behind it: languages write these in different ways.
	docFigure = regexp.MustCompile(`\d[\d,.]*\d(?: (?:million|M|k)\b| ?[万亿])?`)
)

func docSections(text string) []docSection {
	var out []docSection
	blocks := fenced.FindAllString(text, -1)
	for i, block := range blocks { // a comment in a block is no heading
		blocks[i] = docComment.ReplaceAllString(block, "")
		text = strings.Replace(text, block, "\x00", 1)
	}
	marks := docHeading.FindAllStringSubmatchIndex(text, -1)
	for i, m := range marks {
		end := len(text)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		body := text[m[1]:end]
		s := docSection{level: m[3] - m[2], heading: text[m[4]:m[5]]}
		s.code, blocks = blocks[:strings.Count(body, "\x00")], blocks[strings.Count(body, "\x00"):]
		s.rows, s.items = len(docRow.FindAllString(body, -1)), len(docItem.FindAllString(body, -1))
		prose := strings.Join(strings.Fields(docLink.ReplaceAllString(body, "]")), " ")
		s.names = eachOnce(docName.FindAllString(prose, -1))
		s.figures = eachOnce(slices.DeleteFunc(docFigure.FindAllString(docName.ReplaceAllString(prose, ""), -1), func(figure string) bool {
			return strings.ContainsAny(figure, "万亿Mkn")
		}))
		out = append(out, s)
	}
	return out
}

func eachOnce(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

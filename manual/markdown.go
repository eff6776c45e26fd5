package manual

import (
	"bytes"
	"html"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// repository is where the files are that are not served.
const repository = "https://github.com/rollcall/rollcall/blob/main/"

// anchors names headings as GitHub does, so that a link is right in both places.
type anchors struct{ taken map[string]bool }

// Generate implements parser.IDs.
func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, string(heading))
	a.taken[kept] = true
	return []byte(kept)
}

// Put implements parser.IDs.
func (a anchors) Put(id []byte) { a.taken[string(id)] = true }

// render makes HTML of a page's Markdown.
func (p *page) render(pages fs.FS, source []byte) error {
	converter := goldmark.New(goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	root := converter.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(anchors{make(map[string]bool)}))))
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			link.Destination = []byte(p.target(pages, string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := converter.Renderer().Render(&out, source, root); err != nil {
		return err
	}
	p.body = reachable(out.String(), p.book.words)
	p.sections = sections(p.body)
	if len(p.sections) > 0 {
		p.title = p.sections[0].title
	}
	return nil
}

// target turns a link within the repository into one between the pages. What is not
// served leads to the repository.
func (p *page) target(pages fs.FS, link string) string {
	to, anchor, hasAnchor := strings.Cut(link, "#")
	if to == "" || strings.Contains(to, "://") {
		return link
	}
	at := path.Join(p.book.folder, to)
	if _, err := fs.Stat(pages, at); err != nil || path.Ext(at) != ".md" {
		return repository + path.Join("docs", p.book.folder, link)
	}
	out := p.book.up() + strings.TrimSuffix(strings.TrimSuffix(at, ".md"), "README")
	if hasAnchor {
		out += "#" + anchor
	}
	return out
}

// up leads from a page to Path.
func (b *book) up() string {
	if b.folder == "" {
		return "./"
	}
	return "../"
}

var (
	wholeTable = regexp.MustCompile(`(?s)<table>.*?</table>`)
	heading    = regexp.MustCompile(`(?s)<h([123]) id="([^"]*)">(.*?)</h[123]>`)
	inlineTag  = regexp.MustCompile(`</?(?:a|code|em|strong)\b[^>]*>`)
	anyTag     = regexp.MustCompile(`<[^>]*>`)
	spaces     = regexp.MustCompile(`\s+`)
)

// reachable lets a keyboard scroll what may be wider than a screen, and gives each
// heading a link to itself.
func reachable(body string, w words) string {
	body = strings.ReplaceAll(body, "<pre>", `<pre tabindex="0">`)
	body = wholeTable.ReplaceAllString(body, `<div class="wide" tabindex="0">$0</div>`)
	return heading.ReplaceAllStringFunc(body, func(h string) string {
		m := heading.FindStringSubmatch(h)
		if m[1] == "1" {
			return h
		}
		return `<h` + m[1] + ` id="` + m[2] + `">` + m[3] + `<a class="anchor" href="#` + m[2] + `" aria-label="` + html.EscapeString(w.onThisPage+": "+plain(m[3])) + `"></a></h` + m[1] + `>`
	})
}

// sections splits a page at its headings.
func sections(body string) []section {
	var out []section
	marks := heading.FindAllStringSubmatchIndex(body, -1)
	for i, m := range marks {
		end := len(body)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		out = append(out, section{
			level:  int(body[m[2]] - '0'),
			anchor: body[m[4]:m[5]],
			title:  plain(body[m[6]:m[7]]),
			body:   plain(body[m[1]:end]),
		})
	}
	return out
}

// plain returns the text of HTML. Tags within a line leave no space: Chinese has none there.
func plain(body string) string {
	body = anyTag.ReplaceAllString(inlineTag.ReplaceAllString(body, ""), " ")
	return strings.TrimSpace(spaces.ReplaceAllString(html.UnescapeString(body), " "))
}

package manual

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// first is the file that the others are listed in.
const first = "README.md"

// book is the documentation in one language.
type book struct {
	words
	folder   string // of its files and of its paths: "" or one with a slash behind it
	chapters []chapter
	pages    []*page // as they follow on each other, the first page first
}

// chapter is a group of pages in the contents.
type chapter struct {
	title string
	pages []*page
}

// page is one file of Markdown.
type page struct {
	book     *book
	name     string // of its file
	title    string // of its first heading
	body     string // HTML
	sections []section
}

// section is what stands below a heading.
type section struct {
	level  int
	anchor string
	title  string // plain text, as body
	body   string
}

// words are what a page says besides its text.
type words struct {
	tag, name                                string // of the language
	search, contents, onThisPage, skip, menu string
	previous, next, calls, console, copied   string
	copy, nothing, elsewhere                 string
}

func languages() []*book {
	return []*book{
		{words: words{
			tag: "en", name: "English",
			search: "Search", contents: "Contents", onThisPage: "On this page", skip: "To the text", menu: "Pages",
			previous: "Before", next: "Next", calls: "All calls", console: "Console", copied: "Copied",
			copy: "Copy", nothing: "Nothing found", elsewhere: "in the repository",
		}},
		{folder: "zh-CN/", words: words{
			tag: "zh-CN", name: "简体中文",
			search: "搜索", contents: "目录", onThisPage: "本页内容", skip: "跳到正文", menu: "全部页面",
			previous: "上一页", next: "下一页", calls: "全部接口", console: "控制台", copied: "已复制",
			copy: "复制", nothing: "没有找到", elsewhere: "在代码仓库中",
		}},
	}
}

// readBooks reads the languages that the folder has.
func readBooks(pages fs.FS) ([]*book, error) {
	var out []*book
	for _, b := range languages() {
		if _, err := fs.Stat(pages, b.folder+first); err != nil {
			continue
		}
		if err := b.read(pages); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	if out == nil {
		return nil, fmt.Errorf("there is no %s", first)
	}
	return out, nil
}

var (
	chapterHeading = regexp.MustCompile(`^## (.+)`)
	chapterItem    = regexp.MustCompile(`^- \[[^\]]*\]\(([\w-]+\.md)\)`)
)

// read reads the pages in the order in which the first one lists them.
func (b *book) read(pages fs.FS) error {
	start, text, err := b.open(pages, first)
	if err != nil {
		return err
	}
	b.pages = append(b.pages, start)
	for line := range strings.Lines(text) {
		if m := chapterHeading.FindStringSubmatch(line); m != nil {
			b.chapters = append(b.chapters, chapter{title: m[1]})
		}
		m := chapterItem.FindStringSubmatch(line)
		if m == nil || len(b.chapters) == 0 {
			continue
		}
		if _, err := fs.Stat(pages, b.folder+m[1]); err != nil {
			continue // one that only the repository has
		}
		p, _, err := b.open(pages, m[1])
		if err != nil {
			return err
		}
		b.pages = append(b.pages, p)
		last := &b.chapters[len(b.chapters)-1]
		last.pages = append(last.pages, p)
	}
	return nil
}

// open reads one page and renders it.
func (b *book) open(pages fs.FS, name string) (*page, string, error) {
	text, err := fs.ReadFile(pages, b.folder+name)
	if err != nil {
		return nil, "", err
	}
	p := &page{book: b, name: name}
	if err := p.render(pages, text); err != nil {
		return nil, "", fmt.Errorf("%s%s: %w", b.folder, name, err)
	}
	return p, string(text), nil
}

// path returns where the page is, below Path.
func (p *page) path() string { return p.book.folder + p.short() }

// short returns the last element of the page's path; that of the first page is empty.
func (p *page) short() string {
	if p.name == first {
		return ""
	}
	return strings.TrimSuffix(p.name, path.Ext(p.name))
}

// find returns the page of a file; nil if there is none.
func (b *book) find(name string) *page {
	for _, p := range b.pages {
		if p.name == name {
			return p
		}
	}
	return nil
}

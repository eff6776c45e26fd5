package manual

import (
	"html"
	"slices"
	"strings"
)

// html returns the whole page.
func (b *book) html(books []*book, p *page) []byte {
	var out strings.Builder
	w, esc := b.words, html.EscapeString
	title := p.title
	if p.name != first {
		title += " · Rollcall"
	}
	out.WriteString(`<!doctype html>
<html lang="` + w.tag + `">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>` + esc(title) + `</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="` + b.up() + `manual.css">
<script src="` + b.up() + `manual.js" defer></script>
</head>
<body data-index="search.json" data-copy="` + esc(w.copy) + `" data-copied="` + esc(w.copied) + `" data-nothing="` + esc(w.nothing) + `">
<a class="skip" href="#text">` + esc(w.skip) + `</a>
<header class="top">
<a class="home" href="./">Rollcall</a>
<div class="search" role="search"><input id="search" type="search" placeholder="` + esc(w.search) + `" aria-label="` + esc(w.search) + `" autocomplete="off" maxlength="100"><ul id="found" hidden aria-live="polite"></ul></div>
<nav class="links" aria-label="Rollcall"><a href="` + b.up() + `openapi">` + esc(w.calls) + `</a><a href="` + b.up() + `../console/">` + esc(w.console) + `</a>` + b.others(books, p) + `</nav>
</header>
<div class="frame">
<nav class="contents" aria-label="` + esc(w.contents) + `"><details open id="menu"><summary>` + esc(w.menu) + `</summary>
`)
	for _, c := range b.chapters {
		if len(c.pages) == 0 {
			continue
		}
		out.WriteString(`<h2>` + esc(c.title) + "</h2>\n<ul>\n")
		for _, q := range c.pages {
			here := ""
			if q == p {
				here = ` aria-current="page"`
			}
			out.WriteString(`<li><a href="` + q.short() + `"` + here + `>` + esc(q.title) + "</a></li>\n")
		}
		out.WriteString("</ul>\n")
	}
	out.WriteString("</details></nav>\n<main id=\"text\" tabindex=\"-1\">\n" + p.body + b.around(p) + "</main>\n" + b.outline(p) + "</div>\n</body>\n</html>\n")
	return []byte(out.String())
}

// others links to the same page in other languages, and to their first page where they
// have not this one.
func (b *book) others(books []*book, p *page) string {
	out := ""
	for _, other := range books {
		if other == b {
			continue
		}
		at := other.folder
		if q := other.find(p.name); q != nil {
			at = q.path()
		}
		out += `<a href="` + b.up() + at + `" lang="` + other.tag + `" hreflang="` + other.tag + `" class="language">` + html.EscapeString(other.name) + `</a>`
	}
	return out
}

// around links to the pages before and behind.
func (b *book) around(p *page) string {
	at := slices.Index(b.pages, p)
	out := "<nav class=\"around\" aria-label=\"" + html.EscapeString(b.previous+", "+b.next) + "\">\n"
	link := func(q *page, label, rel string) {
		href := q.short()
		if href == "" {
			href = "./"
		}
		out += `<a rel="` + rel + `" href="` + href + `"><span>` + html.EscapeString(label) + `</span>` + html.EscapeString(q.title) + "</a>\n"
	}
	if at > 0 {
		link(b.pages[at-1], b.previous, "prev")
	}
	if at+1 < len(b.pages) {
		link(b.pages[at+1], b.next, "next")
	}
	return out + "</nav>\n"
}

// outline lists the sections of a page; it is empty if there are fewer than two.
func (b *book) outline(p *page) string {
	items := ""
	count := 0
	for _, s := range p.sections {
		if s.level == 2 {
			items += `<li><a href="#` + s.anchor + `">` + html.EscapeString(s.title) + "</a></li>\n"
			count++
		}
	}
	if count < 2 {
		return ""
	}
	return `<nav class="outline" aria-label="` + html.EscapeString(b.onThisPage) + `"><h2>` + html.EscapeString(b.onThisPage) + "</h2>\n<ul>\n" + items + "</ul></nav>\n"
}

package manual

import "encoding/json"

// index is what the search looks in: path, title of the page, title of the section and
// its text, for each section of each page.
func (b *book) index() ([]byte, error) {
	var rows [][4]string
	for _, p := range b.pages {
		for _, s := range p.sections {
			at := p.short()
			if s.level > 1 {
				at += "#" + s.anchor
			}
			rows = append(rows, [4]string{at, p.title, s.title, s.body})
		}
	}
	return json.Marshal(rows)
}

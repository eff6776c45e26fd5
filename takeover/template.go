package takeover

import (
	"fmt"
	"regexp"
	"strings"
)

// template is the name of a family of keys with places in it, such as
// user:{user}:friends.
type template struct {
	text  string
	parts []templatePart
	names *regexp.Regexp
}

// templatePart is a text, or a place.
type templatePart struct {
	text  string
	place string // "" for a text
}

// placePatterns are what may stand in each place.
var placePatterns = map[string]string{
	"user":   `(.+)`,
	"kind":   `([^_:]+)`,
	"month":  `([0-9]{4}-[0-9]{2})`,
	"minute": `([0-5][0-9])`,
}

// parseTemplate reads the name of a family, which has each of the places once.
func parseTemplate(text string, places ...string) (template, error) {
	t := template{text: text}
	pattern := "^"
	found := make(map[string]bool)
	for rest := text; rest != ""; {
		before, after, opened := strings.Cut(rest, "{")
		if before != "" {
			t.parts, pattern = append(t.parts, templatePart{text: before}), pattern+regexp.QuoteMeta(before)
		}
		if !opened {
			break
		}
		place, behind, closed := strings.Cut(after, "}")
		if !closed || placePatterns[place] == "" || found[place] {
			return t, fmt.Errorf("the name %q must have the places {%s}, each once", text, strings.Join(places, "}, {"))
		}
		found[place] = true
		t.parts, pattern = append(t.parts, templatePart{place: place}), pattern+placePatterns[place]
		rest = behind
	}
	for _, place := range places {
		if !found[place] {
			return t, fmt.Errorf("the name %q must have the places {%s}, each once", text, strings.Join(places, "}, {"))
		}
	}
	t.names = regexp.MustCompile("(?s)" + pattern + "$")
	return t, nil
}

// match returns what stands in the places of a key.
func (t *template) match(key string) (map[string]string, bool) {
	m := t.names.FindStringSubmatch(key)
	if m == nil {
		return nil, false
	}
	found, at := make(map[string]string), 1
	for _, p := range t.parts {
		if p.place != "" {
			found[p.place] = m[at]
			at++
		}
	}
	return found, true
}

// key returns the key with these values in its places.
func (t *template) key(values map[string]string) string {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.text + values[p.place])
	}
	return b.String()
}

// ofUser returns the key of a user in a family that has no other place.
func (t *template) ofUser(user string) string { return t.key(map[string]string{"user": user}) }

// glob returns a pattern of SCAN that every key of the family matches.
func (t *template) glob(values map[string]string) string {
	escape := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
	var b strings.Builder
	for _, p := range t.parts {
		value, known := values[p.place]
		switch {
		case p.place == "":
			b.WriteString(escape.Replace(p.text))
		case known:
			b.WriteString(escape.Replace(value))
		default:
			b.WriteString("*")
		}
	}
	return b.String()
}

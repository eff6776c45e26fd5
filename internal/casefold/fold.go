// Package casefold compares texts without regard to case.
package casefold

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold maps letters that differ only by case to one of them.
func Fold(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < utf8.RuneSelf
	}
	if ascii {
		return strings.ToLower(s)
	}
	return strings.Map(foldRune, s)
}

func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return unicode.ToLower(least)
}

// HasPrefix reports whether Fold of a text begins with a folded prefix. It makes no copy.
func HasPrefix(text []byte, folded string) bool {
	for len(folded) > 0 {
		r, n := utf8.DecodeRune(text)
		if n == 0 {
			return false
		}
		var buf [utf8.UTFMax]byte
		k := utf8.EncodeRune(buf[:], foldRune(r))
		if !strings.HasPrefix(folded, string(buf[:k])) {
			return false
		}
		text, folded = text[n:], folded[k:]
	}
	return true
}

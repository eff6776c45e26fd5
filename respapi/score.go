package respapi

import (
	"math"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// maxSkew is how far a score may be from the server's clock, in seconds: a client's clock
// decides nothing.
const maxSkew = 60

// maxScore bounds the whole numbers that scores are taken for.
const maxScore = 1 << 53

// scores is a range of scores: whole numbers, both ends included, as all scores here are.
type scores struct{ least, most int64 }

var allScores = scores{-maxScore, maxScore}

func (r scores) empty() bool { return r.least > r.most }

func (r scores) holds(v float64) bool { return v >= float64(r.least) && v <= float64(r.most) }

// seconds is the range of seconds that hold a score of the range.
func (r scores) seconds(unit int64) scores {
	return scores{floorDiv(r.least, unit), floorDiv(r.most, unit)}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// parseScore reads a score.
func parseScore(text []byte) (float64, bool) {
	if n := len(text); n > 0 && n <= 15 { // the common case, without an allocation
		v := int64(0)
		for i, c := range text {
			if c -= '0'; c > 9 {
				break
			}
			v = v*10 + int64(c)
			if i == n-1 {
				return float64(v), true
			}
		}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil && !math.IsNaN(v)
}

// parseRange reads the ends of a range as Redis has them: 5, (5, -inf, +inf.
func parseRange(from, to []byte) (scores, error) {
	least, open, ok := parseEnd(from)
	most, openTo, okTo := parseEnd(to)
	if !ok || !okTo {
		return scores{}, rollcall.Invalid("min or max", "is not a number: %q, %q", clip(from), clip(to))
	}
	r := scores{whole(math.Ceil(least)), whole(math.Floor(most))}
	if open && least == math.Ceil(least) {
		r.least++
	}
	if openTo && most == math.Floor(most) {
		r.most--
	}
	return r, nil
}

func parseEnd(text []byte) (v float64, open, ok bool) {
	if len(text) > 0 && text[0] == '(' {
		text, open = text[1:], true
	}
	v, ok = parseScore(text)
	return v, open, ok
}

func whole(v float64) int64 {
	return int64(max(-maxScore, min(maxScore, v)))
}

// checkNow refuses a score that is not about now. It answers itself, and is false then.
func (c *conn) checkNow(b *binding, text []byte) error {
	v, ok := parseScore(text)
	if !ok {
		return rollcall.Invalid("score", "is not a number: %q", clip(text))
	}
	skew := v - float64(c.now.UnixMilli())/1000*float64(b.unit)
	if math.Abs(skew) <= float64(maxSkew*b.unit) {
		return nil
	}
	unit, hint, factor := "seconds", "; yours are milliseconds: then bind it with the option ms", 1000.0
	if b.unit == 1000 {
		unit, hint, factor = "milliseconds", "; yours are seconds: then bind it without the option ms", 1
	}
	if day := 24 * time.Hour.Seconds(); math.Abs(v/factor-float64(c.now.Unix())) > day {
		hint = "" // it is no time of today in the other unit either
	}
	return rollcall.Invalid("score", "%s is more than %d s from the server's clock, and a client's clock decides nothing. Scores of %s are %s%s", clip(text), maxSkew, b.text, unit, hint)
}

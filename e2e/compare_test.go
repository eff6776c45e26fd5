package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// order says what is promised of the order of the items in an answer.
type order int

const (
	exact    order = iota // it is one and the same
	bySecond              // by last_seen, within a second it is the engine's own
	anyOrder              // it is the engine's own
)

// apart is how far two clocks' accounts of one step may be apart.
const apart = 2 * time.Second

var (
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	beatKeys = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// machine are the figures of an engine that say nothing of its answers.
	machine = []string{"engine", "partitions", "users", "outages", "memory_bytes", "memory", "disk_bytes"}
)

// differ says in what two answers to a request differ, "" if in nothing.
func differ(a ask, sides [2]*serverSide, answers [2]answer) string {
	x, y := answers[0], answers[1]
	if x.status != y.status {
		return fmt.Sprintf("status %d and %d", x.status, y.status)
	}
	for _, name := range []string{
		"Content-Type", "Cache-Control", "WWW-Authenticate", "Retry-After", "Allow",
		"Rollcall-User", "Rollcall-Session", "Rollcall-Kind",
	} {
		if h, g := header(sides[0], x, name), header(sides[1], y, name); h != g {
			return fmt.Sprintf("header %s: %q and %q", name, h, g)
		}
	}
	if x.text != y.text {
		return fmt.Sprintf("%q and %q", x.text, y.text)
	}
	left, right := sides[0].shared(x.body), sides[1].shared(y.body)
	if strings.HasPrefix(a.path, "/v1/stats") {
		left, right = without(left, machine), without(right, machine)
	}
	if a.order != exact && x.status == http.StatusOK {
		left, right = a.arranged(left), a.arranged(right)
	}
	return different("", left, right)
}

func header(s *serverSide, a answer, name string) string {
	value := a.header.Get(name)
	if label := s.labels[value]; label != "" {
		return label
	}
	return value
}

// shared replaces what a side calls things by names that both share, and times
// that follow from others by how they do.
func (s *serverSide) shared(body any) any {
	switch v := body.(type) {
	case string:
		return s.sharedText(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.shared(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[name] = s.shared(item)
		}
		if v["cause"] == "erased" { // which leaves no deadline but the end
			since(out, v, "expires_at", "ended_at")
		} else {
			since(out, v, "expires_at", "seen_at")
		}
		if _, dated := v["created_at"].(string); dated && v["name"] == "admin_key" {
			out["created_at"] = "when the server was started, one after the other"
		}
		since(out, v, "ends_at", "login_at")
		since(out, v, "until", "at")
		if text, ok := v["beat_key"].(string); ok {
			out["beat_key"] = beatKeys.MatchString(text)
		}
		if ended, ok := out["sessions"].([]any); ok { // the sessions that a kick ended come in any order
			slices.SortFunc(ended, func(x, y any) int { return cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		}
		if _, ok := v["next"].(string); ok {
			out["next"] = "<cursor>"
		}
		return out
	default:
		return body
	}
}

func (s *serverSide) sharedText(text string) string {
	if label := s.labels[text]; label != "" {
		return label
	}
	for i, k := range s.keys {
		text = strings.ReplaceAll(text, k.id, fmt.Sprintf("<key id %d>", i))
	}
	if whole := instants.FindString(text); whole != text { // in a sentence
		text = instants.ReplaceAllString(text, "<instant>")
	}
	return text
}

// since gives an instant as the time that it lies after another.
func since(out, in map[string]any, field, base string) {
	late, _ := in[field].(string)
	early, _ := in[base].(string)
	b, err := time.Parse(time.RFC3339, late)
	a, err2 := time.Parse(time.RFC3339, early)
	if err == nil && err2 == nil {
		out[field] = fmt.Sprint(base, " + ", b.Sub(a))
	}
}

func without(body any, fields []string) any {
	object, ok := body.(map[string]any)
	if !ok {
		return body
	}
	object = maps.Clone(object)
	for _, name := range fields {
		delete(object, name)
	}
	return object
}

// arranged puts the items of a list into an order that both sides share. Of a
// part of a list only so much is left as every engine has in that part.
func (a ask) arranged(body any) any {
	object, _ := body.(map[string]any)
	items, ok := object["items"].([]any)
	if !ok {
		return body
	}
	total, _ := object["total"].(json.Number)
	out := maps.Clone(object)
	whole := total.String() == fmt.Sprint(len(items))
	arranged := make([]any, len(items))
	for i, item := range items {
		switch {
		case a.order == bySecond && !whole:
			arranged[i] = item.(map[string]any)["last_seen"]
		case a.order == anyOrder && !whole:
			arranged[i] = nil
		default:
			arranged[i] = item
		}
	}
	if a.order == bySecond {
		out["falling"] = slices.IsSortedFunc(items, func(x, y any) int { return cmp.Compare(lastSeen(y), lastSeen(x)) })
	}
	if whole {
		slices.SortFunc(arranged, func(x, y any) int {
			return cmp.Or(cmp.Compare(lastSeen(y), lastSeen(x)), cmp.Compare(fmt.Sprint(x), fmt.Sprint(y)))
		})
	}
	out["items"] = arranged
	return out
}

func lastSeen(item any) string {
	object, _ := item.(map[string]any)
	text, _ := object["last_seen"].(string)
	return text
}

// different names the first place in which two values differ.
func different(at string, x, y any) string {
	switch v := x.(type) {
	case map[string]any:
		w, ok := y.(map[string]any)
		if !ok {
			break
		}
		names := slices.Sorted(maps.Keys(v))
		for name := range w {
			if _, both := v[name]; !both {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if d := different(at+"."+name, v[name], w[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		w, ok := y.([]any)
		if !ok {
			break
		}
		if len(v) != len(w) {
			return fmt.Sprintf("%s: %d and %d items", at, len(v), len(w))
		}
		for i := range v {
			if d := different(fmt.Sprintf("%s[%d]", at, i), v[i], w[i]); d != "" {
				return d
			}
		}
		return ""
	case string:
		w, ok := y.(string)
		if !ok || v == w {
			break
		}
		one, err := time.Parse(time.RFC3339, v)
		other, err2 := time.Parse(time.RFC3339, w)
		// Presence is to the second, and no step is taken where one ends.
		if err == nil && err2 == nil && !strings.HasSuffix(at, ".last_seen") && one.Sub(other).Abs() <= apart {
			return ""
		}
	}
	if x == y {
		return ""
	}
	return fmt.Sprintf("%s: %v and %v", at, x, y)
}

package httpapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLLMsTextHasEveryRouteOfTheDocument compares the lines about routes with the
// OpenAPI document.
func TestLLMsTextHasEveryRouteOfTheDocument(t *testing.T) {
	s := newSite(t)
	w := s.call("", "GET", "/llms.txt", "")
	require.Equal(t, 200, w.Code)
	require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	text := w.Body.String()

	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "- `") && strings.Contains(line, " /") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	var want []string
	for _, o := range operationsOf(t, s) {
		needs := o.Role
		switch {
		case o.Role == "user" && o.KeyRole != "":
			needs = "session token, or " + o.KeyRole
		case o.Role == "user":
			needs = "session token"
		case o.Role == "console":
			needs = "pages of the console"
		case o.AdminWhen != "":
			needs += "; admin if " + o.AdminWhen
		}
		want = append(want, fmt.Sprintf("- `%s %s` (%s): %s", o.Method, o.Path, needs, o.Summary))
	}
	rules := regexp.MustCompile("(?m)^- `POST /v1/kicks` with .*$").FindString(text)
	require.NotEmpty(t, rules)
	require.ElementsMatch(t, append(want, rules), lines)

	require.Regexp(t, `(?s)\A# Rollcall\n\n> .*\n## Sessions\n.*\n## Operation\n`, text)
	require.NotContains(t, text, "{{")
	require.Contains(t, text, "`session_limit`")
	require.Less(t, len(text), 16<<10, "it is read whole")
}

func TestLinksOfTheLLMsTextOnTheServerAreServed(t *testing.T) {
	s := newSite(t)
	links := regexp.MustCompile(`\]\((/[^)]*)\)`).FindAllStringSubmatch(s.ok(200, "", "GET", "/llms.txt", ""), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		s.ok(200, "", "GET", link[1], "")
	}
}

package httpapi

import (
	_ "embed"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// llmsHead is what llms.txt says before the routes: what Rollcall is, and the rules
// that hold for all routes.
//
//go:embed docs/llms.txt
var llmsHead string

// registerLLMs serves a short description of the API for language models, in the form
// of https://llmstxt.org.
func (s *Server) registerLLMs() {
	s.registerDocument(op("GET /llms.txt", "llms", "Operation", "The API in short, for language models"), textType, huma.TypeString, s.writeLLMs)
}

// writeLLMs writes llms.txt. Its lines about routes are those of the OpenAPI
// document, so that none is missing or older than its route.
func (s *Server) writeLLMs() ([]byte, error) {
	doc := s.api.OpenAPI()
	named := map[string]*huma.Operation{}
	for _, op := range operations(doc) {
		named[op.Method+" "+op.Path] = op
	}
	codes := make([]string, len(problemCodes))
	for i, code := range problemCodes {
		codes[i] = "`" + string(code) + "`"
	}

	var out strings.Builder
	out.WriteString(strings.ReplaceAll(llmsHead, "{{codes}}", strings.Join(codes, ", ")))
	for _, tag := range doc.Tags {
		out.WriteString("\n## " + tag.Name + "\n\n" + tag.Description + "\n\n")
		for _, route := range Routes() {
			if op := named[route.Pattern()]; op != nil && op.Tags[0] == tag.Name {
				out.WriteString("- `" + route.Pattern() + "` (" + credentials(&route) + "): " + op.Summary + "\n")
			}
		}
	}
	return []byte(out.String()), nil
}

// credentials names what opens a route.
func credentials(route *Route) string {
	switch {
	case route.Needs == AccessUser && route.Keys != "":
		return "session token, or " + string(route.Keys)
	case route.Needs == AccessUser:
		return "session token"
	case route.Needs == AccessConsole:
		return "pages of the console"
	case route.AdminWhen != "":
		return string(route.Needs) + "; admin if " + route.AdminWhen
	}
	return string(route.Needs)
}

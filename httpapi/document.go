package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// document completes the description that huma made of the routes. What it adds is
// for readers only: requests are checked by the gate and the domain, which say better
// what is wrong.
func (s *Server) document() {
	doc := s.api.OpenAPI()
	doc.Components.Responses = map[string]*huma.Response{}
	for _, op := range operations(doc) {
		route := &s.gateOf(op.Method + " " + op.Path).Route
		op.Description = describeAccess(op.Description, route)
		s.nameErrors(op, route)
		for _, p := range op.Parameters {
			limitSchema(p.Name, p.Schema, true)
		}
	}
	d := documenter{schemas: doc.Components.Schemas.Map()}
	asked, answered := d.reached(operations(doc))
	for name, schema := range d.schemas {
		if answered[name] && !asked[name] {
			open(schema)
		}
		limitProperties(schema, asked[name])
	}
	for _, op := range operations(doc) {
		d.addExamples(op)
	}
}

// writeSpec writes the document down as OpenAPI 3.1. That takes longer than all else
// that [New] does, and most servers are never asked for it.
func (s *Server) writeSpec() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) }

// writeSpec30 writes it down as OpenAPI 3.0, for generators that do not know 3.1.
func (s *Server) writeSpec30() ([]byte, error) { return s.api.OpenAPI().Downgrade() }

// describeAccess puts into words who may call a route.
func describeAccess(about string, route *Route) string {
	var access string
	switch route.Needs {
	case AccessPublic:
		access = "Needs no credential."
	case AccessUser:
		access = "Needs the token of a session."
		if route.Keys != "" {
			access = "Needs the token of a session, or an API key of the role " + string(route.Keys) + " or a higher one."
		}
	case AccessConsole:
		access = "Is for pages of the console, of the server's own origin."
	default:
		access = "Needs an API key, or a session of the console, of the role " + string(route.Needs) + " or a higher one"
		if route.AdminWhen != "" {
			access += ", and of the role admin if " + route.AdminWhen
		}
		access += "."
	}
	if route.Batch {
		access += " Takes bodies of up to 8 MiB."
	}
	return strings.TrimSpace(about + " " + access)
}

// What some routes answer besides what all of their kind do.
var (
	mayFindNothing = []string{
		"get-session", "update-session", "end-session", "rotate-session", "kick", "end-my-session", "get-ban", "lift-ban",
		"remove-friend", "revoke-key", "list-archive-runs", "start-archive-run", "delete-kind", "delete-visit-name",
		"get-webhook", "update-webhook", "delete-webhook", "test-webhook", "rotate-webhook", "replay-webhook", "list-deliveries", "online-badge",
	}
	mayContradict  = []string{"login", "backup", "create-key", "start-archive-run", "delete-kind", "create-webhook", "update-webhook", "rotate-webhook", "replay-webhook"}
	askNoEngine    = []string{"healthz", "openapi", "openapi-3-0", "docs", "llms"}
	errorResponses = map[int]string{
		http.StatusBadRequest:            "BadRequest",
		http.StatusUnauthorized:          "Unauthorized",
		http.StatusForbidden:             "Forbidden",
		http.StatusNotFound:              "NotFound",
		http.StatusConflict:              "Conflict",
		http.StatusRequestEntityTooLarge: "TooLarge",
		http.StatusUnsupportedMediaType:  "UnsupportedMediaType",
		http.StatusTooManyRequests:       "TooManyRequests",
		http.StatusServiceUnavailable:    "Unavailable",
	}
	errorsInWords = map[int]string{
		http.StatusBadRequest:            "A rule is broken: `field` names the part of the request (`invalid_argument`)",
		http.StatusUnauthorized:          "No credential, or one that is not known (`unauthenticated`), or the session has ended (`session_ended`, with `cause`)",
		http.StatusForbidden:             "The caller may not do this (`forbidden`), or the user is banned (`user_banned`)",
		http.StatusNotFound:              "There is no such thing (`not_found`)",
		http.StatusConflict:              "The request contradicts what is stored (`conflict`), or no more sessions are allowed (`session_limit`)",
		http.StatusRequestEntityTooLarge: "The body is too large (`too_large`)",
		http.StatusUnsupportedMediaType:  "The body has another type than the route takes, or is packed (`invalid_argument`)",
		http.StatusTooManyRequests:       "Too many requests (`rate_limited`)",
		http.StatusServiceUnavailable:    "The engine cannot answer now (`unavailable`), or there is no room to write (`storage_full`)",
	}
)

// errorsOf lists the statuses of the errors that a route may answer with, but for
// faults of the server itself.
func (s *Server) errorsOf(op *huma.Operation, route *Route) []int {
	out := []int{http.StatusBadRequest}
	if route.Needs != AccessPublic {
		out = append(out, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests)
	} else if s.opts.Auth == AuthOff {
		out = append(out, http.StatusForbidden) // the request is not from this machine
	}
	if slices.Contains(mayFindNothing, op.OperationID) {
		out = append(out, http.StatusNotFound)
	}
	if slices.Contains(mayContradict, op.OperationID) {
		out = append(out, http.StatusConflict)
	}
	if op.RequestBody != nil {
		out = append(out, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if !slices.Contains(askNoEngine, op.OperationID) {
		out = append(out, http.StatusServiceUnavailable)
	}
	return out
}

// nameErrors adds the errors that a route may answer with to its description, and
// "default" for the rest.
func (s *Server) nameErrors(op *huma.Operation, route *Route) {
	for _, status := range s.errorsOf(op, route) {
		op.Responses[strconv.Itoa(status)] = s.errorResponse(errorResponses[status], status, route)
	}
	op.Responses["default"] = s.errorResponse("Fault", 0, route)
}

// errorResponse describes an error, by reference if it has no headers of its own.
func (s *Server) errorResponse(name string, status int, route *Route) *huma.Response {
	about := errorsInWords[status]
	if about == "" {
		status, about = http.StatusInternalServerError, "A fault of the server (`internal`), or another error"
	}
	r := &huma.Response{
		Description: about,
		Headers:     errorHeaders(status),
		Content:     map[string]*huma.MediaType{problemType: {Schema: s.schema(problem{}), Example: problemExample(status)}},
	}
	if route.Verifies {
		maps.Copy(r.Headers, verifyHeaders(status))
		return r
	}
	s.api.OpenAPI().Components.Responses[name] = r
	return &huma.Response{Ref: "#/components/responses/" + name}
}

// header describes a header of an answer.
func header(kind, about string) *huma.Header {
	return &huma.Header{Description: about, Schema: &huma.Schema{Type: kind}}
}

func errorHeaders(status int) map[string]*huma.Header {
	out := map[string]*huma.Header{"X-Request-Id": header(huma.TypeString, "names the request in the server's log")}
	switch status {
	case http.StatusUnauthorized:
		out["WWW-Authenticate"] = header(huma.TypeString, "how to authenticate")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		out["Retry-After"] = header(huma.TypeInteger, "seconds to wait before the next try")
	}
	return out
}

// verifyHeaders describes what tellProxy adds.
func verifyHeaders(status int) map[string]*huma.Header {
	out := map[string]*huma.Header{"Rollcall-Code": header(huma.TypeString, "the code of the error")}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		out["Rollcall-Cause"] = header(huma.TypeString, "how the session ended; percent-encoded, and absent if it did not end")
		out["Rollcall-Reason"] = header(huma.TypeString, "the reason given for the end; percent-encoded, and absent if none was given")
	}
	return out
}

// problemExample is an error of a status.
func problemExample(status int) *problem {
	for _, code := range problemCodes {
		if of, title := statusOf(code); of == status {
			return &problem{Type: "urn:rollcall:error:" + string(code), Title: title, Status: status, Detail: title, Code: code}
		}
	}
	return nil
}

// documenter knows the schemas of a document by name.
type documenter struct{ schemas map[string]*huma.Schema }

const schemaPrefix = "#/components/schemas/"

// reached names the schemas that requests and that answers hold.
func (d documenter) reached(ops []*huma.Operation) (asked, answered map[string]bool) {
	asked, answered = map[string]bool{}, map[string]bool{}
	for _, op := range ops {
		if op.RequestBody != nil {
			for _, content := range op.RequestBody.Content {
				d.walk(content.Schema, asked)
			}
		}
		for _, r := range op.Responses {
			for _, content := range r.Content {
				d.walk(content.Schema, answered)
			}
		}
	}
	d.walk(&huma.Schema{Ref: schemaPrefix + "Problem"}, answered)
	return asked, answered
}

// walk notes the schemas that a schema refers to, itself or further on.
func (d documenter) walk(schema *huma.Schema, seen map[string]bool) {
	if schema == nil {
		return
	}
	if name, ok := strings.CutPrefix(schema.Ref, schemaPrefix); ok && !seen[name] {
		seen[name] = true
		d.walk(d.schemas[name], seen)
	}
	d.walk(schema.Items, seen)
	for _, property := range schema.Properties {
		d.walk(property, seen)
	}
	for _, one := range schema.OneOf {
		d.walk(one, seen)
	}
}

// open lets an answer gain fields: clients made from an older document must go on
// reading it.
func open(schema *huma.Schema) {
	if closed, ok := schema.AdditionalProperties.(bool); ok && !closed {
		schema.AdditionalProperties = nil
	}
	for _, property := range schema.Properties {
		open(property)
	}
}

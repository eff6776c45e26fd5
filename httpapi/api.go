package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/rollcall/rollcall"
)

// The names of the security schemes in the OpenAPI document.
const (
	schemeKey     = "api_key"
	schemeSession = "session"
	schemeCookie  = "cookie"
	schemeTicket  = "ticket"
	schemeConsole = "console"
)

func (s *Server) newAPI() huma.API {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[problem]())
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: json.Unmarshal} // the gate has checked the text
	api := humago.New(gated{s}, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title:   "Rollcall",
				Version: s.opts.Version,
				Description: "Who is online, since when, on which devices; who came on which days; and showing people out.\n\n" +
					"Instants are RFC 3339 in UTC with milliseconds, durations Go text (5m) or whole seconds, days YYYY-MM-DD. " +
					"Unknown fields and query parameters are refused. Lengths of text are limited in bytes of UTF-8. " +
					"Errors are application/problem+json with a stable code. Answers may gain fields.",
				Contact: &huma.Contact{Name: "Rollcall", URL: "https://github.com/rollcall/rollcall"},
				License: &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
			},
			Servers:    []*huma.Server{{URL: "/", Description: "the server that the document comes from"}},
			Tags:       sections(),
			Components: &huma.Components{Schemas: registry, SecuritySchemes: s.securitySchemes()},
		},
		Formats:       map[string]huma.Format{jsonType: format, "json": format},
		DefaultFormat: jsonType,
		Transformers:  []huma.Transformer{translate},
	})
	api.UseMiddleware(func(ctx huma.Context, next func(huma.Context)) { next(&answer{humaContext: ctx}) })
	return api
}

func (s *Server) securitySchemes() map[string]*huma.SecurityScheme {
	schemes := map[string]*huma.SecurityScheme{
		schemeKey:     {Type: "http", Scheme: "bearer", BearerFormat: "rck_…", Description: "An API key of the role the operation names, or of a higher one."},
		schemeSession: {Type: "http", Scheme: "bearer", BearerFormat: "rct_…", Description: "The token of a session."},
	}
	schemes[schemeTicket] = &huma.SecurityScheme{Type: "apiKey", In: "query", Name: ticketParam, Description: "A ticket from POST /v1/events/tickets: works once, within 30 s."}
	schemes[schemeConsole] = &huma.SecurityScheme{Type: "apiKey", In: "cookie", Name: consoleCookie, Description: "The session of a page of the console, from pages of the same origin. Over plain HTTP on this machine it has another name."}
	if s.opts.VerifyCookie != "" {
		schemes[schemeCookie] = &huma.SecurityScheme{Type: "apiKey", In: "cookie", Name: s.opts.VerifyCookie, Description: "The token of a session, from pages of the same origin."}
	}
	return schemes
}

// describe puts what the table says of a route into its description.
func (s *Server) describe(op *huma.Operation) *Route {
	route := &s.gateOf(op.Method + " " + op.Path).Route
	op.Extensions = map[string]any{"x-rollcall-role": string(route.Needs)}
	if route.AdminWhen != "" {
		op.Extensions["x-rollcall-admin-when"] = route.AdminWhen
	}
	switch route.Needs {
	case AccessPublic:
		op.Security = []map[string][]string{}
	case AccessConsole:
		op.Security = []map[string][]string{{schemeConsole: {}}}
		if op.Method == http.MethodPost {
			op.Security = append(op.Security, map[string][]string{}) // nobody is signed in yet
		}
	case AccessUser:
		op.Security = []map[string][]string{{schemeSession: {}}}
		if s.opts.VerifyCookie != "" {
			op.Security = append(op.Security, map[string][]string{schemeCookie: {}})
		}
		if route.Keys != "" {
			op.Extensions["x-rollcall-key-role"] = string(route.Keys)
			op.Security = append(op.Security, map[string][]string{schemeKey: {}})
		}
	default:
		op.Security = []map[string][]string{{schemeKey: {}}, {schemeConsole: {}}}
		if route.Tickets {
			op.Security = append(op.Security, map[string][]string{schemeTicket: {}})
		}
	}
	op.MaxBodyBytes = route.maxBody() + 1 // huma refuses bodies that reach the limit
	op.BodyReadTimeout = -1               // the body has been read by then
	return route
}

// op begins the description of a route: "GET /v1/stats", its id and summary.
func op(pattern, id, tag, summary string) huma.Operation {
	method, path, _ := strings.Cut(pattern, " ")
	return huma.Operation{Method: method, Path: path, OperationID: id, Tags: []string{tag}, Summary: summary}
}

// body is what a typed handler answers with.
type body[T any] struct{ Body T }

// register adds a route whose input is I and whose answer is a T.
func register[I, T any](s *Server, op huma.Operation, handle func(context.Context, *I) (T, error)) {
	s.describe(&op)
	takesBody[I](s, &op)
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*body[T], error) {
		v, err := handle(ctx, in)
		if err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return &body[T]{v}, nil
	})
}

// takesBody tells a route's gate the shape of the body that an input holds.
func takesBody[I any](s *Server, op *huma.Operation) {
	if f, ok := reflect.TypeFor[I]().FieldByName("Body"); ok {
		s.gateOf(op.Method + " " + op.Path).body = shapeOf(f.Type)
	}
}

// registerQuiet adds a route that answers 204, without a body.
func registerQuiet[I any](s *Server, op huma.Operation, handle func(context.Context, *I) error) {
	s.describe(&op)
	takesBody[I](s, &op)
	op.DefaultStatus = http.StatusNoContent
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*struct{}, error) {
		if err := handle(ctx, in); err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return nil, nil
	})
}

// registerPlain adds a route with a handler of its own; op describes it in full.
func (s *Server) registerPlain(op huma.Operation, handle http.HandlerFunc) {
	s.describe(&op)
	s.api.OpenAPI().AddOperation(&op)
	gated{s}.HandleFunc(op.Method+" "+op.Path, handle)
}

// schema returns the schema of a value's type, by reference.
func (s *Server) schema(v any) *huma.Schema {
	return s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
}

// jsonBody describes a JSON body of v's type, and has the route's gate check it.
func (s *Server) jsonBody(op *huma.Operation, v any) *huma.RequestBody {
	s.gateOf(op.Method + " " + op.Path).body = shapeOf(reflect.TypeOf(v))
	return &huma.RequestBody{Content: s.jsonContent(v)}
}

// jsonContent describes JSON of v's type.
func (s *Server) jsonContent(v any) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{jsonType: {Schema: s.schema(v)}}
}

// operations lists all operations of a document.
func operations(doc *huma.OpenAPI) []*huma.Operation {
	var out []*huma.Operation
	for _, item := range doc.Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if o != nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// humaContext lets answer embed the interface beside its method Context.
type humaContext = huma.Context

// answer corrects the status of an error once translate has said what it is.
type answer struct {
	humaContext
	status int
}

func (a *answer) SetStatus(status int) {
	if a.status != 0 {
		status = a.status
	}
	a.humaContext.SetStatus(status)
}

// translate gives the errors that huma itself finds in a request the form of
// all others.
func translate(ctx huma.Context, _ string, v any) (any, error) {
	model, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := newProblem(requestError(model, ctx.Operation()))
	if a, ok := ctx.(*answer); ok {
		a.status = p.Status
	}
	return p, nil
}

func requestError(m *huma.ErrorModel, op *huma.Operation) *rollcall.Error {
	e := &rollcall.Error{Code: rollcall.CodeInvalidArgument, Field: "body", Detail: m.Detail}
	switch {
	case m.Status == http.StatusRequestEntityTooLarge:
		errors.As(tooLarge(op.MaxBodyBytes-1), &e)
	case len(m.Errors) > 0:
		first := m.Errors[0] // its Value is not shown: it may be a secret
		e.Field, e.Detail = fieldOf(first), first.Message
	}
	return e
}

// fieldOf returns the name of the field at fault as the client wrote it:
// "body.marks[3].user" is marks[3].user.
func fieldOf(d *huma.ErrorDetail) string {
	field := d.Location
	for _, place := range []string{"body.", "query.", "path.", "header."} {
		if rest, ok := strings.CutPrefix(field, place); ok {
			field = rest
			break
		}
	}
	var missing string
	if n, _ := fmt.Sscanf(d.Message, validation.MsgExpectedRequiredProperty, &missing); n == 1 {
		if field == "body" {
			return missing
		}
		return field + "." + missing
	}
	return clip(field)
}

// sections are the parts of the document, in the order to read them.
func sections() []*huma.Tag {
	var tags []*huma.Tag
	for _, tag := range [][2]string{
		{"Sessions", "Who is logged in where: log in, list, change, and show out."},
		{"Presence", "Who is online, with or without a session."},
		{"Users", "What is known of a user, and bans."},
		{"Friends", "Friends, and which of them are online."},
		{"Attendance", "Who was there on which days, and figures made from that."},
		{"Visits", "Estimates of how many different visitors there were."},
		{"Events", "What happens, as it happens."},
		{"Webhooks", "Addresses that events are posted to."},
		{"End user", "What end users ask for themselves, by the token of their session."},
		{"Console", "The pages below /console/, and signing in to them."},
		{"Administration", "API keys, the archive and figures of the server."},
		{"Operation", "Health, measures, and this document."},
	} {
		tags = append(tags, &huma.Tag{Name: tag[0], Description: tag[1]})
	}
	return tags
}

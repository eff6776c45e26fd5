package httpapi

import (
	"context"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

type listSessionsInput struct {
	Filter
	Paging
	Sort string `query:"sort" default:"-login_at" enum:"-login_at,login_at,-seen_at"`
}

type querySessionsInput struct {
	Body listBody
}

func (s *Server) registerSessionList() {
	list := op("GET /v1/sessions", "list-sessions", "Sessions", "The live sessions that meet all conditions, and their exact total")
	list.Parameters = []*huma.Param{{
		Name: attrParam, In: "query", Schema: &huma.Schema{Type: huma.TypeString},
		Description: "attr.<key>=<value>: the session has this attribute; any number of them",
	}}
	register(s, list, s.listSessions)
	register(s, op("POST /v1/sessions/query", "query-sessions", "Sessions", "The same list, with up to 1,000 users in the body"), s.querySessions)
}

func (s *Server) listSessions(ctx context.Context, in *listSessionsInput) (page[session], error) {
	f, err := in.Filter.domain("")
	if err != nil {
		return page[session]{}, err
	}
	f.Attrs = attrsOf(callerOf(ctx).query)
	return s.sessionPage(ctx, rollcall.SessionQuery{Filter: f, Sort: rollcall.SessionSort(in.Sort), Page: in.request()})
}

func (s *Server) querySessions(ctx context.Context, in *querySessionsInput) (page[session], error) {
	b := in.Body
	if b.err != nil {
		return page[session]{}, b.err
	}
	f, err := b.domain("")
	if err != nil {
		return page[session]{}, err
	}
	if f.Users != nil && len(f.Users) == 0 { // nobody met the application's conditions
		return page[session]{Items: []session{}}, nil
	}
	limit := rollcall.DefaultLimit
	if b.Limit != nil {
		limit = *b.Limit
	}
	return s.sessionPage(ctx, rollcall.SessionQuery{
		Filter: f, Sort: rollcall.SessionSort(b.Sort),
		Page: Paging{Limit: limit, Page: b.Page, Cursor: b.Cursor}.request(),
	})
}

func (s *Server) sessionPage(ctx context.Context, q rollcall.SessionQuery) (page[session], error) {
	found, err := s.view(ctx).Sessions(ctx, q)
	return pageOf(found, sessionOf), err
}

// attrSchema is the schema of v's type with fields attr.<key> besides.
func attrSchema(r huma.Registry, v any) *huma.Schema {
	schema := *huma.SchemaFromType(r, reflect.TypeOf(v))
	schema.AdditionalProperties = &huma.Schema{Type: huma.TypeString, Description: "attr.<key>: the session has this attribute"}
	return &schema
}

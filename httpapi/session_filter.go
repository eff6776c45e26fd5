package httpapi

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

// Filter keeps the sessions that meet all its conditions.
type Filter struct {
	User        string  `json:"user,omitempty" query:"user" given:"filled"`
	Kind        string  `json:"kind,omitempty" query:"kind" given:"filled"`
	App         string  `json:"app,omitempty" query:"app" given:"filled"`
	Device      string  `json:"device,omitempty" query:"device" given:"filled"`
	IP          string  `json:"ip,omitempty" query:"ip" given:"filled" doc:"an address or a CIDR range" example:"10.0.0.0/8"`
	Name        string  `json:"name,omitempty" query:"name" given:"filled" doc:"a prefix of the name, case-folded"`
	LoginAfter  instant `json:"login_after,omitempty" query:"login_after" doc:"login_at at or after"`
	LoginBefore instant `json:"login_before,omitempty" query:"login_before" doc:"login_at before"`
	SeenWithin  span    `json:"seen_within,omitempty" query:"seen_within" doc:"seen_at at most so long ago"`
}

// domain reads the conditions; path stands before the names of fields in
// errors.
func (f *Filter) domain(path string) (rollcall.SessionFilter, error) {
	out := rollcall.SessionFilter{Kind: f.Kind, App: f.App, Device: f.Device, Name: f.Name}
	if f.User != "" {
		out.Users = []string{f.User}
	}
	var err error
	if out.IP, err = parsePrefix(path+"ip", f.IP); err != nil {
		return out, err
	}
	if out.LoginAfter, err = f.LoginAfter.parse(path + "login_after"); err != nil {
		return out, err
	}
	if out.LoginBefore, err = f.LoginBefore.parse(path + "login_before"); err != nil {
		return out, err
	}
	out.SeenWithin, err = f.SeenWithin.parse(path + "seen_within")
	return out, err
}

// attrsOf collects the parameters attr.<key>.
func attrsOf(query url.Values) map[string]string {
	var attrs map[string]string
	for name := range query {
		if key, ok := strings.CutPrefix(name, attrPrefix); ok {
			if attrs == nil {
				attrs = make(map[string]string)
			}
			attrs[key] = query.Get(name)
		}
	}
	return attrs
}

// Conditions are a filter in a body, which may also name many users.
type Conditions struct {
	Filter
	Users []string          `json:"users,omitempty" nullable:"false" maxItems:"1000" doc:"any of these users"`
	Attrs map[string]string `json:"attrs,omitempty" given:"filled" doc:"all of these attributes; attr.<key> says the same"`
}

func (c *Conditions) domain(path string) (rollcall.SessionFilter, error) {
	out, err := c.Filter.domain(path)
	if err != nil {
		return out, err
	}
	out.Attrs = c.Attrs
	if c.Users == nil {
		return out, nil
	}
	if out.Users != nil {
		return out, rollcall.Invalid(path+"users", "cannot be combined with user")
	}
	out.Users = c.Users
	return out, nil
}

// filterBody is the filter of a kick. It keeps what is wrong with it for the
// handler to report, which knows how to name the field.
type filterBody struct {
	Conditions
	err error
}

// Schema describes the conditions, and that attr.<key> is among them.
func (filterBody) Schema(r huma.Registry) *huma.Schema { return attrSchema(r, Conditions{}) }

func (filterBody) jsonShape() *shape { return attrShape(Conditions{}) }

// UnmarshalJSON implements json.Unmarshaler.
func (f *filterBody) UnmarshalJSON(data []byte) error {
	f.err = decodeAttrs(data, &f.Conditions, &f.Attrs)
	return nil
}

// listBody is a list's whole query in a body.
type listBody struct {
	ListFields
	err error
}

// ListFields are the whole query of a list of sessions.
type ListFields struct {
	Conditions
	Sort   string `json:"sort,omitempty" given:"filled" enum:"-login_at,login_at,-seen_at"`
	Limit  *int   `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"items on a page, 20 unless said; 0 for the total only"`
	Page   int    `json:"page,omitempty" minimum:"1"`
	Cursor string `json:"cursor,omitempty" given:"filled"`
}

// Schema describes the fields, and that attr.<key> is among them.
func (listBody) Schema(r huma.Registry) *huma.Schema { return attrSchema(r, ListFields{}) }

func (listBody) jsonShape() *shape { return attrShape(ListFields{}) }

// UnmarshalJSON implements json.Unmarshaler.
func (b *listBody) UnmarshalJSON(data []byte) error {
	b.err = decodeAttrs(data, &b.ListFields, &b.Attrs)
	return nil
}

// attrShape is the shape of v's type with fields attr.<key> besides.
func attrShape(v any) *shape {
	s := shapeOf(reflect.TypeOf(v))
	s.prefix, s.items = attrPrefix, &shape{word: "a string"}
	return s
}

// decodeAttrs reads an object into v, and its fields attr.<key> into attrs, a
// field of v.
func decodeAttrs(data []byte, v any, attrs *map[string]string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return decodeError(err)
	}
	more := make(map[string]string)
	for name, raw := range fields {
		key, ok := strings.CutPrefix(name, attrPrefix)
		if !ok {
			continue
		}
		var value string
		if err := json.Unmarshal(raw, &value); err != nil {
			return rollcall.Invalid(clip(name), "must be a string")
		}
		more[key] = value
		delete(fields, name)
	}
	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(rest, v); err != nil {
		return decodeError(err)
	}
	for key, value := range more {
		if _, twice := (*attrs)[key]; twice {
			return rollcall.Invalid(clip(attrPrefix+key), "is given twice: here and in attrs")
		}
		if *attrs == nil {
			*attrs = make(map[string]string, len(more))
		}
		(*attrs)[key] = value
	}
	return nil
}

package httpapi

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
)

// shape is what a JSON value of a request may look like, as far as the standard
// decoder does not see to it: which names an object has, how many entries a
// list, and whether the value may be empty. nil says nothing.
type shape struct {
	word   string            // what the value must be, for people
	fields map[string]*shape // of an object with fields; nil for all else
	prefix string            // names that begin with it are fields too; "" for none
	items  *shape            // of a list, of an object without fields, or behind prefix
	most   int               // entries of a list; 0 for no bound of its own
	filled bool              // must not be given empty
}

// shaper is a type that knows its shape.
type shaper interface{ jsonShape() *shape }

// shapeOf derives a shape from a type: names from its json tags, the bound of a
// list from maxItems. A field with the tag given:"filled" must not be empty if
// it is there: left empty, it would widen the request.
func shapeOf(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := reflect.Zero(t).Interface().(shaper); ok {
		return s.jsonShape()
	}
	switch t.Kind() {
	case reflect.Struct:
		s := &shape{word: "an object", fields: map[string]*shape{}}
		s.addFields(t)
		return s
	case reflect.Slice:
		return &shape{word: "an array", items: shapeOf(t.Elem())}
	case reflect.Map:
		return &shape{word: "an object", items: shapeOf(t.Elem())}
	case reflect.String:
		return &shape{word: "a string"}
	case reflect.Bool:
		return &shape{word: "a boolean"}
	default:
		return &shape{word: "a number"}
	}
}

func (s *shape) addFields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			s.addFields(f.Type)
			continue
		case !f.IsExported() || name == "-":
			continue
		case name == "":
			name = f.Name
		}
		field := *shapeOf(f.Type)
		field.most, _ = strconv.Atoi(f.Tag.Get("maxItems")) // 0 without one
		field.filled = field.filled || f.Tag.Get("given") == "filled"
		s.fields[name] = &field
	}
}

// field returns the shape of a field; false if there is no such field.
func (s *shape) field(name []byte) (*shape, bool) {
	switch {
	case s == nil:
		return nil, true
	case s.fields == nil:
		return s.items, true
	}
	if f, ok := s.fields[string(name)]; ok {
		return f, true
	}
	if s.prefix != "" && len(name) > len(s.prefix) && bytes.HasPrefix(name, []byte(s.prefix)) {
		return s.items, true
	}
	return nil, false
}

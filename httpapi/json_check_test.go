package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestJSONIsTakenAsWrittenOrRefused(t *testing.T) {
	s := shapeOf(reflect.TypeFor[kickRequest]())
	for _, text := range []string{
		`{"user":"a"}`, ` { "user" : "a" } `, `{"us\u0065r":"a"}`, `{"user":"\ud83d\ude00"}`, `{"filter":{"attr.x":"","app":"b"}}`,
		`{"ban":90}`, `{"ban":"1d"}`, `{"filter":{}}`, `{"reason":""}`,
	} {
		require.NoError(t, checkJSON([]byte(text), s), text)
	}
	for text, field := range map[string]string{
		`{"User":"a"}`:                              "User",
		`{"user":"a","USER":"b"}`:                   "USER",
		`{"user":"a","user":"a"}`:                   "user",
		`{"user":"a","us\u0065r":"b"}`:              "user",
		`{"colour":1}`:                              "colour",
		`{"user":"a\ud800"}`:                        "user",
		`{"user":"\ud800\u0041"}`:                   "user",
		`{"user":"\udc00"}`:                         "user",
		`{"user":null}`:                             "user",
		`{"filter":null}`:                           "filter",
		`{"filter":{"users":null}}`:                 "filter.users",
		`{"filter":{"users":[null]}}`:               "filter.users[0]",
		`{"filter":{"users":["\ud800"]}}`:           "filter.users[0]",
		`{"filter":{"App":"x"}}`:                    "filter.App",
		`{"filter":{"attr.":"x"}}`:                  "filter.attr.",
		`{"filter":{"Attr.x":"x"}}`:                 "filter.Attr.x",
		`{"filter":{"attrs":{"a":"1","a":"2"}}}`:    "filter.attrs.a",
		`{"filter":{"app":"x","app":"y"}}`:          "filter.app",
		`{"filter":{"login_after":""}}`:             "filter.login_after",
		`{"user":"a"`:                               "body",
		`{"user":"a"} x`:                            "body",
		`{"user":"a",}`:                             "body",
		`{user:"a"}`:                                "body",
		`{"user":"` + "\n" + `"}`:                   "body",
		`{"user":"\x"}`:                             "body",
		`{"ban":01}`:                                "body",
		`{"ban":1.}`:                                "body",
		`{"ban":-}`:                                 "body",
		`{"all":tru}`:                               "body",
		"\ufeff{}":                                  "body",
		"{\"user\":\"\xff\"}":                       "body",
		strings.Repeat("[", 17):                     "body",
		strings.Repeat(`{"filter":`, 100_000):       "filter.filter",
		`{"filter":{"users":["\ud83d\ude0"]}}`:      "filter.users[0]",
		`{"user":"a","` + strings.Repeat("x", 1000): "body",
	} {
		err := checkJSON([]byte(text), s)
		var e *rollcall.Error
		require.ErrorAs(t, err, &e, "%.60s", text)
		require.Equal(t, rollcall.CodeInvalidArgument, e.Code)
		require.Equal(t, field, e.Field, "%.60s: %v", text, err)
	}
}

// TestNothingIsReadBeyondALimit holds lists and names to their bounds before
// anything is decoded, at no cost that grows with the text.
func TestNothingIsReadBeyondALimit(t *testing.T) {
	touch := shapeOf(reflect.TypeFor[touchRequest]())
	many := []byte(`{"tokens":[` + strings.Repeat(`"",`, 2_000_000) + `""]}`)
	require.ErrorContains(t, checkJSON(many, touch), "tokens: holds more than 1000 entries")
	names := []byte(`{"attrs":{` + strings.Repeat(`"a":"",`, 1) + strings.Repeat(`"b":"",`, 1_000_000))
	require.ErrorContains(t, checkJSON(names, shapeOf(reflect.TypeFor[loginRequest]())), "given twice")
	var distinct strings.Builder
	distinct.WriteString(`{"attrs":{`)
	for i := range 100 {
		distinct.WriteString(`"` + strings.Repeat("k", i+1) + `":"",`)
	}
	require.ErrorContains(t, checkJSON([]byte(distinct.String()), shapeOf(reflect.TypeFor[loginRequest]())), "more than 64 names")
	good := []byte(`{"users":[` + strings.Repeat(`"user-1234567",`, 9_999) + `"u"]}`)
	shape := shapeOf(reflect.TypeFor[beatsRequest]())
	require.NoError(t, checkJSON(good, shape))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = checkJSON(good, shape) }))
}

// FuzzCheckJSON holds that what passes is JSON that encoding/json reads as it
// was written: no more names than it finds, and nothing repaired.
func FuzzCheckJSON(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"a":2}`, `{"a":{"b":[1,2.5e-3,true,false,null]}}`, `"\ud83d\ude00"`, `"\ud800"`, `[[[[]]]]`, `{"\u0061":1,"a":2}`, ` 0 `, `-0.0`, `1E700`, `{"":""}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		err := checkJSON(data, nil)
		if err == nil {
			require.True(t, json.Valid(data), "%q", data)
			// A number may be larger than any float: what it means is for the field it stands in.
			decoder := json.NewDecoder(bytes.NewReader(data))
			decoder.UseNumber()
			var v any
			require.NoError(t, decoder.Decode(&v))
			again, err := json.Marshal(v)
			require.NoError(t, err)
			require.NotContains(t, string(again), "null")
			if !strings.Contains(string(data), "\ufffd") && !strings.Contains(strings.ToLower(string(data)), `\ufffd`) {
				require.NotContains(t, string(again), "\ufffd", "%q was repaired", data)
			}
			return
		}
		if !json.Valid(data) || !utf8.Valid(data) {
			return
		}
		reasons := []string{"given twice", "surrogate", "nested", "null", "names"}
		for _, reason := range reasons {
			if strings.Contains(err.Error(), reason) {
				return
			}
		}
		t.Fatalf("%q is JSON, and was refused: %v", data, err)
	})
}

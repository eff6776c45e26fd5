package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/httpapi"
)

// document is the part of an OpenAPI document that these tests look at.
type document struct {
	OpenAPI    string `json:"openapi"`
	Servers    []struct{ URL string }
	Paths      map[string]map[string]operation
	Components struct {
		Responses map[string]struct {
			Headers map[string]struct{}
			Content map[string]struct{}
		}
	}
}

// openAPI is the document as a server gives it.
func openAPI(t testing.TB, server *httpapi.Server) []byte {
	t.Helper()
	text, err := server.OpenAPI()
	require.NoError(t, err)
	return text
}

func documentOf(t testing.TB, text []byte) document {
	t.Helper()
	var doc document
	require.NoError(t, json.Unmarshal(text, &doc))
	return doc
}

// requireNamed expects that the document names the status of an answer. Faults of
// the server itself need no name.
func (s *site) requireNamed(r *http.Request, w *httptest.ResponseRecorder) {
	s.t.Helper()
	if s.any || w.Code == http.StatusInternalServerError {
		return
	}
	s.read.Do(func() { s.named = s.server.Described() })
	for path, item := range s.named {
		if statuses, ok := item[strings.ToLower(r.Method)]; ok && fits(path, r.URL.EscapedPath()) {
			if _, exact := s.named[r.URL.EscapedPath()]; exact && path != r.URL.EscapedPath() {
				continue
			}
			require.Contains(s.t, statuses, strconv.Itoa(w.Code), "%s %s: %s", r.Method, r.URL, w.Body)
		}
	}
}

// fits reports whether a path of the document stands for a request's.
func fits(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && (!strings.HasPrefix(want[i], "{") || got[i] == "") {
			return false
		}
	}
	return true
}

// TestTheWrittenDocumentNamesWhatIsDescribed lets the other tests look at descriptions,
// and not write a document for each of their servers.
func TestTheWrittenDocumentNamesWhatIsDescribed(t *testing.T) {
	s := newSite(t)
	written := map[string]map[string][]string{}
	for path, item := range documentOf(t, openAPI(t, s.server)).Paths {
		written[path] = map[string][]string{}
		for method, o := range item {
			written[path][method] = slices.Sorted(maps.Keys(o.Responses))
		}
	}
	require.NotEmpty(t, written)
	require.Equal(t, written, s.server.Described())
}

func TestAnswersMayGainFieldsAndRequestsMayNot(t *testing.T) {
	s := newSite(t)
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Additional any `json:"additionalProperties"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(openAPI(t, s.server), &doc))
	for name, schema := range doc.Components.Schemas {
		switch request := strings.HasSuffix(name, "Request"); {
		case request, name == "Mark", name == "NewFriend", name == "SessionPatch", name == "WebhookPatch", name == "ListBody":
			require.NotNil(t, schema.Additional, name)
		default:
			require.Nil(t, schema.Additional, name)
		}
	}
}

func TestErrorsThatPassSayWhenToTryAgain(t *testing.T) {
	s := newSite(t)
	doc := documentOf(t, openAPI(t, s.server))
	for _, name := range []string{"TooManyRequests", "Unavailable"} {
		require.Contains(t, doc.Components.Responses[name].Headers, "Retry-After")
		require.Contains(t, doc.Components.Responses[name].Content, "application/problem+json")
	}
}

func TestOlderGeneratorsGetOpenAPI30(t *testing.T) {
	s := newSite(t)
	text := s.ok(200, "", "GET", "/openapi-3.0.json", "")
	doc := documentOf(t, []byte(text))
	require.Equal(t, "3.0.3", doc.OpenAPI)
	require.Len(t, doc.Paths, len(documentOf(t, openAPI(t, s.server)).Paths))
	require.NotContains(t, text, `"null"`)
}

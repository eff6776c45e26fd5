package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// The page that shows the OpenAPI document: everything it needs is in it.
var (
	//go:embed docs/page.html
	docsPage string
	//go:embed docs/page.css
	docsStyle string
	//go:embed docs/page.js
	docsScript string
)

// notModified answers who has a document already.
func notModified() *huma.Response {
	return &huma.Response{Description: "The document is still the one of `If-None-Match`"}
}

func (s *Server) registerDocs() {
	s.registerDocument(op("GET /openapi.json", "openapi", "Operation", "This document"), jsonType, huma.TypeObject, s.spec)
	s.registerDocument(op("GET /openapi-3.0.json", "openapi-3-0", "Operation", "This document as OpenAPI 3.0, for generators that do not know 3.1"), jsonType, huma.TypeObject, s.writeSpec30)

	page := op("GET /docs/openapi", "docs", "Operation", "This document, to read in a browser")
	page.Responses = map[string]*huma.Response{
		"200": {Description: "OK", Content: map[string]*huma.MediaType{"text/html": {Schema: &huma.Schema{Type: huma.TypeString}}}},
		"304": notModified(),
	}
	html := []byte(strings.NewReplacer("{{style}}", docsStyle, "{{script}}", docsScript).Replace(docsPage))
	policy := strings.Join([]string{
		"default-src 'none'", "object-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
		"style-src '" + sourceHash(docsStyle) + "'", "script-src '" + sourceHash(docsScript) + "'",
	}, "; ")
	tag := entityTag(html)
	s.registerPlain(page, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		serveUnlessKnown(w, r, html, tag)
	})
}

// registerDocument serves a text about all routes. It is written when it is first asked
// for: by then they are known.
func (s *Server) registerDocument(op huma.Operation, mediaType, schemaType string, write func() ([]byte, error)) {
	op.Responses = map[string]*huma.Response{
		"200": {Description: "OK", Content: map[string]*huma.MediaType{mediaType: {Schema: &huma.Schema{Type: schemaType}}}},
		"304": notModified(),
	}
	served := mediaType
	if mediaType == textType {
		served += "; charset=utf-8"
	}
	type document struct {
		text []byte
		tag  string
	}
	written := sync.OnceValues(func() (document, error) {
		text, err := write()
		return document{text, entityTag(text)}, err
	})
	s.registerPlain(op, func(w http.ResponseWriter, r *http.Request) {
		d, err := written()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", served)
		serveUnlessKnown(w, r, d.text, d.tag)
	})
}

// entityTag names a content.
func entityTag(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// serveUnlessKnown answers with a content, or that the client has it already.
func serveUnlessKnown(w http.ResponseWriter, r *http.Request, content []byte, tag string) {
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// sourceHash names an inline script or style in a content security policy.
func sourceHash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

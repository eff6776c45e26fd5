package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Path is where the pages are.
const Path = "/console/"

// Policy is the content security policy of the pages: scripts, styles and data of the
// server itself and nothing in the pages' text, so that no name of a user can do
// anything.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const (
	indexFile = "index.html"
	// assets are the files whose names change with their content.
	assets = "assets/"
)

// Handler serves the pages of the console below Path. It is safe for concurrent use.
type Handler struct {
	files map[string]*file // by path below Path
}

// file is a file in the two forms it is sent in.
type file struct {
	contentType string
	plain       form
	packed      *form // by gzip; nil if that is no shorter
}

type form struct {
	data []byte
	tag  string
}

// NewHandler returns a handler of the files of dist, which has to have an index.html.
// They are read and packed once.
func NewHandler(dist fs.FS) (*Handler, error) {
	h := &Handler{files: make(map[string]*file)}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		h.files[name], err = newFile(name, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	if h.files[indexFile] == nil {
		return nil, errors.New("console: there is no index.html")
	}
	return h, nil
}

func newFile(name string, data []byte) (*file, error) {
	f := &file{contentType: contentType(name), plain: form{data: data, tag: tagOf(data)}}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(data) {
		f.packed = &form{data: packed.Bytes(), tag: tagOf(packed.Bytes())}
	}
	return f, nil
}

// contentType tells browsers what a file is. They are told not to guess.
func contentType(name string) string {
	known := map[string]string{
		".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
		".json": "application/json", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
		".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".webp": "image/webp", ".woff2": "font/woff2",
	}
	if t, ok := known[path.Ext(name)]; ok {
		return t
	}
	return "application/octet-stream"
}

func tagOf(data []byte) string {
	sum := sha256.Sum256(data)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// ServeHTTP implements http.Handler. A path without a file is one of the pages' own,
// which the index shows.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the pages of the console are read only", http.StatusMethodNotAllowed)
		return
	}
	name, below := strings.CutPrefix(r.URL.Path, Path)
	if !below {
		http.Redirect(w, r, Path, http.StatusFound)
		return
	}
	f, ok := h.files[name]
	switch {
	case ok && strings.HasPrefix(name, assets):
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	case strings.HasPrefix(name, assets):
		http.Error(w, "there is no such file: load the page anew", http.StatusNotFound)
		return
	default:
		if !ok {
			f = h.files[indexFile]
		}
		w.Header().Set("Cache-Control", "no-cache")
	}
	f.serve(w, r)
}

// protect tells browsers what the pages may do, and who may have them.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY") // for those that do not know frame-ancestors
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// serve answers with the file in a form that the client takes, or that it has it.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	out := f.plain
	if f.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(r.Header.Get("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			out = *f.packed
		}
	}
	h.Set("ETag", out.tag)
	if strings.Contains(r.Header.Get("If-None-Match"), out.tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(out.data)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(out.data) // the client has gone if this fails
}

// takesGzip reports whether a client takes gzip, and does not say that it would rather
// not.
func takesGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		coding, weight, _ := strings.Cut(part, ";")
		coding = strings.TrimSpace(coding)
		if coding != "gzip" && coding != "*" {
			continue
		}
		q, given := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		if n, err := strconv.ParseFloat(q, 64); given && err == nil && n == 0 {
			return false
		}
		return true
	}
	return false
}

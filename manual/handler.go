package manual

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Path is where the pages are.
const Path = "/docs/"

// Policy is the content security policy of the pages: the style, the script and the index
// of this server, and nothing in the pages' text.
const Policy = "default-src 'none'; object-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var (
	//go:embed assets/manual.css
	style []byte
	//go:embed assets/manual.js
	script []byte
)

// file is what a path below Path answers.
type file struct {
	contentType string
	content     []byte
	tag         string
}

func newFile(contentType string, content []byte) file {
	sum := sha256.Sum256(content)
	return file{contentType, content, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// Handler serves the pages below Path. It is safe for concurrent use.
type Handler struct {
	files func() (map[string]file, error) // by path below Path
}

// New returns a handler of the Markdown in a folder. It reads it when a page is first
// asked for.
func New(pages fs.FS) *Handler {
	return &Handler{files: sync.OnceValues(func() (map[string]file, error) { return build(pages) })}
}

// build makes all files that are served.
func build(pages fs.FS) (map[string]file, error) {
	files := map[string]file{
		"manual.css": newFile("text/css; charset=utf-8", style),
		"manual.js":  newFile("text/javascript; charset=utf-8", script),
	}
	books, err := readBooks(pages)
	if err != nil {
		return nil, fmt.Errorf("manual: %w", err)
	}
	for _, b := range books {
		for _, p := range b.pages {
			files[p.path()] = newFile("text/html; charset=utf-8", b.html(books, p))
		}
		index, err := b.index()
		if err != nil {
			return nil, fmt.Errorf("manual: the index of %s: %w", b.tag, err)
		}
		files[b.folder+"search.json"] = newFile("application/json", index)
	}
	return files, addPictures(files, pages)
}

// addPictures adds the pictures, which stand beside the English pages.
func addPictures(files map[string]file, pages fs.FS) error {
	names, err := fs.Glob(pages, "*.svg")
	if err != nil {
		return fmt.Errorf("manual: %w", err)
	}
	for _, name := range names {
		content, err := fs.ReadFile(pages, name)
		if err != nil {
			return fmt.Errorf("manual: %w", err)
		}
		files[name] = newFile("image/svg+xml", content)
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the documentation is read only", http.StatusMethodNotAllowed)
		return
	}
	files, err := h.files()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, Path)
	f, ok := files[name]
	if _, inRepository := files[strings.TrimSuffix(name, ".md")]; !ok && inRepository && strings.HasSuffix(name, ".md") {
		http.Redirect(w, r, Path+strings.TrimSuffix(name, ".md"), http.StatusFound)
		return
	}
	if !ok {
		http.Error(w, "there is no such page: begin at "+Path, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
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

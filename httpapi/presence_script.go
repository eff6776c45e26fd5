package httpapi

import (
	_ "embed"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// presenceScript makes a page a sign of life of its visitor's session. It is built
// from presencejs/presence.ts: "npm ci && npm run build" there.
//
//go:embed presencejs/presence.js
var presenceScript []byte

// PresenceScriptPath is where the presence script is, unless Options say otherwise.
const PresenceScriptPath = "/v1/presence.js"

func (s *Server) registerPresenceScript() {
	script := op("GET "+PresenceScriptPath, "presence-script", "Operation", "A script that makes a page a sign of life of its visitor's session")
	script.Description = "Load it in a page by a script element with async, whose src is this address. The session comes by its HttpOnly cookie, or as `data-token`. " +
		"One tab of a browser sends touches: every minute while it is visible, every two while it is hidden. " +
		"A session that has ended raises `rollcall:ended` on the document, with its cause and reason."
	script.Responses = map[string]*huma.Response{
		"200": {Description: "OK", Content: map[string]*huma.MediaType{"text/javascript": {Schema: &huma.Schema{Type: huma.TypeString}}}},
		"304": notModified(),
	}
	tag := entityTag(presenceScript)
	s.registerPlain(script, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin") // a page of another origin may run it
		serveUnlessKnown(w, r, presenceScript, tag)
	})
}

// presencePath gives the presence script its own path where another was configured:
// lists of what browsers shall not load know words like "presence" and "beacon".
func (o *Options) presencePath(u *url.URL) {
	if o.PresenceScript != "" && u.Path == o.PresenceScript {
		u.Path, u.RawPath = PresenceScriptPath, ""
	}
}

// isPlainPath reports whether a path is made of letters, digits and /.-_ alone.
func isPlainPath(path string) bool {
	return !strings.ContainsFunc(path, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("/.-_", c)
	})
}

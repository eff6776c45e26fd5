package httpapi

import (
	"net/http"
	"strings"
)

// verifyAnyPath makes GET /v1/verify?proxy=1 of a request below /v1/verify/. Envoy's
// ext_authz appends the path and the query of the request that it asks about, and
// keeps its method: nothing of them is meant for us.
func verifyAnyPath(r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/v1/verify/") {
		return
	}
	r.Method = http.MethodGet
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = "/v1/verify", "", "proxy=1"
}

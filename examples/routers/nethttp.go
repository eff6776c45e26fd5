package routers

import (
	"fmt"
	"net/http"

	"github.com/rollcall/rollcall/middleware"
)

// guarded is the middleware: only requests of live sessions get through.
func guarded(roll middleware.SessionService) func(http.Handler) http.Handler {
	guard := middleware.Sessions(roll, middleware.Options{Cookie: "session"})
	return guard
}

// hello greets the user of the session.
func hello(w http.ResponseWriter, r *http.Request) {
	session, _ := middleware.Session(r.Context())
	fmt.Fprintf(w, "hello %s", session.User)
}

func withNetHTTP(guard func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", hello)
	return guard(mux)
}

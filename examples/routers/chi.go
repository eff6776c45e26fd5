package routers

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

func withChi(guard func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(guard)
	r.Get("/hello", hello)
	return r
}

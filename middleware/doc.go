// Package middleware lets any net/http handler take part in Rollcall: a request is
// a sign of life of its user, and a session that was kicked gets no further.
//
//	roll, err := rollcall.New(engine, rollcall.Options{})
//	guard := middleware.Sessions(roll, middleware.Options{Cookie: "session"})
//	http.ListenAndServe(":8000", guard(mux))
//
// [Sessions] is for applications that log in through Rollcall: it reads the session
// token, refuses what is not a live session, and gives handlers the session by
// [Session]. [Beats] is for applications with sessions of their own: they tell who
// the user of a request is.
//
// Both work over a [rollcall.Roll] in the same process and over package client, the
// same methods by HTTP.
//
// # Routers
//
// What is returned is a func(http.Handler) http.Handler, which most routers take as
// it is, so there are no adapters here:
//
//	r := chi.NewRouter()                       // chi
//	r.Use(guard)
//
//	e := echo.New()                            // echo
//	e.Use(echo.WrapMiddleware(guard))
//
//	http.ListenAndServe(":8000", guard(g))     // gin: its engine is a http.Handler
//
// # Cost
//
// [Sessions] asks for the session on every request, as only then a kick takes effect
// at once. Only one request in a tenth of the window writes, so that a busy page
// costs reads: see Options.Every.
package middleware

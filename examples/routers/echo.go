package routers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/rollcall/rollcall/middleware"
)

func withEcho(guard func(http.Handler) http.Handler) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(guard))
	e.GET("/hello", func(c echo.Context) error {
		session, _ := middleware.Session(c.Request().Context())
		return c.String(http.StatusOK, "hello "+session.User)
	})
	return e
}

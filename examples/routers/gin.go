package routers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/rollcall/rollcall/middleware"
)

func withGin(guard func(http.Handler) http.Handler) http.Handler {
	g := gin.New()
	g.GET("/hello", func(c *gin.Context) {
		session, _ := middleware.Session(c.Request.Context())
		c.String(http.StatusOK, "hello %s", session.User)
	})
	return guard(g)
}

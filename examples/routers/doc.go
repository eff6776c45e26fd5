// Package routers shows Rollcall's middleware in front of net/http, chi, echo and gin.
// It is a module of its own, so that Rollcall does not depend on them.
package routers

// Package httpapi serves a [rollcall.Roll] over HTTP: the JSON API, the
// forward-auth check for reverse proxies, health, metrics, and a description
// of all of it as an OpenAPI 3.1 document with a page to read it on.
//
// Who may call what stands in one table, see [Routes]; which code has which
// status in another. Both are enforced in one place each and are shown in the
// OpenAPI document.
package httpapi

package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestSessionCountsRoute(t *testing.T) {
	s := newSite(t)
	s.json(200, `{"by":"kind","items":[],"other":0,"total":0}`, "reader", "GET", "/v1/sessions/counts?by=kind", "")
	s.login(`{"user":"a","app":"shop"}`)
	s.login(`{"user":"b","app":"shop"}`)
	s.login(`{"user":"c"}`)
	s.json(200, `{"by":"app","items":[{"value":"shop","sessions":2},{"value":"","sessions":1}],"other":0,"total":3}`, "reader", "GET", "/v1/sessions/counts?by=app", "")
	s.json(200, `{"by":"app","items":[{"value":"shop","sessions":2}],"other":1,"total":3}`, "reader", "GET", "/v1/sessions/counts?by=app&limit=1", "")
	s.ok(200, "writer", "PUT", "/v1/users/a", `{"invisible":true}`)
	s.json(200, `{"by":"app","items":[{"value":"","sessions":1}],"other":1,"total":2}`, "writer", "GET", "/v1/sessions/counts?by=app&limit=1", "")
	s.json(200, `{"by":"app","items":[{"value":"shop","sessions":2}],"other":1,"total":3}`, "admin", "GET", "/v1/sessions/counts?by=app&limit=1", "")
	for query, field := range map[string]string{"": "by", "by=ip": "by", "by=app&limit=0": "limit", "by=app&limit=1001": "limit"} {
		require.Equal(t, field, s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/sessions/counts?"+query, "").Field, query)
	}
}

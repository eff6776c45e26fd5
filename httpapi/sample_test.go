package httpapi_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestOnlineHistoryRoute(t *testing.T) {
	s := newSite(t)
	s.json(200, `{"step":"1m","items":[]}`, "reader", "GET", "/v1/online/history", "")
	tick := func() { require.NoError(t, s.roll.Tick(t.Context())) }
	tick()
	id, _ := s.login(`{"user":"alice"}`)
	s.clock.Advance(time.Minute)
	tick()
	s.ok(200, "writer", "DELETE", "/v1/sessions/"+id, "")
	s.clock.Advance(time.Minute)
	tick()
	const second = `{"at":"2026-02-03T12:01:00.000Z","online":1,"sessions":1,"logins":0,"ends":{"logout":1},"beats":0}`
	s.json(200, `{"step":"1m","items":[
		{"at":"2026-02-03T12:00:00.000Z","online":0,"sessions":0,"logins":1,"ends":{},"beats":1},`+second+`]}`,
		"reader", "GET", "/v1/online/history", "")
	s.json(200, `{"step":"1m","items":[`+second+`]}`, "reader", "GET", "/v1/online/history?from=2026-02-03T12:01:00Z&to=2026-02-03T12:02:00Z", "")
	s.json(200, `{"step":"1h","items":[{"at":"2026-02-03T12:00:00.000Z","online":1,"online_min":0,"online_max":1,
		"sessions":1,"sessions_min":0,"sessions_max":1,"logins":1,"ends":{"logout":1},"beats":1}]}`,
		"reader", "GET", "/v1/online/history?step=1h", "")

	for query, field := range map[string]string{
		"step=5m": "step", "from=yesterday": "from", "to=12:00": "to",
		"from=2026-02-03T12:00:00Z&to=2026-02-03T11:00:00Z":         "to",
		"from=2026-01-01T00:00:00Z&to=2026-01-09T00:00:01Z":         "from",
		"step=1h&from=2024-01-01T00:00:00Z&to=2026-01-01T00:00:00Z": "from",
	} {
		p := s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/online/history?"+query, "")
		require.Equal(t, field, p.Field, query)
	}
}

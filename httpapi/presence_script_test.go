package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

func TestThePresenceScriptIsSmallAndHasTwoPaths(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.PresenceScript = "/js/here.js" })
	first := s.call("", "GET", "/v1/presence.js", "")
	require.Equal(t, http.StatusOK, first.Code)
	require.Equal(t, "text/javascript; charset=utf-8", first.Header().Get("Content-Type"))
	require.Equal(t, "cross-origin", first.Header().Get("Cross-Origin-Resource-Policy"))
	require.Equal(t, first.Body.String(), s.call("", "GET", "/js/here.js", "").Body.String())
	require.Equal(t, http.StatusNotFound, s.call("", "GET", "/js/there.js", "").Code)

	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(first.Body.Bytes())
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.LessOrEqual(t, packed.Len(), 1536)
}

func TestAPageThatGoesIsNoSignOfLifeAndItsUserIsOffline(t *testing.T) {
	s := newSite(t)
	_, token := s.login(`{"user":"u"}`)
	online := func() bool {
		statuses, err := s.roll.Status(t.Context(), "u")
		require.NoError(t, err)
		return statuses[0].Online
	}
	require.True(t, online())
	s.ok(200, token, "POST", "/v1/touch?leave=1", "")
	require.False(t, online())
	s.ok(200, token, "POST", "/v1/touch", "")
	require.True(t, online())
	s.refused(400, rollcall.CodeInvalidArgument, token, "POST", "/v1/touch?leave=yes", "")
	s.refused(400, rollcall.CodeInvalidArgument, "writer", "POST", "/v1/touch?leave=1", `{"tokens":[]}`)
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"u"}`)
	s.refused(401, rollcall.CodeSessionEnded, token, "POST", "/v1/touch?leave=1", "")
}

func TestEnvoyAsksWithThePathAndTheMethodOfTheRequest(t *testing.T) {
	s := newSite(t)
	_, token := s.login(`{"user":"u"}`)
	for _, method := range []string{"GET", "POST", "PUT", "DELETE", "OPTIONS"} {
		w := s.call(token, method, "/v1/verify/orders/7?proxy=0&touch=1", "")
		require.Equal(t, http.StatusOK, w.Code, method)
		require.Equal(t, "u", w.Header().Get("Rollcall-User"))
	}
	w := s.call("", "PUT", "/v1/verify/", "")
	require.Equal(t, http.StatusUnauthorized, w.Code)
}

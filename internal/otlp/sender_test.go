package otlp

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// message is what is sent.
func message() *traces.TracesData {
	return &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{SchemaUrl: strings.Repeat("schema", 100)}}}
}

// collector answers each attempt with the next of the given statuses, the last one to all
// that follow.
func collector(t *testing.T, check func(*http.Request), statuses ...int) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		check(r)
		n := int(asked.Add(1))
		if status := statuses[min(n, len(statuses))-1]; status != http.StatusOK {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(server.Close)
	return server, &asked
}

func TestSendPostsTheMessage(t *testing.T) {
	for _, packed := range []bool{false, true} {
		server, asked := collector(t, func(r *http.Request) {
			require.Equal(t, "POST /v1/traces", r.Method+" "+r.URL.Path)
			require.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
			require.Equal(t, "Bearer x", r.Header.Get("Authorization"))
			var from io.Reader = r.Body
			if packed {
				require.Equal(t, "gzip", r.Header.Get("Content-Encoding"))
				var err error
				from, err = gzip.NewReader(r.Body)
				require.NoError(t, err)
			}
			body, err := io.ReadAll(from)
			require.NoError(t, err)
			var got traces.TracesData
			require.NoError(t, proto.Unmarshal(body, &got))
			require.True(t, proto.Equal(message(), &got))
		}, http.StatusOK)
		s := NewSender(&Target{URL: server.URL + "/v1/traces", Header: http.Header{"Authorization": {"Bearer x"}}, Timeout: time.Minute, Gzip: packed})
		require.NoError(t, s.Send(t.Context(), message()))
		require.EqualValues(t, 1, asked.Load())
		s.Close()
	}
}

func TestWhatACollectorMayTakeLaterIsSentAgain(t *testing.T) {
	server, asked := collector(t, func(*http.Request) {}, http.StatusServiceUnavailable, http.StatusOK)
	s := NewSender(&Target{URL: server.URL, Timeout: time.Minute})
	defer s.Close()
	require.NoError(t, s.Send(t.Context(), message()))
	require.EqualValues(t, 2, asked.Load())
}

func TestWhatACollectorRefusesIsNotSentAgain(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusInternalServerError, http.StatusTemporaryRedirect} {
		server, asked := collector(t, func(*http.Request) {}, status)
		s := NewSender(&Target{URL: server.URL, Timeout: time.Minute})
		require.ErrorContains(t, s.Send(t.Context(), message()), http.StatusText(status))
		require.EqualValues(t, 1, asked.Load(), "neither again, nor where it leads to")
		s.Close()
	}
}

func TestASendEndsWithItsTimeout(t *testing.T) {
	server, asked := collector(t, func(*http.Request) {}, http.StatusTooManyRequests)
	s := NewSender(&Target{URL: server.URL, Timeout: firstPause / 2})
	defer s.Close()
	require.ErrorContains(t, s.Send(t.Context(), message()), "429")
	require.EqualValues(t, 1, asked.Load(), "the pause would end behind the timeout")

	server.Close()
	require.Error(t, s.Send(t.Context(), message()), "nobody is there")
}

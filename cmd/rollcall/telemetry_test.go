package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rollcall/rollcall/httpapi"
)

// collector takes what is sent by OTLP, as a collector of OpenTelemetry does.
type collector struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	spans    []*traces.Span
	measures map[string]*metrics.Metric // the latest by name
	services map[string]bool
	bodies   bytes.Buffer // all that came
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, measures: make(map[string]*metrics.Metric), services: make(map[string]bool)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	require.NoError(c.t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies.Write(body)
	switch r.URL.Path {
	case "/v1/traces":
		var sent traces.TracesData
		require.NoError(c.t, proto.Unmarshal(body, &sent))
		for _, resource := range sent.GetResourceSpans() {
			c.services[resource.GetResource().GetAttributes()[1].String()] = true
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	case "/v1/metrics":
		var sent metrics.MetricsData
		require.NoError(c.t, proto.Unmarshal(body, &sent))
		for _, resource := range sent.GetResourceMetrics() {
			for _, scope := range resource.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					c.measures[m.GetName()] = m
				}
			}
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// find returns the spans of a name.
func (c *collector) find(name string) []*traces.Span {
	var out []*traces.Span
	for _, s := range c.spans {
		if s.GetName() == name {
			out = append(out, s)
		}
	}
	return out
}

// said are the attributes of a span, as name=value.
func said(s *traces.Span) string {
	var out []string
	for _, a := range s.GetAttributes() {
		v := a.GetValue().GetStringValue()
		if v == "" {
			v = "#"
		}
		out = append(out, a.GetKey()+"="+v)
	}
	return strings.Join(out, " ")
}

// TestTracesAndMeasuresNameNobody runs a server with a collector, has it do what names
// people, and looks for each of those names in all that the collector was sent.
func TestTracesAndMeasuresNameNobody(t *testing.T) {
	c := newCollector(t)
	const key = "rck_an-admin-key-that-is-searched-for-0123"
	s, _ := serve(t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.url, "ROLLCALL_ADMIN_KEY=" + key, "ROLLCALL_TRUSTED_PROXIES=127.0.0.0/8",
	}, "--data-dir", filepath.Join(t.TempDir(), "data"))
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	call := func(method, path, body string) (status int, answer string) {
		request, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader(body))
		require.NoError(t, err)
		for name, value := range map[string]string{
			"Authorization": "Bearer " + key, "Content-Type": "application/json", "User-Agent": "agent-searched-for",
			"X-Forwarded-For": "203.0.113.77", "X-Request-Id": "request-searched-for",
			"Traceparent": "00-" + trace + "-" + parent + "-01", "Tracestate": "vendor=state-searched-for", "Baggage": "user=baggage-searched-for",
		} {
			request.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { require.NoError(t, res.Body.Close()) }()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(text)
	}
	status, session := call("POST", "/v1/sessions", `{"user":"user-searched-for","ip":"203.0.113.78","device":"device-searched-for","name":"name-searched-for"}`)
	require.Equal(t, http.StatusCreated, status, session)
	_, token, _ := strings.Cut(session, `"token":"`)
	token, _, _ = strings.Cut(token, `"`)
	require.Greater(t, len(token), 20)
	status, _ = call("GET", "/v1/users/user-searched-for", "")
	require.Equal(t, http.StatusOK, status)
	status, _ = call("GET", "/v1/kinds?x=query-searched-for", "")
	require.Equal(t, http.StatusBadRequest, status)
	status, _ = call("GET", "/v1/bans/user-searched-for", "")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = call("GET", "/v1/sessions/session-searched-for", "")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = call("GET", "/path-searched-for", "")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = call("SEARCHEDFOR", "/v1/verify", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	s.end() // which sends what is left

	c.mu.Lock()
	defer c.mu.Unlock()
	// A request is a part of its caller's trace, and has its commands below it.
	for _, span := range c.spans {
		require.Equal(t, trace, hex.EncodeToString(span.GetTraceId()))
	}
	login := c.find("POST /v1/sessions")
	require.Len(t, login, 1)
	require.Equal(t, parent, hex.EncodeToString(login[0].GetParentSpanId()))
	require.Equal(t, traces.Span_SPAN_KIND_SERVER, login[0].GetKind())
	require.Equal(t, "http.request.method=POST http.response.status_code=# http.route=/v1/sessions", said(login[0]))
	command := c.find("login")
	require.Len(t, command, 1)
	require.Equal(t, login[0].GetSpanId(), command[0].GetParentSpanId())
	require.GreaterOrEqual(t, command[0].GetStartTimeUnixNano(), login[0].GetStartTimeUnixNano())
	require.LessOrEqual(t, command[0].GetEndTimeUnixNano(), login[0].GetEndTimeUnixNano())
	require.Empty(t, said(command[0]))
	require.Len(t, c.find("GET /v1/users/{user}"), 1)
	require.Len(t, c.find("ban_of"), 1)
	require.Equal(t, "error.type=not_found", said(c.find("ban_of")[0]))
	require.Len(t, c.find("GET"), 1, "what has no route is named by its method")
	require.NotEmpty(t, c.find("_OTHER"))

	// Measures are those of /metrics.
	require.NotEmpty(t, c.measures["rollcall_commands_total"].GetSum().GetDataPoints())
	require.NotEmpty(t, c.measures["rollcall_command_seconds"].GetExponentialHistogram().GetDataPoints())
	require.InDelta(t, 1, c.measures["rollcall_sessions"].GetGauge().GetDataPoints()[0].GetAsDouble(), 0)
	require.NotEmpty(t, c.measures["go_gc_duration_seconds"].GetSummary().GetDataPoints())

	for _, secret := range []string{"searched-for", "SEARCHEDFOR", token, key, "203.0.113.", "127.0.0.1"} {
		require.False(t, bytes.Contains(c.bodies.Bytes(), []byte(secret)), "%q was sent to the collector", secret)
	}
	require.Contains(t, c.bodies.String(), "rollcall", "it can be searched")
}

// TestWithoutVariablesNothingIsTraced expects the very observer and no tracer: then no
// request and no command costs more.
func TestWithoutVariablesNothingIsTraced(t *testing.T) {
	measured, err := httpapi.NewMetrics(nil)
	require.NoError(t, err)
	for _, environ := range [][]string{nil, {"OTEL_SERVICE_NAME=x"}, {"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"}} {
		log := &syncBuffer{}
		a := &app{ctx: t.Context(), environ: environ, stderr: log}
		off := openTelemetry(a, newLogger(a, &config{}))
		require.Nil(t, off)
		require.Same(t, measured, off.observer(measured))
		require.Nil(t, off.httpTracer())
		off.push(t.Context(), nil)
		off.close(t.Context())
		require.Empty(t, log.String())
	}
}

// TestAFaultOfTelemetryIsNoReasonNotToServe has variables that are wrong, and a collector
// that is not there.
func TestAFaultOfTelemetryIsNoReasonNotToServe(t *testing.T) {
	for _, environ := range [][]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT=100"},
	} {
		s, _ := serve(t, environ, "--data-dir", filepath.Join(t.TempDir(), "data"))
		res, err := http.Get(s.base + "/readyz")
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
		s.end()
		require.Regexp(t, `no telemetry is sent.*OTEL_EXPORTER_OTLP_PROTOCOL: must be|telemetry was lost`, s.log.String())
	}
}

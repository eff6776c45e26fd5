package httpapi_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/httpapi"
)

func TestMetricsAreWhatPrometheusExpects(t *testing.T) {
	s := newSite(t)
	s.loginUser("u")
	s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"invisible":true}`)
	s.ok(200, "writer", "POST", "/v1/beats", `{"users":["a","ghost"]}`)
	text := s.ok(200, "", "GET", "/metrics", "")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Contains(t, text, "\nrollcall_online_users 2\n", "without invisible users")
	require.Contains(t, text, "# TYPE rollcall_outages_total counter\n")
	require.Contains(t, text, `rollcall_build_info{engine="local",go_version="go`)
}

// TestAProtobufScrapeHasNativeHistograms asks as Prometheus does with native histograms
// turned on, and then as before.
func TestAProtobufScrapeHasNativeHistograms(t *testing.T) {
	s := newSite(t)
	s.loginUser("u")
	const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
	asked := s.request("", "GET", "/metrics", "")
	asked.Header.Set("Accept", accept)
	answer := s.serve(asked)
	require.Equal(t, 200, answer.Code)
	format := expfmt.ResponseFormat(answer.Header())
	require.Equal(t, expfmt.TypeProtoDelim, format.FormatType())

	families := make(map[string]*dto.MetricFamily)
	for decoder := expfmt.NewDecoder(answer.Body, format); ; {
		var one dto.MetricFamily
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		families[one.GetName()] = &one
	}
	require.Contains(t, families, "rollcall_online_users", "what the engine holds is there too")
	for _, name := range []string{"rollcall_command_seconds", "rollcall_http_request_seconds"} {
		require.NotNil(t, families[name], name)
		for _, m := range families[name].GetMetric() {
			h := m.GetHistogram()
			require.NotZero(t, h.GetSampleCount(), name)
			require.Len(t, h.GetBucket(), 5, "%s: the classic buckets, without +Inf", name)
			require.NotEmpty(t, h.GetPositiveSpan(), "%s has native buckets", name)
			require.EqualValues(t, 3, h.GetSchema(), "%s: eight buckets for each doubling", name)
		}
	}

	for _, accept := range []string{"", "*/*", "text/plain", "application/openmetrics-text;version=1.0.0"} {
		asked := s.request("", "GET", "/metrics", "")
		asked.Header.Set("Accept", accept)
		answer := s.serve(asked)
		require.Equal(t, 200, answer.Code)
		require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", answer.Header().Get("Content-Type"), accept)
		require.Contains(t, answer.Body.String(), "rollcall_command_seconds_bucket{command=\"login\",le=\"+Inf\"} 1\n")
	}
}

// TestMetricsOfTheLastMinute lets a minute pass on the site's clock.
func TestMetricsOfTheLastMinute(t *testing.T) {
	s := newSite(t)
	require.NotContains(t, s.ok(200, "", "GET", "/metrics", ""), "rollcall_minute_", "there is no sample yet")
	require.NoError(t, s.roll.Tick(t.Context()))
	id, _ := s.login(`{"user":"alice"}`)
	s.ok(200, "writer", "DELETE", "/v1/sessions/"+id, "")
	s.clock.Advance(time.Minute)
	require.NoError(t, s.roll.Tick(t.Context()))
	text := s.ok(200, "", "GET", "/metrics", "")
	require.Contains(t, text, "\nrollcall_minute_logins 1\n")
	require.Contains(t, text, "\nrollcall_minute_beats 1\n")
	require.Contains(t, text, "\nrollcall_minute_ends{cause=\"logout\"} 1\n")
	require.Contains(t, text, "\nrollcall_minute_ends{cause=\"kicked\"} 0\n")
}

// TestMetricsDoNotGrowWithWhatIsAsked calls every route and expects a page of
// bounded size.
func TestMetricsDoNotGrowWithWhatIsAsked(t *testing.T) {
	s := newSite(t)
	for _, r := range httpapi.Routes() {
		asked := s.request("admin", r.Method, strings.NewReplacer("{user}", "u", "{id}", "x", "{friend}", "v").Replace(r.Path), "")
		asked.Header.Set("Accept", "application/json") // a page of events, and no stream without end
		s.serve(asked)
	}
	for i := range 100 {
		s.call("", "GET", fmt.Sprintf("/junk-%d", i), "")
	}
	require.Less(t, len(s.ok(200, "", "GET", "/metrics", "")), 64<<10)
}

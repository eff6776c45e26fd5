package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
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

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy is a reverse proxy that runs with the file of the example.
type proxy struct {
	name, file string
	// command returns how it is started with a configuration, from a directory of
	// its own.
	command func(t *testing.T, dir, config string) []string
}

func proxies() []proxy {
	return []proxy{
		{name: "nginx", file: "nginx.conf", command: func(t *testing.T, dir, config string) []string {
			t.Helper()
			whole := filepath.Join(dir, "whole.conf")
			text := fmt.Sprintf("daemon off; user root; pid %s/pid; error_log stderr;\nevents {}\nhttp { access_log off; include %s; %s }\n",
				dir, config, temporary(dir))
			require.NoError(t, os.WriteFile(whole, []byte(text), 0o600))
			return []string{"nginx", "-p", dir, "-e", "stderr", "-c", whole}
		}},
		{name: "caddy", file: "Caddyfile", command: func(_ *testing.T, _, config string) []string {
			return []string{"caddy", "run", "--adapter", "caddyfile", "--config", config}
		}},
	}
}

// temporary puts what nginx writes while it runs into a directory.
func temporary(dir string) string {
	var out strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&out, "%s_temp_path %s/%s; ", kind, dir, kind)
	}
	return out.String()
}

// start runs the proxy in front of an application, and returns the site's address.
func (p proxy) start(t *testing.T, rollcall, app string) string {
	t.Helper()
	if _, err := exec.LookPath(p.name); err != nil {
		if os.Getenv("CI") != "" {
			require.NoError(t, err)
		}
		t.Skipf("no %s on this machine: what runs behind it is not tested", p.name)
	}
	text, err := os.ReadFile(filepath.Join("..", "examples", "forward-auth", p.file))
	require.NoError(t, err)
	site := freeAddress(t)
	_, port, err := net.SplitHostPort(site)
	require.NoError(t, err)
	config := strings.NewReplacer(
		"127.0.0.1:8080", strings.TrimPrefix(rollcall, "http://"), "127.0.0.1:3000", strings.TrimPrefix(app, "http://"),
		"listen 8000;", "listen "+site+";", ":8000 {", "http://127.0.0.1:"+port+" {",
	).Replace(string(text))
	if p.name == "caddy" {
		config = "{\n\tadmin off\n\tauto_https off\n}\n" + config
	}
	dir := t.TempDir()
	file := filepath.Join(dir, p.file)
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))

	words := p.command(t, dir, file)
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...) //nolint:gosec // a proxy with our own configuration
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.DialTimeout("tcp", site, time.Second)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, time.Minute, 10*time.Millisecond, "%s listens; it said %s", p.name, &said)
	return "http://" + site
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// application is what stands behind the proxy. Its pages say who the request's user
// is, and the login page says why.
func application(t *testing.T, reached *atomic.Int64) string {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			fmt.Fprintf(w, "log in; cause %q, reason %q", r.FormValue("cause"), r.FormValue("reason"))
		} else {
			reached.Add(1)
		}
		for name, values := range r.Header {
			if plain := strings.ReplaceAll(strings.ToLower(name), "_", "-"); strings.HasPrefix(plain, "rollcall-") {
				fmt.Fprintf(w, " %s=%s", plain, strings.Join(values, ","))
			}
		}
	}))
	t.Cleanup(app.Close)
	return app.URL
}

func TestBehindAProxyOnlyLiveSessionsGetIn(t *testing.T) {
	for _, p := range proxies() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			var reached atomic.Int64
			app := application(t, &reached)
			s := start(t, buildBinary(t), t.TempDir(), "--verify-cookie", "session")
			v := visitor{t: t, site: p.start(t, s.url, app)}

			// Without a session, or with one that never was: to the login page.
			require.Equal(t, "/login", v.redirected("/account").Path)
			v.token = "rct_nonsense"
			require.Equal(t, "/login", v.redirected("/account").Path)

			in := s.loginAs("alice smith")
			v.token = in.Token
			text := v.page("/account")
			require.Contains(t, text, "rollcall-user=alice%20smith")
			require.Contains(t, text, "rollcall-session="+in.Session.ID)
			require.Contains(t, text, "rollcall-kind=user")
			require.NotContains(t, text, "mallory", "what the client says of itself arrives")
			require.NotContains(t, v.page("/login"), "mallory", "what the client says of itself arrives")

			// A kick takes effect at the next request, and the page says why.
			s.get(nil, request{method: "POST", path: "/v1/kicks", body: map[string]any{"user": "alice smith", "reason": "payment failed & overdue"}}, http.StatusOK)
			to := v.redirected("/account")
			require.Equal(t, "payment failed & overdue", to.Query().Get("reason"))
			require.Contains(t, v.page(to.RequestURI()), `cause "kicked", reason "payment failed & overdue"`)

			// While Rollcall is away nobody gets in.
			v.token = s.loginAs("bob").Token
			v.page("/account")
			s.kill()
			before := reached.Load()
			require.GreaterOrEqual(t, v.get("/account").StatusCode, 500)
			require.Equal(t, before, reached.Load(), "a request reached the application")
		})
	}
}

func (s *server) loginAs(user string) (in loginAnswer) {
	s.t.Helper()
	status, in, err := s.login(map[string]any{"user": user})
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusCreated, status)
	return in
}

// visitor is a browser that follows no redirects, and lies about who it is.
type visitor struct {
	t           *testing.T
	site, token string
}

func (v visitor) get(target string) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.site+target, nil)
	require.NoError(v.t, err)
	if v.token != "" {
		r.AddCookie(&http.Cookie{Name: "session", Value: v.token})
	}
	for _, name := range []string{"User", "Session", "Kind"} {
		r.Header["Rollcall-"+name] = []string{"mallory"}
		r.Header["Rollcall_"+name] = []string{"mallory"}
		r.Header["rollcall_"+strings.ToLower(name)] = []string{"mallory"}
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

func (v visitor) page(target string) string {
	v.t.Helper()
	res := v.get(target)
	text, err := io.ReadAll(res.Body)
	require.NoError(v.t, err)
	require.Equal(v.t, http.StatusOK, res.StatusCode, "%s", text)
	return string(text)
}

func (v visitor) redirected(target string) *url.URL {
	v.t.Helper()
	res := v.get(target)
	require.Equal(v.t, http.StatusFound, res.StatusCode)
	to, err := res.Location()
	require.NoError(v.t, err)
	return to
}

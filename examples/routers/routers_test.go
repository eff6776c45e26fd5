package routers

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestALiveSessionGetsInAndAKickedOneDoesNot asks each router without a token, with
// that of a live session, and with it after a kick.
func TestALiveSessionGetsInAndAKickedOneDoesNot(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	engine := must[*local.Engine](t)(local.Open("", local.Options{InMemory: true}))
	defer func() { _ = engine.Close() }()
	roll := must[*rollcall.Roll](t)(rollcall.New(engine, rollcall.Options{}))
	defer func() { _ = roll.Close() }()
	guard := guarded(roll)

	for name, router := range map[string]http.Handler{
		"net/http": withNetHTTP(guard), "chi": withChi(guard), "echo": withEcho(guard), "gin": withGin(guard),
	} {
		t.Run(name, func(t *testing.T) {
			in := must[rollcall.LoggedIn](t)(roll.Login(t.Context(), rollcall.Login{User: "alice"}))
			ask := func(token string) (status int, body string) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/hello", http.NoBody)
				r.AddCookie(&http.Cookie{Name: "session", Value: token})
				w := httptest.NewRecorder()
				router.ServeHTTP(w, r)
				return w.Code, w.Body.String()
			}
			if status, _ := ask(""); status != http.StatusUnauthorized {
				t.Errorf("without a session the answer is %d", status)
			}
			if status, body := ask(in.Token); status != http.StatusOK || body != "hello alice" {
				t.Errorf("with a session the answer is %d %q", status, body)
			}
			must[rollcall.EndResult](t)(roll.Kick(t.Context(), rollcall.Kick{User: "alice"}))
			if status, body := ask(in.Token); status != http.StatusUnauthorized || !strings.Contains(body, "kicked") {
				t.Errorf("after the kick the answer is %d %q", status, body)
			}
		})
	}
}

// TestTheGuideShowsTheseRouters expects each line of the code that the guide shows in
// one of these files.
func TestTheGuideShowsTheseRouters(t *testing.T) {
	var code strings.Builder
	for _, name := range must[[]string](t)(filepath.Glob("*.go")) {
		code.Write(must[[]byte](t)(os.ReadFile(name)))
	}
	guide := string(must[[]byte](t)(os.ReadFile("../../docs/library.md")))
	_, part, _ := strings.Cut(guide, "\n## Middleware\n")
	part, _, _ = strings.Cut(part, "\n## ")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(part, -1)
	if len(blocks) != 6 {
		t.Fatalf("the guide shows %d blocks", len(blocks))
	}
	for _, block := range blocks {
		indented := "\t" + strings.ReplaceAll(strings.TrimSpace(block[1]), "\n", "\n\t")
		if !strings.Contains(code.String(), indented+"\n") {
			t.Errorf("the guide shows what is not run here:\n%s", indented)
		}
	}
}

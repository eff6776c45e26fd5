package httpapi_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

func ExampleNew() {
	dir, err := os.MkdirTemp("", "rollcall")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	engine, err := local.Open(dir, local.Options{})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	metrics, err := httpapi.NewMetrics(nil)
	if err != nil {
		panic(err)
	}
	roll, err := rollcall.New(engine, rollcall.Options{Observer: metrics})
	if err != nil {
		panic(err)
	}
	defer roll.Close()
	_, key, err := roll.CreateKey(context.Background(), rollcall.NewKey{Name: "app", Role: rollcall.RoleWriter})
	if err != nil {
		panic(err)
	}
	server, err := httpapi.New(roll, httpapi.Options{Metrics: metrics})
	if err != nil {
		panic(err)
	}

	r := httptest.NewRequest("POST", "/v1/sessions", strings.NewReader(`{"user":"alice","device":"ios"}`))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output: 201
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/rollcall/rollcall"
)

// adminKey is the servers' first API key.
const adminKey = "rck_torture0123456789abcdefghijklmnopqrs"

// patience is how long a call may take. Nothing is expected of it but that it
// ends: a machine may be slow.
const patience = 2 * time.Minute

// request is a call of the API.
type request struct {
	method, path string
	body         any    // as JSON; nil for none
	key          string // "" for the administrator's
	retry        string // an Idempotency-Key
}

func (r request) String() string {
	text := r.method + " " + r.path
	if r.body != nil {
		body, _ := json.Marshal(r.body) // it is only shown
		text += " " + string(body)
	}
	if r.retry != "" {
		text += " retry=" + r.retry
	}
	return text
}

// answer is what came of a call, and when the server may have carried it out.
type answer struct {
	status int
	code   rollcall.Code
	body   []byte
	at     span
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, bytes.TrimSpace(a.body)) }

// read reads the body.
func (a answer) read(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("the answer cannot be read: %w: %s", err, a)
	}
	return nil
}

// refusedNow says that the server could not carry it out for the moment.
func (a answer) refusedNow() bool { return a.status == http.StatusServiceUnavailable }

// errNobody says that no server was there to take the call: it was not carried out.
var errNobody = errors.New("nobody listens")

// api calls servers. It is safe for concurrent use.
type api struct {
	clocks *clocks
	client *http.Client
	heard  func() // called with every answer
}

func newAPI(c *clocks) *api {
	return &api{clocks: c, heard: func() {}, client: &http.Client{
		Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
}

// call sends a request. Whoever gets an error does not know what came of it,
// unless the error is errNobody.
func (c *api) call(ctx context.Context, base string, r request) (answer, error) {
	var content io.Reader
	if r.body != nil {
		text, err := json.Marshal(r.body)
		if err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, base+r.path, content)
	if err != nil {
		return answer{}, err
	}
	req.GetBody = nil // or the client itself sends it again if it has a key for retries
	key := r.key
	if key == "" {
		key = adminKey
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if r.retry != "" {
		req.Header.Set("Idempotency-Key", r.retry)
	}
	a := answer{at: c.clocks.now()}
	res, err := c.client.Do(req)
	if err == nil {
		a.status = res.StatusCode
		a.body, err = io.ReadAll(res.Body)
		err = errors.Join(err, res.Body.Close())
	}
	a.at.hi = c.clocks.now().hi
	if err != nil {
		if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED) {
			return a, errNobody
		}
		return a, err
	}
	if a.status >= http.StatusBadRequest {
		var problem struct{ Code rollcall.Code }
		if err := a.read(&problem); err == nil {
			a.code = problem.Code
		}
	}
	c.heard()
	return a, nil
}

// inPath escapes an id for a path.
func inPath(id string) string { return url.PathEscape(id) }

// instant is a time on the wire.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

// remoteKeys are the keys of a running server.
type remoteKeys struct {
	app  *app
	base string
	key  string
	http *http.Client
}

func newRemoteKeys(a *app, c *config) (*remoteKeys, error) {
	scheme := "http://"
	if c.tlsCert != "" {
		scheme = "https://"
	}
	k := &remoteKeys{app: a, base: scheme + c.listen, http: &http.Client{Timeout: 10 * time.Second}}
	for _, e := range a.environ {
		if text, ok := strings.CutPrefix(e, "ROLLCALL_KEY="); ok {
			k.key = text
		}
	}
	if k.key == "" {
		text, err := os.ReadFile(filepath.Join(c.dataDir, keyFile))
		if err != nil {
			return nil, fmt.Errorf("a server has the data open; to ask it, put an admin key into ROLLCALL_KEY: %w", err)
		}
		k.key = strings.TrimSpace(string(text))
	}
	return k, nil
}

// call asks the server and reads its answer into out.
func (k *remoteKeys) call(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(k.app.ctx, method, k.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+k.key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := k.http.Do(req)
	if err != nil {
		return fmt.Errorf("a server has the data open but does not answer at %s (--listen): %w", k.base, err)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		var problem struct {
			Code   rollcall.Code `json:"code"`
			Field  string        `json:"field"`
			Detail string        `json:"detail"`
		}
		if json.Unmarshal(answer, &problem) != nil || problem.Code == "" {
			return fmt.Errorf("the server at %s answered %s", k.base, res.Status)
		}
		return &rollcall.Error{Code: problem.Code, Field: problem.Field, Detail: problem.Detail}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (k *remoteKeys) create(role rollcall.Role, name string, ttl time.Duration) (keyRecord, error) {
	in := map[string]string{"role": string(role), "name": name}
	if ttl > 0 {
		in["ttl"] = ttl.String()
	}
	var out keyRecord
	err := k.call(http.MethodPost, "/v1/keys", in, &out)
	return out, err
}

func (k *remoteKeys) list() ([]keyRecord, error) {
	var out struct {
		Items []keyRecord `json:"items"`
	}
	err := k.call(http.MethodGet, "/v1/keys", nil, &out)
	return out.Items, err
}

func (k *remoteKeys) revoke(id string) error {
	return k.call(http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, nil)
}

func (k *remoteKeys) close() error { return nil }

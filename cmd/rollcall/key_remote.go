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
	"github.com/rollcall/rollcall/httpapi"
)

// remoteKeys are the keys of a running server.
type remoteKeys struct {
	app  *app
	base string
	key  string
	http *http.Client
}

// remote finds the server and the key to ask it with.
func (h *keyholder) remote(a *app, c *config) (*remoteKeys, error) {
	k := &remoteKeys{app: a, base: strings.TrimSuffix(h.Server, "/"), key: h.Key, http: &http.Client{Timeout: 10 * time.Second}}
	if k.base == "" {
		k.base = "http://" + c.listen
		if c.tlsCert != "" {
			k.base = "https://" + c.listen
		}
	}
	for _, e := range a.environ {
		if text, ok := strings.CutPrefix(e, "ROLLCALL_KEY="); ok && k.key == "" {
			k.key = text
		}
	}
	if k.key != "" || c.http.Auth == httpapi.AuthOff {
		return k, nil
	}
	text, err := os.ReadFile(filepath.Join(c.dataDir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("to ask a running server, put an admin key into ROLLCALL_KEY: %w", err)
	}
	k.key = strings.TrimSpace(string(text))
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
	if k.key != "" {
		req.Header.Set("Authorization", "Bearer "+k.key)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := k.http.Do(req)
	if err != nil {
		return fmt.Errorf("no server answers at %s; name the one that has the data open with --server: %w", k.base, err)
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

func (k *remoteKeys) close() error {
	k.http.CloseIdleConnections()
	return nil
}

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// serverSide is one of two servers that are asked the same, and what it called the
// things that the other one calls by other names: the n-th session, the n-th
// token and so on of either side stand for each other.
type serverSide struct {
	*server
	sessions []sideSession
	tokens   []sideToken
	keys     []sideKey
	cursors  []string
	labels   map[string]string // a name of this side to one that both share
}

// sideSession is a session as one side knows it.
type sideSession struct {
	id      string
	loginAt string
	ends    time.Time // when it will have ended if nothing happens to it
}

// sideToken is a token, and the number of its session.
type sideToken struct {
	text    string
	session int
}

type sideKey struct{ id, text string }

func newSide(s *server) *serverSide {
	return &serverSide{server: s, labels: map[string]string{adminKey: "the first key"}}
}

// ask is a request in which $id3$, $token3$, $login3$, $key3$, $keyid3$ and
// $cursor3$ stand for the side's own names: of session 3 its id and login time,
// token 3, text and id of key 3, cursor 3.
type ask struct {
	method, path string
	body         any    // as JSON, text as it is; nil for none
	as           string // what stands in Authorization: Bearer; "" for nothing
	retry        string // the Idempotency-Key
	plain        bool   // the body is text/plain
	order        order  // of the items in the answer
	walk         bool   // follow the cursor to the end
}

func (a ask) String() string {
	body := ""
	if a.body != nil {
		body = " " + a.text()
	}
	if len(body) > 600 {
		body = fmt.Sprintf("%.600s… (%d bytes)", body, len(body))
	}
	if a.retry != "" {
		body += " Idempotency-Key " + a.retry
	}
	return fmt.Sprintf("%s %.600s%s as %q", a.method, a.path, body, a.as)
}

// text returns the body as it is sent.
func (a ask) text() string {
	if text, ok := a.body.(string); ok {
		return text
	}
	text, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // a script holds nothing that is not JSON
	}
	return string(text)
}

// reads tells that the request changes nothing.
func (a ask) reads() bool {
	return a.method == http.MethodGet && !strings.Contains(a.path, "touch=") ||
		strings.HasSuffix(a.path, "/query") || strings.HasSuffix(a.path, "/status") ||
		a.path == "/v1/verify"
}

// answer is what a side said.
type answer struct {
	status int
	header http.Header
	body   any    // the JSON
	text   string // all of the body, if it is not JSON
}

var placeholder = regexp.MustCompile(`\$(id|token|login|key|keyid|cursor)(\d+)\$`)

// own replaces the placeholders by the side's own names.
func (s *serverSide) own(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		part := placeholder.FindStringSubmatch(match)
		n, _ := strconv.Atoi(part[2])
		switch part[1] {
		case "id":
			return s.sessions[n].id
		case "login":
			return s.sessions[n].loginAt
		case "token":
			return s.tokens[n].text
		case "key":
			return s.keys[n].text
		case "keyid":
			return s.keys[n].id
		default:
			return s.cursors[n]
		}
	})
}

// send asks the server, and learns what it calls things.
func (s *serverSide) send(a ask) (answer, error) {
	var content io.Reader
	if a.body != nil {
		content = strings.NewReader(s.own(a.text()))
	}
	req, err := http.NewRequestWithContext(s.t.Context(), a.method, s.url+s.own(a.path), content)
	if err != nil {
		return answer{}, err
	}
	if a.as != "" {
		req.Header.Set("Authorization", "Bearer "+s.own(a.as))
	}
	if a.plain {
		req.Header.Set("Content-Type", "text/plain")
	}
	if a.retry != "" {
		req.Header.Set("Idempotency-Key", a.retry)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	out := answer{status: res.StatusCode, header: res.Header}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if !strings.Contains(res.Header.Get("Content-Type"), "json") || dec.Decode(&out.body) != nil {
		out.body, out.text = nil, string(data)
	}
	s.learn(out.body)
	return out, nil
}

// learn looks for new sessions, tokens, keys and cursors in an answer, and for
// when sessions end.
func (s *serverSide) learn(body any) {
	switch v := body.(type) {
	case []any:
		for _, item := range v {
			s.learn(item)
		}
	case map[string]any:
		if of, ok := v["session"].(map[string]any); ok {
			if token, ok := v["token"].(string); ok {
				s.meet(of, token)
			}
		}
		if text, ok := v["key"].(string); ok {
			s.keys = append(s.keys, sideKey{v["id"].(string), text})
			s.name(v["id"].(string), "key id", len(s.keys)-1)
			s.name(text, "key", len(s.keys)-1)
		}
		if cursor, ok := v["next"].(string); ok {
			s.cursors = append(s.cursors, url.QueryEscape(cursor))
		}
		if _, ok := v["expires_at"].(string); ok {
			s.note(v)
		}
		for _, item := range v {
			s.learn(item)
		}
	}
}

// meet enters a session and its token, unless they are known.
func (s *serverSide) meet(of map[string]any, token string) {
	id := of["id"].(string)
	if s.labels[id] == "" {
		s.sessions = append(s.sessions, sideSession{id: id, loginAt: of["login_at"].(string)})
		s.name(id, "session", len(s.sessions)-1)
	}
	if s.labels[token] == "" {
		n := slices.IndexFunc(s.sessions, func(x sideSession) bool { return x.id == id })
		s.tokens = append(s.tokens, sideToken{token, n})
		s.name(token, "token", len(s.tokens)-1)
	}
}

func (s *serverSide) name(own, what string, n int) { s.labels[own] = fmt.Sprintf("<%s %d>", what, n) }

// note remembers when a session ends.
func (s *serverSide) note(of map[string]any) {
	id, _ := of["id"].(string)
	for i := len(s.sessions) - 1; i >= 0; i-- {
		if s.sessions[i].id == id {
			s.sessions[i].ends = deadline(of)
			return
		}
	}
}

// deadline returns when a session ends if nothing happens to it, zero if it
// has ended.
func deadline(of map[string]any) time.Time {
	var first time.Time
	for _, field := range []string{"expires_at", "ends_at"} {
		text, _ := of[field].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if _, ended := of["ended_at"]; ended {
		return time.Time{}
	}
	return first
}

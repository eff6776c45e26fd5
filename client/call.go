package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rollcall/rollcall"
)

const (
	// maxAnswer bounds an answer, in bytes. The largest is a list of 1,000 sessions.
	maxAnswer = 64 << 20

	firstWait = 100 * time.Millisecond
	maxWait   = 2 * time.Second
	// maxRetryAfter is how long a server may ask to wait. If it asks for more, the
	// caller is told instead.
	maxRetryAfter = 30 * time.Second
)

// call is a request of the API.
type call struct {
	method, path string
	query        url.Values
	body         any
	token        string // of a session, instead of the key
	retryKey     string // Idempotency-Key
	timeout      time.Duration

	// once: the request would do something else the second time.
	once bool
	// removes: if an attempt may have been carried out, not_found afterwards is
	// success.
	removes bool
}

// failure is why an attempt failed, and what that says of another one.
type failure struct {
	err   error
	again bool          // another attempt may succeed
	maybe bool          // this one may have been carried out all the same
	after time.Duration // the server asked to wait so long
}

// do sends a call, again if need be, and decodes the answer into out unless that
// is nil.
func (c *Client) do(ctx context.Context, r call, out any) error {
	body, err := encode(r.body)
	if err != nil {
		return err
	}
	maybe := false // some attempt may have been carried out
	for attempt := 1; ; attempt++ {
		f := c.attempt(ctx, &r, body, out)
		switch {
		case f == nil:
			return nil
		case r.removes && maybe && rollcall.CodeOf(f.err) == rollcall.CodeNotFound:
			return nil
		case !f.again || attempt >= c.opts.Attempts || (r.once && f.maybe):
			return f.err
		}
		maybe = maybe || f.maybe
		wait, ok := f.wait(ctx, attempt)
		if !ok || !pause(ctx, wait) {
			return f.err
		}
	}
}

// wait returns how long to wait after an attempt; false if that is longer than
// ctx or the client waits.
func (f *failure) wait(ctx context.Context, attempt int) (time.Duration, bool) {
	d := backoff(attempt)
	if f.after > 0 {
		d += f.after // the jitter stays, so that not everyone returns at once
	}
	deadline, bounded := ctx.Deadline()
	return d, f.after <= maxRetryAfter && (!bounded || time.Until(deadline) > d)
}

// backoff doubles with each attempt up to maxWait, and is spread over its upper
// half.
func backoff(attempt int) time.Duration {
	d := min(firstWait<<min(attempt-1, 10), maxWait)
	return d/2 + rand.N(d/2)
}

// pause waits, and returns false if ctx ended meanwhile.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// attempt sends a call once. It returns nil if that succeeded.
func (c *Client) attempt(ctx context.Context, r *call, body []byte, out any) *failure {
	limit := r.timeout
	if limit == 0 {
		limit = c.opts.Timeout
	}
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	req, err := c.request(bounded, r, body)
	if err != nil {
		return &failure{err: err}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return c.unreached(ctx, err)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	_ = res.Body.Close() // all of it that is wanted has been read
	switch {
	case err != nil:
		return c.unreached(ctx, err)
	case len(answer) > maxAnswer:
		return &failure{err: &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the answer is larger than 64 MiB"}}
	case res.StatusCode >= http.StatusMultipleChoices:
		return c.refused(res, answer)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return &failure{err: c.strange(res, err)}
	}
	return nil
}

func (c *Client) request(ctx context.Context, r *call, body []byte) (*http.Request, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, reader)
	if err != nil {
		return nil, &rollcall.Error{Code: rollcall.CodeInternal, Detail: "the request cannot be made", Err: err}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "rollcall-go")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.retryKey != "" {
		req.Header.Set("Idempotency-Key", r.retryKey)
	}
	credential := c.opts.Key
	if r.token != "" {
		credential = r.token
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	return req, nil
}

// unreached is the failure of an attempt that no whole answer came to.
func (c *Client) unreached(ctx context.Context, err error) *failure {
	if ended := ctx.Err(); ended != nil {
		return &failure{err: &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the request was cut short", Err: ended}, maybe: true}
	}
	var dial *net.OpError
	never := errors.As(err, &dial) && dial.Op == "dial" // nothing was sent
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // without the method and the address, which Detail has
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = context.DeadlineExceeded // in fewer words
	}
	return &failure{
		err:   &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "no answer from " + c.base, Err: err},
		again: true, maybe: !never,
	}
}

// encode writes a body as JSON. Text that is not UTF-8 is refused, as JSON would
// turn it into another text.
func encode(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, rollcall.Invalid("body", "cannot be written as JSON: %v", err)
	}
	if mangled(out.Bytes()) {
		return nil, rollcall.Invalid("body", "holds text that is not valid UTF-8")
	}
	return out.Bytes(), nil
}

// mangled reports whether the encoder met bytes that are not UTF-8. It writes
// \ufffd for them, and never for the character itself.
func mangled(text []byte) bool {
	const escape = `\ufffd`
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(escape))
		if i < 0 {
			return false
		}
		at += i
		slashes := 0
		for at-slashes > 0 && text[at-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 { // the backslash is not itself escaped
			return true
		}
		at += len(escape)
	}
}

// path joins segments into a path. Each is encoded whole, so that a user may be
// called "a/b" or "..".
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		s = url.PathEscape(s)
		if s == "." || s == ".." {
			s = strings.ReplaceAll(s, ".", "%2E")
		}
		b.WriteString(s)
	}
	return b.String()
}

// params collects query parameters and leaves out empty ones.
type params struct{ url.Values }

func newParams() params { return params{url.Values{}} }

func (p params) text(name, value string) {
	if value != "" {
		p.Set(name, value)
	}
}

func (p params) span(name string, d time.Duration) {
	if d != 0 {
		p.Set(name, d.String())
	}
}

func (p params) instant(name string, t time.Time) { p.text(name, instant(t)) }

func (p params) flag(name string, on bool) {
	if on {
		p.Set(name, "1")
	}
}

func (p params) page(r rollcall.PageRequest) {
	p.Set("limit", strconv.Itoa(r.Limit))
	if r.Number != 0 {
		p.Set("page", strconv.Itoa(r.Number))
	}
	p.text("cursor", r.Cursor)
}

func (p params) days(d rollcall.DayRange) {
	p.Set("from", d.From.String())
	p.Set("to", d.To.String())
}

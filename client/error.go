package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// problem is an error as the server writes it (RFC 9457).
type problem struct {
	Code      rollcall.Code
	Field     string
	Detail    string
	Cause     rollcall.Cause
	Reason    string
	Conflicts []struct {
		ID          rollcall.SessionID
		App, Device string
		LoginAt     time.Time `json:"login_at"`
		SeenAt      time.Time `json:"seen_at"`
	}
	Ended int // by a kick that was cut short
}

func (p *problem) domain() *rollcall.Error {
	e := &rollcall.Error{Code: p.Code, Field: p.Field, Detail: p.Detail, Cause: p.Cause, Reason: p.Reason}
	for _, c := range p.Conflicts {
		e.Conflicts = append(e.Conflicts, rollcall.Conflict{ID: c.ID, App: c.App, Device: c.Device, LoginAt: c.LoginAt, SeenAt: c.SeenAt})
	}
	return e
}

// cutShortError is the error of a kick that failed after it had ended some
// sessions.
type cutShortError struct {
	ended int
	err   *rollcall.Error
}

func (e *cutShortError) Error() string { return e.err.Error() }
func (e *cutShortError) Unwrap() error { return e.err }

// refused is the failure of an attempt that the server answered with an error.
func (c *Client) refused(res *http.Response, answer []byte) *failure {
	f := &failure{after: retryAfter(res.Header.Get("Retry-After"))}
	var p problem
	if json.Unmarshal(answer, &p) != nil || p.Code == "" {
		f.err = c.strange(res, nil)
	} else {
		f.err = p.domain()
	}
	switch res.StatusCode {
	case http.StatusTooManyRequests: // refused before anything was done
		f.again = true
	case http.StatusServiceUnavailable:
		f.again, f.maybe = p.Code != rollcall.CodeStorageFull, true
	case http.StatusBadGateway, http.StatusGatewayTimeout: // from a proxy
		f.again, f.maybe = true, true
	}
	if p.Ended > 0 { // another attempt would not tell how many those were
		f.err, f.again = &cutShortError{p.Ended, p.domain()}, false
	}
	return f
}

// strange is the error of an answer that is not Rollcall's.
func (c *Client) strange(res *http.Response, err error) *rollcall.Error {
	e := &rollcall.Error{Err: err, Detail: fmt.Sprintf("%s answered %s, and not as Rollcall does: is the address right?", c.base, res.Status)}
	switch res.StatusCode {
	case http.StatusUnauthorized:
		e.Code = rollcall.CodeUnauthenticated
	case http.StatusForbidden:
		e.Code = rollcall.CodeForbidden
	case http.StatusRequestEntityTooLarge:
		e.Code = rollcall.CodeTooLarge
	case http.StatusTooManyRequests:
		e.Code = rollcall.CodeRateLimited
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Code = rollcall.CodeUnavailable
	default: // 404 too: it says nothing of what was asked for
		e.Code = rollcall.CodeInternal
	}
	if to := res.Header.Get("Location"); to != "" && res.StatusCode/100 == 3 {
		e.Detail = fmt.Sprintf("%s redirects to %.200q: use that address", c.base, to)
	}
	return e
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), 24*60*60)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// notSent refuses a field that is the server's to fill in.
func notSent(field, value string) error {
	if value == "" {
		return nil
	}
	return rollcall.Invalid(field, "must be empty: the server takes the API key for it")
}

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/rollcall/rollcall"
)

// statusOf is the one table of codes, statuses and titles.
func statusOf(code rollcall.Code) (status int, title string) {
	switch code {
	case rollcall.CodeInvalidArgument:
		return http.StatusBadRequest, "The request breaks a rule"
	case rollcall.CodeUnauthenticated:
		return http.StatusUnauthorized, "No credential, or one that is not known"
	case rollcall.CodeSessionEnded:
		return http.StatusUnauthorized, "The session has ended"
	case rollcall.CodeForbidden:
		return http.StatusForbidden, "Not allowed"
	case rollcall.CodeUserBanned:
		return http.StatusForbidden, "The user is banned"
	case rollcall.CodeNotFound:
		return http.StatusNotFound, "No such thing"
	case codeMethod:
		return http.StatusMethodNotAllowed, "No such method here"
	case codeMediaType:
		return http.StatusUnsupportedMediaType, "The body has a form that is not taken"
	case rollcall.CodeConflict:
		return http.StatusConflict, "The request contradicts what is stored"
	case rollcall.CodeSessionLimit:
		return http.StatusConflict, "No more sessions are allowed"
	case rollcall.CodeTooLarge:
		return http.StatusRequestEntityTooLarge, "The request is too large"
	case rollcall.CodeRateLimited:
		return http.StatusTooManyRequests, "Too many requests"
	case rollcall.CodeUnavailable:
		return http.StatusServiceUnavailable, "Not available now"
	case rollcall.CodeStorageFull:
		return http.StatusServiceUnavailable, "There is no room to write"
	default:
		return http.StatusInternalServerError, "A fault of the server"
	}
}

// codeMethod marks a path that exists and a method that it does not have. It is
// an invalid_argument to the client; only the status differs.
const codeMethod rollcall.Code = "method"

// codeMediaType marks a body whose type or encoding the route does not take. It is
// an invalid_argument to the client too.
const codeMediaType rollcall.Code = "media_type"

// problem is an error as clients see it: RFC 9457, with the members of
// Rollcall.
type problem struct {
	Type   string         `json:"type" doc:"urn:rollcall:error: and the code" example:"urn:rollcall:error:not_found"`
	Title  string         `json:"title" doc:"what the code means"`
	Status int            `json:"status" doc:"the HTTP status"`
	Detail string         `json:"detail" doc:"what went wrong this time, for the person who has to act on it"`
	Code   rollcall.Code  `json:"code" doc:"stable; programs may rely on it" enum:"invalid_argument,unauthenticated,session_ended,forbidden,user_banned,not_found,conflict,session_limit,too_large,rate_limited,unavailable,storage_full,internal"`
	Field  string         `json:"field,omitempty" doc:"the field at fault"`
	Cause  rollcall.Cause `json:"cause,omitempty" doc:"how the session ended"`
	Reason string         `json:"reason,omitempty" doc:"the reason given for the end or the ban"`

	Conflicts []conflict `json:"conflicts,omitempty" nullable:"false" doc:"with session_limit: the sessions in the way of the login, newest first, up to 100"`
	Ended     int        `json:"ended,omitempty" doc:"how many sessions a kick had ended before it was cut short"`

	retryAfter time.Duration
}

// conflict is a session in the way of a login.
type conflict struct {
	ID      rollcall.SessionID `json:"id"`
	App     string             `json:"app"`
	Device  string             `json:"device"`
	LoginAt instant            `json:"login_at"`
	SeenAt  instant            `json:"seen_at"`
}

func conflictOf(c rollcall.Conflict) conflict {
	return conflict{ID: c.ID, App: c.App, Device: c.Device, LoginAt: instantOf(c.LoginAt), SeenAt: instantOf(c.SeenAt)}
}

func newProblem(e *rollcall.Error) *problem {
	p := &problem{Detail: e.Detail, Code: e.Code, Field: e.Field, Cause: e.Cause, Reason: e.Reason}
	if len(e.Conflicts) > 0 {
		p.Conflicts = each(e.Conflicts, conflictOf)
	}
	p.Status, p.Title = statusOf(e.Code)
	if p.Code == codeMethod || p.Code == codeMediaType {
		p.Code = rollcall.CodeInvalidArgument
	}
	p.Type = "urn:rollcall:error:" + string(p.Code)
	if p.Detail == "" {
		p.Detail = p.Title
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		p.retryAfter = time.Second
	}
	return p
}

func (p *problem) Error() string             { return p.Detail }
func (p *problem) GetStatus() int            { return p.Status }
func (p *problem) ContentType(string) string { return problemType }

// GetHeaders returns the headers that go with the problem.
func (p *problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="rollcall"`)
	}
	return h
}

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// retryError is an error that passes with time.
type retryError struct {
	err   *rollcall.Error
	after time.Duration
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// problemOf gives an error the form for clients. What is internal goes to the
// log, and the client learns only under which request it stands there.
func (s *Server) problemOf(ctx context.Context, err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var e *rollcall.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the request was cut short"}
	default:
		e = &rollcall.Error{Code: rollcall.CodeInternal, Err: err}
	}
	p = newProblem(e)
	if cut := (*cutShortError)(nil); errors.As(err, &cut) {
		p.Ended = cut.ended
	}
	if retry := (*retryError)(nil); errors.As(err, &retry) {
		p.retryAfter = retry.after
	}
	if p.Status < http.StatusInternalServerError {
		return p
	}
	logged := s.faults.failed(ctx, p.Code, err)
	if p.Status == http.StatusInternalServerError {
		p.Detail = "something went wrong on our side"
		if logged {
			p.Detail += "; the log has it as request " + callerOf(ctx).requestID
		}
	}
	return p
}

// fail answers with the problem that err is.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := s.problemOf(r.Context(), err)
	if c := callerOf(r.Context()); c.gate != nil && c.gate.Verifies {
		tellProxy(w.Header(), p, wantsProxy(r))
	}
	for k, v := range p.GetHeaders() {
		w.Header()[k] = v
	}
	s.write(w, r, p.Status, problemType, p)
}

// reply answers with a value as JSON.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, status int, v any) {
	s.write(w, r, status, jsonType, v)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, contentType string, v any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	if err == nil {
		_, err = w.Write(text.Bytes())
	}
	if err != nil { // the client has gone: there is nobody to tell
		s.opts.Logger.LogAttrs(r.Context(), slog.LevelDebug, "answer not written", slog.Any("error", err))
	}
}

func forbidden(format string, args ...any) error {
	return &rollcall.Error{Code: rollcall.CodeForbidden, Detail: fmt.Sprintf(format, args...)}
}

func unauthenticated(detail string) error {
	return &rollcall.Error{Code: rollcall.CodeUnauthenticated, Detail: detail}
}

func tooLarge(limit int64) error {
	return &rollcall.Error{
		Code: rollcall.CodeTooLarge, Field: "body",
		Detail: fmt.Sprintf("the body is too large: the limit is %d bytes", limit),
	}
}

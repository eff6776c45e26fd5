package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rollcall/rollcall"
)

type beatsRequest struct {
	Users []string `json:"users" nullable:"false" maxItems:"10000"`
}

// accepted is how many signs of life were taken.
type accepted struct {
	Accepted int `json:"accepted"`
}

const textType = "text/plain"

func (s *Server) registerBeats() {
	beats := op("POST /v1/beats", "beat", "Presence", "Signs of life of users, with or without a session")
	beats.Description = "JSON with up to 10,000 users, or text/plain with one id a line, streamed without limit; what came before an error is counted."
	beats.RequestBody = &huma.RequestBody{Required: true, Content: s.jsonContent(beatsRequest{})}
	beats.RequestBody.Content[textType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	beats.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: s.jsonContent(accepted{})}}
	s.registerPlain(beats, s.beats)
}

func (s *Server) beats(w http.ResponseWriter, r *http.Request) {
	if mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); mediaType == textType {
		s.streamBeats(w, r)
		return
	}
	var in beatsRequest
	if err := decode(w, r, maxBatchBody, &in); err != nil {
		s.fail(w, r, err)
		return
	}
	if in.Users == nil {
		s.fail(w, r, rollcall.Invalid("users", "is required"))
		return
	}
	if err := s.view(r.Context()).Beat(r.Context(), in.Users...); err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, http.StatusOK, accepted{len(in.Users)})
}

const (
	beatBatch    = 2_000
	maxBeatLine  = 4 << 10 // far more than an id may have, so that the error can say so
	beatDeadline = 30 * time.Second
)

// streamBeats takes one id a line. Memory is bounded by a batch; a client that
// goes on sending may go on for ever.
func (s *Server) streamBeats(w http.ResponseWriter, r *http.Request) {
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, maxBeatLine), maxBeatLine)
	conn := http.NewResponseController(w)
	users := make([]string, 0, beatBatch)
	total := 0
	for more := true; more; {
		// Not every writer has a deadline to set; then the server's own holds.
		_ = conn.SetReadDeadline(time.Now().Add(beatDeadline))
		users, more = nextBatch(lines, users[:0])
		if err := s.view(r.Context()).Beat(r.Context(), users...); err != nil {
			s.fail(w, r, shifted(err, total))
			return
		}
		total += len(users)
	}
	if err := lines.Err(); err != nil {
		s.fail(w, r, streamError(err, total))
		return
	}
	s.reply(w, r, http.StatusOK, accepted{total})
}

// nextBatch reads a batch of ids, passing over empty lines; more is false at
// the end of the stream.
func nextBatch(lines *bufio.Scanner, users []string) (_ []string, more bool) {
	for len(users) < beatBatch {
		if !lines.Scan() {
			return users, false
		}
		if line := lines.Text(); line != "" {
			users = append(users, line)
		}
	}
	return users, true
}

// shifted counts the user at fault from the beginning of the stream.
func shifted(err error, before int) error {
	var e *rollcall.Error
	var i int
	if !errors.As(err, &e) {
		return err
	}
	if n, _ := fmt.Sscanf(e.Field, "users[%d]", &i); n == 0 {
		return err
	}
	moved := *e
	moved.Field = fmt.Sprintf("users[%d]", before+i)
	moved.Detail = fmt.Sprintf("%s; the first %d users were accepted", e.Detail, before)
	return &moved
}

func streamError(err error, total int) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return rollcall.Invalid(fmt.Sprintf("users[%d]", total), "is longer than %d bytes, the limit is %d; the first %d users were accepted",
			maxBeatLine, rollcall.MaxUserLen, total)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return rollcall.Invalid("body", "ended early; the first %d users were accepted", total)
	}
	return rollcall.Invalid("body", "could not be read to its end; the first %d users were accepted", total)
}

package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

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
	beats.Description = "JSON with up to 10,000 users, or text/plain with one id a line, streamed without limit as long as some of it comes every 30 s. A line counts when it arrives; the lines before a bad one count, and the answer names the bad line."
	beats.RequestBody = s.jsonBody(&beats, beatsRequest{})
	beats.RequestBody.Required = true
	beats.RequestBody.Content[textType] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	beats.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: s.jsonContent(accepted{})}}
	s.registerPlain(beats, s.beats)
}

func (s *Server) beats(w http.ResponseWriter, r *http.Request) {
	if streams(r) {
		s.streamBeats(w, r)
		return
	}
	var in beatsRequest
	if err := decode(callerOf(r.Context()).body, &in); err != nil {
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
	beatChunk   = 64 << 10
	maxBeatLine = 4 << 10 // far more than an id may have, so that the error can say so
)

// streamBeats takes one id a line and counts it when it arrives. Memory is
// bounded by a chunk; a client that goes on sending may go on for ever.
func (s *Server) streamBeats(w http.ResponseWriter, r *http.Request) {
	if body, ok := r.Body.(*incoming); ok {
		body.stream = true
	}
	in := beatStream{chunk: make([]byte, beatChunk)}
	ctx := r.Context()
	beat := func(users []string) error { return s.view(ctx).Beat(ctx, users...) }
	if err := in.run(r.Body, beat); err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, r, http.StatusOK, accepted{in.accepted})
}

// beatStream cuts a stream into lines. What lies in the chunk behind the last
// line end is the beginning of a line.
type beatStream struct {
	chunk    []byte
	held     int      // bytes in the chunk
	lines    int      // taken so far, empty ones included
	accepted int      // users
	users    []string // of the batch under way
	at       []int    // the line of each
}

func (b *beatStream) run(body io.Reader, beat func([]string) error) error {
	for {
		n, err := body.Read(b.chunk[b.held:])
		b.held += n
		ended := errors.Is(err, io.EOF)
		tooLong := b.cut(ended)
		if err := b.flush(beat); err != nil {
			return err
		}
		switch {
		case tooLong:
			return rollcall.Invalid(fmt.Sprintf("users[%d]", b.accepted), "line %d is longer than %d bytes, the limit is %d; the first %d users were accepted",
				b.lines+1, maxBeatLine, rollcall.MaxUserLen, b.accepted)
		case ended:
			return nil
		case err != nil:
			return b.broken(err)
		}
	}
}

// cut takes the whole lines out of the chunk, at the end of the stream also the
// last one without a line end. It reports whether what follows is too long for a
// line.
func (b *beatStream) cut(ended bool) (tooLong bool) {
	rest := b.chunk[:b.held]
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		if end > maxBeatLine || (end < 0 && len(rest) > maxBeatLine) {
			tooLong = true
			break
		}
		line, next := rest, rest[len(rest):]
		if end >= 0 {
			line, next = rest[:end], rest[end+1:]
		} else if !ended {
			break
		}
		b.lines++
		if line = bytes.TrimSuffix(line, []byte{'\r'}); len(line) > 0 {
			b.users, b.at = append(b.users, string(line)), append(b.at, b.lines)
		}
		rest = next
	}
	b.held = copy(b.chunk, rest)
	return tooLong
}

// flush beats for the users of the batch, also for those before a bad one, and
// then says which line is bad.
func (b *beatStream) flush(beat func([]string) error) error {
	for len(b.users) > 0 {
		batch := b.users[:min(len(b.users), rollcall.MaxBeatUsers)]
		if err := beat(batch); err != nil {
			return b.refused(err, batch, beat)
		}
		b.accepted += len(batch)
		b.users, b.at = b.users[len(batch):], b.at[len(batch):]
	}
	b.users, b.at = b.users[:0], b.at[:0]
	return nil
}

// refused tells of a batch that failed. Of one with a bad line, what stands
// before that counts.
func (b *beatStream) refused(err error, batch []string, beat func([]string) error) error {
	var e *rollcall.Error
	var bad int
	if !errors.As(err, &e) {
		return err
	}
	told := *e
	if n, _ := fmt.Sscanf(e.Field, "users[%d]", &bad); n == 1 && bad < len(batch) {
		if bad > 0 {
			if err := beat(batch[:bad]); err != nil {
				return b.refused(err, nil, nil)
			}
		}
		b.accepted += bad
		told.Field = fmt.Sprintf("users[%d]", b.accepted)
		told.Detail = fmt.Sprintf("line %d: %s", b.at[bad], e.Detail)
	}
	told.Detail = fmt.Sprintf("%s; the first %d users were accepted", told.Detail, b.accepted)
	return &told
}

func (b *beatStream) broken(err error) error {
	why := "could not be read to its end"
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		why = fmt.Sprintf("sent nothing for %v", bodyReadTimeout)
	} else if errors.Is(err, io.ErrUnexpectedEOF) {
		why = "ended early"
	}
	return rollcall.Invalid("body", "%s; the first %d users were accepted", why, b.accepted)
}

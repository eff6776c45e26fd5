package respapi

import (
	"errors"
	"strconv"
	"strings"

	"github.com/rollcall/rollcall"
)

// reply writes answers, in the version of the protocol that the client chose. The bytes
// gather in out until the connection sends them.
type reply struct {
	out  []byte
	resp int // 2 or 3
}

func (w *reply) line(kind byte, n int64) {
	w.out = append(w.out, kind)
	w.out = strconv.AppendInt(w.out, n, 10)
	w.out = append(w.out, '\r', '\n')
}

func (w *reply) ok() { w.out = append(w.out, "+OK\r\n"...) }

func (w *reply) simple(text string) {
	w.out = append(w.out, '+')
	w.out = append(w.out, text...)
	w.out = append(w.out, '\r', '\n')
}

func (w *reply) int(n int) {
	if uint(n) < 10 { // most answers to a beat
		w.out = append(w.out, ':', '0'+byte(n), '\r', '\n')
		return
	}
	w.line(':', int64(n))
}

func (w *reply) bulk(text string) {
	w.line('$', int64(len(text)))
	w.out = append(w.out, text...)
	w.out = append(w.out, '\r', '\n')
}

func (w *reply) bulkBytes(text []byte) {
	w.line('$', int64(len(text)))
	w.out = append(w.out, text...)
	w.out = append(w.out, '\r', '\n')
}

// null says that there is no value.
func (w *reply) null() {
	if w.resp == 3 {
		w.out = append(w.out, "_\r\n"...)
		return
	}
	w.out = append(w.out, "$-1\r\n"...)
}

func (w *reply) array(n int) { w.line('*', int64(n)) }

// mapping begins n pairs.
func (w *reply) mapping(n int) {
	if w.resp == 3 {
		w.line('%', int64(n))
		return
	}
	w.line('*', 2*int64(n))
}

// fail writes an error: its code, then what is wrong.
func (w *reply) fail(err error) {
	code, detail := explain(err)
	w.refuse("ERR", string(code)+" "+detail)
}

// refuse writes an error under a word that client libraries know, such as WRONGTYPE.
func (w *reply) refuse(word, text string) {
	w.out = append(w.out, '-')
	w.out = append(w.out, word...)
	w.out = append(w.out, ' ')
	w.out = append(w.out, oneLine(text)...)
	w.out = append(w.out, '\r', '\n')
}

// explain words an error for the client, as over HTTP. Internals stay inside.
func explain(err error) (rollcall.Code, string) {
	code := rollcall.CodeOf(err)
	var e *rollcall.Error
	if !errors.As(err, &e) || code == rollcall.CodeInternal {
		return rollcall.CodeInternal, "something went wrong here: the log of the server says what"
	}
	detail := e.Detail
	if e.Field != "" {
		detail = strings.TrimSpace(e.Field + " " + detail)
	}
	if e.Cause != "" {
		detail = strings.TrimSpace(string(e.Cause) + " " + detail)
	}
	if e.Reason != "" {
		detail += " (" + e.Reason + ")"
	}
	return code, detail
}

// maxErrorText keeps an error that quotes what a client sent within bounds, in bytes.
const maxErrorText = 512

// oneLine keeps a text within one line of the protocol.
func oneLine(text string) string {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	if strings.ContainsAny(text, "\r\n") {
		text = strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
	}
	return text
}

package respapi

import (
	"errors"
	"math"
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

func (w *reply) bool(yes bool) {
	if yes {
		w.int(1)
		return
	}
	w.int(0)
}

// set begins a set of n members, whose order says nothing.
func (w *reply) set(n int) {
	if w.resp == 3 {
		w.line('~', int64(n))
		return
	}
	w.line('*', int64(n))
}

// score writes a score: a number of its own in version 3, its text before.
func (w *reply) score(v float64) {
	var text [32]byte
	digits := appendScore(text[:0], v)
	if w.resp == 3 {
		w.out = append(w.out, ',')
		w.out = append(w.out, digits...)
		w.out = append(w.out, '\r', '\n')
		return
	}
	w.bulkBytes(digits)
}

// appendScore writes a score as Redis does: without an exponent where that can be.
func appendScore(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 1):
		return append(b, "inf"...)
	case math.IsInf(v, -1):
		return append(b, "-inf"...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<62:
		return strconv.AppendInt(b, int64(v), 10)
	default:
		return strconv.AppendFloat(b, v, 'g', 17, 64)
	}
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

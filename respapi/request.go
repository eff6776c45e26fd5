package respapi

import (
	"bytes"
	"errors"
	"fmt"
)

// bounds limit what a command may hold.
type bounds struct {
	args    int // arguments, the verb among them
	text    int // bytes of one argument
	command int // bytes of the whole command as it is sent
}

var (
	// strangerBounds hold until a client has said who it is: enough for HELLO with all
	// that goes with it.
	strangerBounds = bounds{args: 16, text: 512, command: 4 << 10}
	// callerBounds leave room for BEAT with MaxBeatUsers users, and for as many pairs of
	// ZADD.
	callerBounds = bounds{args: 20_010, text: 64 << 10, command: 8 << 20}
)

// maxInline is how long a command may be that is typed as a line.
const maxInline = 4 << 10

// errHTTP ends a connection whose client speaks HTTP: a browser that was made to
// send a request here must not have the rest of it taken for commands.
var errHTTP = errors.New("this is no HTTP server")

// protocolError is a fault in the form of a command. What follows cannot be read.
type protocolError struct{ text string }

func (e *protocolError) Error() string { return e.text }

func malformed(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// span is an argument's place, from the beginning of its command.
type span struct{ from, to int }

// parser cuts commands out of a buffer that grows at its end. It keeps its place within a
// command that has not come whole, so that no byte is looked at twice, however
// small the pieces are in which it comes.
type parser struct {
	limits bounds
	spans  []span
	args   [][]byte
	place  int  // how far the command has been read
	left   int  // arguments that are missing
	begun  bool // the number of arguments is known
}

func (p *parser) reset() {
	p.place, p.left, p.begun = 0, 0, false
	p.spans = p.spans[:0]
}

// usualArgs is how many arguments a command has as a matter of course.
const usualArgs = 1024

// shrink gives up the lists of a long command. It is called between two commands.
func (p *parser) shrink() {
	if cap(p.spans) > usualArgs {
		p.spans = nil
	}
	if cap(p.args) > usualArgs {
		p.args = nil
	}
}

// next reads the command that buf begins with. used is 0 if it has not come whole; else
// it is its length, and args are its arguments, in buf, until the next call. An empty
// command has none.
func (p *parser) next(buf []byte) (args [][]byte, used int, err error) {
	if len(buf) == 0 {
		return nil, 0, nil
	}
	if buf[0] != '*' {
		return p.inline(buf)
	}
	if !p.begun {
		n, end, err := number(buf, 1, "multibulk length")
		if err != nil || end == 0 {
			return nil, 0, err
		}
		if n > p.limits.args {
			return nil, 0, malformed("too many arguments: %d, the limit is %d", n, p.limits.args)
		}
		p.begun, p.left, p.place = true, max(n, 0), end
	}
	for p.left > 0 {
		whole, err := p.argument(buf)
		if err != nil || !whole {
			return nil, 0, err
		}
	}
	p.args = p.args[:0]
	for _, s := range p.spans {
		p.args = append(p.args, buf[s.from:s.to])
	}
	used = p.place
	p.reset()
	return p.args, used, nil
}

// argument reads one bulk string; false if it has not come whole.
func (p *parser) argument(buf []byte) (bool, error) {
	if p.place >= len(buf) {
		return false, p.tooLong(len(buf))
	}
	if buf[p.place] != '$' {
		return false, malformed("expected '$', got '%c'", printable(buf[p.place]))
	}
	n, from, err := number(buf, p.place+1, "bulk length")
	switch {
	case err != nil || from == 0:
		return false, err
	case n < 0:
		return false, malformed("invalid bulk length")
	case n > p.limits.text:
		return false, malformed("an argument of %d bytes is too long, the limit is %d", n, p.limits.text)
	}
	end := from + n + 2
	if err := p.tooLong(end); err != nil || len(buf) < end {
		return false, err
	}
	if buf[end-2] != '\r' || buf[end-1] != '\n' {
		return false, malformed("an argument does not end where its length says")
	}
	p.spans = append(p.spans, span{from, end - 2})
	p.place, p.left = end, p.left-1
	return true, nil
}

func (p *parser) tooLong(end int) error {
	if end > p.limits.command {
		return malformed("a command is longer than %d bytes", p.limits.command)
	}
	return nil
}

// number reads a number and the line end behind it; end is 0 if that has not come.
func number(buf []byte, from int, what string) (n, end int, err error) {
	const most = 10 // digits, and the sign
	i, negative := from, false
	if i < len(buf) && buf[i] == '-' {
		negative = true
		i++
	}
	digits := i
	for ; i < len(buf) && buf[i] != '\r'; i++ {
		c := buf[i] - '0'
		if c > 9 || i-from >= most {
			return 0, 0, malformed("invalid %s", what)
		}
		n = n*10 + int(c)
	}
	if i+1 >= len(buf) {
		return 0, 0, nil
	}
	if i == digits || buf[i+1] != '\n' {
		return 0, 0, malformed("invalid %s", what)
	}
	if negative {
		n = -n
	}
	return n, i + 2, nil
}

// inline reads a command that is typed as a line, as with telnet.
func (p *parser) inline(buf []byte) ([][]byte, int, error) {
	if !beginsLine(buf[0]) {
		return nil, 0, malformed("this is no command") // as the first byte of TLS
	}
	end := bytes.IndexByte(buf[:min(len(buf), maxInline)], '\n')
	if end < 0 {
		if len(buf) >= maxInline {
			return nil, 0, malformed("too big inline request")
		}
		return nil, 0, nil
	}
	p.args = p.args[:0]
	for line := buf[:end]; ; {
		line = bytes.TrimLeft(line, " \t\r")
		if len(line) == 0 {
			break
		}
		n := bytes.IndexAny(line, " \t\r")
		if n < 0 {
			n = len(line)
		}
		p.args = append(p.args, line[:n])
		line = line[n:]
	}
	if isHTTP(p.args) {
		return nil, 0, errHTTP
	}
	if len(p.args) > p.limits.args {
		return nil, 0, malformed("too many arguments: %d, the limit is %d", len(p.args), p.limits.args)
	}
	return p.args, end + 1, nil
}

// beginsLine reports whether a byte may be the first of a command that is typed.
func beginsLine(c byte) bool { return c >= ' ' || c == '\r' || c == '\n' || c == '\t' }

// isHTTP reports whether a line begins a request of HTTP, or is a header of one.
func isHTTP(words [][]byte) bool {
	if len(words) == 0 {
		return false
	}
	if last := words[len(words)-1]; len(words) > 1 && bytes.HasPrefix(last, []byte("HTTP/")) {
		return true
	}
	return isHTTPWord(words[0])
}

// isHTTPWord reports whether a verb is one of HTTP, or the name of a header. It is
// asked of commands in any form, as a client may be made to send them so.
func isHTTPWord(verb []byte) bool {
	if len(verb) > 1 && verb[len(verb)-1] == ':' {
		return true
	}
	for _, method := range [...]string{"POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"} {
		if len(verb) == len(method) && bytes.EqualFold(verb, []byte(method)) {
			return true
		}
	}
	return false
}

// printable keeps what cannot be shown out of an answer.
func printable(c byte) rune {
	if c < ' ' || c >= 0x7f || c == '\'' {
		return '?'
	}
	return rune(c)
}

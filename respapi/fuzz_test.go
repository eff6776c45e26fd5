package respapi

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// written keeps what a connection sends.
type written struct {
	wire
	bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) { return w.Buffer.Write(b) }
func (w *written) Read(b []byte) (int, error)  { return w.wire.Read(b) }

// FuzzAnswers holds the commands to this: whatever comes, what goes out is whole answers, and
// one for each command as far as the connection lasts.
func FuzzAnswers(f *testing.F) {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(f, err)
	f.Cleanup(func() { _ = engine.Close() })
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(f, err)
	f.Cleanup(func() { _ = roll.Close() })
	dialect, err := ParseDialect([]string{"u = presence ms", "s = sessions many", "f:{user} = friends", "z:{user} = friends zset", "l_{month}_{kind}_{user} = attendance from-1", "m:{minute} = minute-set"})
	require.NoError(f, err)
	l, err := Listen(roll, "127.0.0.1:0", Options{NoKeys: true, Dialect: dialect})
	require.NoError(f, err)
	f.Cleanup(func() { _ = l.Close() })

	f.Add("BEAT a b\r\nSEEN a\r\nONLINE.LIST 5m 3\r\nHELLO 3\r\nZRANGE u 0 -1 WITHSCORES\r\n")
	f.Add("MULTI\r\nZUNIONSTORE t 1 u\r\nZREMRANGEBYSCORE t -inf (5\r\nZINTERSTORE o 2 t f:1 WEIGHTS 1 0\r\nZRANGE o 0 -1\r\nDEL t o\r\nEXEC\r\n")
	f.Add("SETBIT l_2017-10_o_1 3 0\r\nBITCOUNT l_2017-10_o_1 0 -1 BIT\r\nBITOP OR d l_2017-10_o_1\r\nGET d\r\nKEYS *\r\nSCAN 0\r\n")
	f.Add("SADD f:1 a b\r\nZADD z:1 5 a\r\nZREVRANGEBYSCORE z:1 9 (1 LIMIT 0 -1\r\nSUNION m:05 f:1\r\nTYPE m:1205\r\nEXPIRE u 5\r\nCOMMAND\r\nINFO\r\n")
	f.Fuzz(func(t *testing.T, input string) {
		if len(input) > usualBuffer {
			return
		}
		out := &written{}
		c := newConn(l, out)
		c.buf = []byte(input)
		c.to = len(c.buf)
		lasts := c.work()

		answers := 0
		in := bufio.NewReader(&out.Buffer)
		for {
			if _, err := in.Peek(1); err != nil {
				break
			}
			require.NoError(t, skipAnswer(in), "not an answer in what went out for %q", input)
			answers++
		}
		if lasts {
			require.Equal(t, commandsIn(input), answers)
		}
	})
}

// commandsIn counts the commands of an input that are not empty.
func commandsIn(input string) int {
	p := parser{limits: callerBounds}
	n := 0
	for from := 0; ; {
		args, used, err := p.next([]byte(input[from:]))
		if err != nil || used == 0 {
			return n
		}
		if from += used; len(args) > 0 {
			n++
		}
	}
}

// skipAnswer reads one answer.
func skipAnswer(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || text == "" || strings.Contains(text, "\r") {
		return io.ErrUnexpectedEOF
	}
	n, bad := strconv.Atoi(text[1:])
	switch text[0] {
	case '+', '-', ',', '_':
		return nil
	case ':':
		return bad
	case '$':
		if bad != nil || n < 0 {
			return bad
		}
		_, err := io.CopyN(io.Discard, in, int64(n+2))
		return err
	case '%':
		n *= 2
	case '*', '~':
	default:
		return io.ErrUnexpectedEOF
	}
	for range n {
		if err := skipAnswer(in); err != nil {
			return err
		}
	}
	return bad
}

// FuzzGlobs compares the matching of KEYS with one that tries everything.
func FuzzGlobs(f *testing.F) {
	f.Add("a*b?[a-c]", "axxbyc")
	f.Add(`\*[^x]*`, "*ab")
	f.Add("loginLog_*", "loginLog_2017-10_office_1001")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 12 {
			return
		}
		require.Equal(t, slowGlob(pattern, text), glob(pattern, text), "%q, %q", pattern, text)
	})
}

func slowGlob(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] == '*' {
		return slowGlob(pattern[1:], text) || text != "" && slowGlob(pattern, text[1:])
	}
	if text == "" {
		return false
	}
	width, ok := globOne(pattern, text[0])
	return ok && slowGlob(pattern[width:], text[1:])
}

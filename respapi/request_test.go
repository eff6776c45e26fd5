package respapi

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readAll cuts all commands out of input that comes in pieces of some size.
func readAll(input []byte, piece int) (out [][]string, err error) {
	p := parser{limits: callerBounds}
	from := 0
	for to := 0; to < len(input); {
		to = min(to+piece, len(input))
		for {
			args, used, err := p.next(input[from:to])
			if err != nil {
				return out, err
			}
			if used == 0 {
				break
			}
			from += used
			words := []string{}
			for _, arg := range args {
				words = append(words, string(arg))
			}
			out = append(out, words)
		}
	}
	return out, nil
}

func TestCommandsAreReadWhateverThePiecesTheyComeIn(t *testing.T) {
	input := []byte("*2\r\n$4\r\nPING\r\n$0\r\n\r\nPING  a\tb\r\n\r\n*0\r\n*-1\r\n*1\r\n$2\r\n\r\n\r\nx\n")
	want := [][]string{{"PING", ""}, {"PING", "a", "b"}, {}, {}, {}, {"\r\n"}, {"x"}}
	for piece := 1; piece <= len(input); piece++ {
		got, err := readAll(input, piece)
		require.NoError(t, err)
		require.Equal(t, want, got, "pieces of %d", piece)
	}
}

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	for input, why := range map[string]string{
		"*30000\r\n":                       "too many arguments",
		"*99999999999\r\n":                 "invalid multibulk length",
		"*x\r\n":                           "invalid multibulk length",
		"*1\r\n:1\r\n":                     "expected '$'",
		"*1\r\n$-1\r\n":                    "invalid bulk length",
		"*1\r\n$70000\r\n":                 "too long",
		"*1\r\n$1\r\nab\r\n":               "does not end",
		"\x16\x03\x01":                     "no command",
		"\x16\x03\n":                       "no command",
		strings.Repeat("x", 5000):          "too big inline",
		"*1\r\n$\r\n":                      "invalid bulk length",
		"GET / HTTP/1.1\r\n":               "HTTP",
		"*20001\r\n" + largeArguments(200): "longer than",
	} {
		_, err := readAll([]byte(input), 1<<20)
		require.ErrorContains(t, err, why, "%.40q", input)
	}
}

func largeArguments(n int) string {
	return strings.Repeat("$65536\r\n"+strings.Repeat("x", 65536)+"\r\n", n)
}

func TestAnAnnouncedLengthMakesNoRoom(t *testing.T) {
	p := parser{limits: callerBounds}
	for _, head := range []string{"*20010\r\n", "*20010\r\n$65536\r\n"} {
		p.reset()
		_, used, err := p.next([]byte(head))
		require.NoError(t, err)
		require.Zero(t, used)
		require.LessOrEqual(t, cap(p.spans), 8)
	}
}

// FuzzRequests holds the parser to this: it reads the same commands in whatever pieces they
// come, and what it reads fits into what came.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("*2\r\n$4\r\nBEAT\r\n$1\r\na\r\nPING\r\n"), uint8(3))
	f.Add([]byte("*1\r\n$-1\r\n"), uint8(1))
	f.Add([]byte("*3\r\n$4\r\nZADD\r\n"), uint8(7))
	f.Add([]byte("\x0000000000000\n"), uint8(11))
	f.Fuzz(func(t *testing.T, input []byte, piece uint8) {
		whole, wholeErr := readAll(input, len(input)+1)
		parts, partsErr := readAll(input, int(piece)+1)
		require.Equal(t, whole, parts)
		require.Equal(t, wholeErr == nil, partsErr == nil)
		size := 0
		for _, words := range whole {
			for _, word := range words {
				size += len(word)
				require.True(t, bytes.Contains(input, []byte(word)))
			}
		}
		require.LessOrEqual(t, size, len(input))
	})
}

func TestAConnectionKeepsNoListsOfALongCommand(t *testing.T) {
	p := parser{limits: callerBounds}
	long := "*20000\r\n" + strings.Repeat("$1\r\nx\r\n", 20_000)
	args, used, err := p.next([]byte(long))
	require.NoError(t, err)
	require.Len(t, args, 20_000)
	require.Equal(t, len(long), used)
	p.shrink()
	require.LessOrEqual(t, cap(p.spans), usualArgs)
	require.LessOrEqual(t, cap(p.args), usualArgs)
}

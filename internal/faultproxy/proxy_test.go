package faultproxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall/internal/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends back every line with its name before it.
func echo(t *testing.T, name string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintf(c, "%s %s\n", name, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *faultproxy.Proxy) *client {
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) say(text string) {
	_, err := fmt.Fprintln(c, text)
	require.NoError(c.t, err)
}

func (c *client) hear(want string) {
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	line, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	require.Equal(c.t, want+"\n", line)
}

func (c *client) nothing() {
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := c.in.ReadByte()
	require.ErrorIs(c.t, err, os.ErrDeadlineExceeded)
}

// ended requires that the connection was closed.
func (c *client) ended() {
	require.NoError(c.t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.ReadAll(c)
	require.NotErrorIs(c.t, err, os.ErrDeadlineExceeded)
}

func TestProxy(t *testing.T) {
	p, err := faultproxy.Listen(echo(t, "one"))
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	c := dial(t, p)
	c.say("a")
	c.hear("one a")

	p.BlackHole()
	c.say("b")
	c.nothing()
	late := dial(t, p)
	late.say("c")
	late.nothing()
	p.Heal()
	c.hear("one b")
	late.hear("one c")

	p.Cut()
	for _, gone := range []*client{c, late, dial(t, p)} {
		gone.ended()
	}
	p.SetTarget(echo(t, "two"))
	p.Heal()
	c = dial(t, p)
	c.say("d")
	c.hear("two d")
}

func TestCloseEndsWhatIsHeld(t *testing.T) {
	p, err := faultproxy.Listen(echo(t, "one"))
	require.NoError(t, err)
	c := dial(t, p)
	c.say("a")
	c.hear("one a")
	p.BlackHole()
	c.say("b")
	dial(t, p).say("c")
	require.NoError(t, p.Close())
}

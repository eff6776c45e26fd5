package respapi_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
	"github.com/rollcall/rollcall/respapi"
)

// patience is how long a test waits for what has to come.
const patience = 60 * time.Second

// clock is the server's clock, which a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// noon is when tests begin, in the middle of a month, and at the beginning of a minute.
var noon = time.Date(2017, 10, 20, 12, 0, 0, 0, time.UTC)

// world is a service with a listener before it.
type world struct {
	*testing.T
	clock *clock
	roll  *rollcall.Roll
	door  *respapi.Listener
}

// onBothEngines runs a test on the embedded engine and on Redis, at noon.
func onBothEngines(t *testing.T, o respapi.Options, test func(w *world)) {
	t.Run("local", func(t *testing.T) { test(newWorld(t, openLocal(t), o)) })
	t.Run("redis", func(t *testing.T) {
		if testing.Short() {
			t.Skip("needs redis-server")
		}
		engine, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t, redistest.Options{}).URL(), Partitions: 4})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, engine.Close()) })
		test(newWorld(t, engine, o))
	})
}

func openLocal(t testing.TB) rollcall.Engine {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

func newWorld(t *testing.T, engine rollcall.Engine, o respapi.Options) *world {
	t.Helper()
	w := &world{T: t, clock: &clock{now: noon}}
	var err error
	w.roll, err = rollcall.New(engine, rollcall.Options{Clock: w.clock})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.roll.Close()) })
	w.door, err = respapi.Listen(w.roll, "127.0.0.1:0", o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.door.Close()) })
	return w
}

// key makes an API key.
func (w *world) key(role rollcall.Role) string {
	w.Helper()
	_, text, err := w.roll.CreateKey(w.Context(), rollcall.NewKey{Role: role})
	require.NoError(w, err)
	return text
}

// redisClient speaks RESP in the plainest way.
type redisClient struct {
	testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func (w *world) dial() *redisClient {
	w.Helper()
	return dial(w.T, w.door.Addr().String())
}

func dial(t testing.TB, address string) *redisClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return &redisClient{t, conn, bufio.NewReader(conn)}
}

// as returns a client that has said who it is.
func (w *world) as(role rollcall.Role) *redisClient {
	w.Helper()
	c := w.dial()
	require.Equal(w, "OK", c.do("AUTH", "any", w.key(role)))
	return c
}

func request(words ...any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		text := fmt.Sprint(word)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b.String()
}

// send sends bytes as they are.
func (c *redisClient) send(text string) {
	c.Helper()
	_, err := io.WriteString(c.conn, text)
	require.NoError(c, err)
}

// do sends a command and returns its answer.
func (c *redisClient) do(words ...any) any {
	c.Helper()
	c.send(request(words...))
	return c.read()
}

// line sends a command whose words stand apart by spaces.
func (c *redisClient) line(command string) any {
	c.Helper()
	var all []any
	for _, word := range strings.Fields(command) {
		all = append(all, word)
	}
	return c.do(all...)
}

// failure is an error that the server answered with.
type failure string

func (c *redisClient) read() any {
	c.Helper()
	v, err := readReply(c.in)
	require.NoError(c, err)
	return v
}

// readReply reads one answer: a string, an int, a float64, nil, a list or a failure.
func readReply(in *bufio.Reader) (any, error) {
	text, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text = strings.TrimSuffix(text, "\r\n")
	kind, text := text[0], text[1:]
	switch kind {
	case '+':
		return text, nil
	case '-':
		return failure(text), nil
	case ':':
		return strconv.Atoi(text)
	case ',':
		return strconv.ParseFloat(text, 64)
	case '_':
		return nil, nil //nolint:nilnil // null is an answer
	case '$':
		return readBulk(in, text)
	case '*', '~', '%':
		return readList(in, kind, text)
	default:
		return nil, errors.New("not an answer: " + text)
	}
}

func readBulk(in *bufio.Reader, length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	data := make([]byte, n+2)
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, err
	}
	return string(data[:n]), nil
}

func readList(in *bufio.Reader, kind byte, length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	if kind == '%' {
		n *= 2
	}
	out := make([]any, n)
	for i := range out {
		if out[i], err = readReply(in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ended reports that the server has closed the connection.
func (c *redisClient) ended() bool {
	_, err := c.in.ReadByte()
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

func list(items ...any) []any { return append([]any{}, items...) }

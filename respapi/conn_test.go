package respapi

import (
	"bytes"
	"io"
	"maps"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
)

// TestAStrangersBuffersStaySmall has one send a megabyte of commands at once.
func TestAStrangersBuffersStaySmall(t *testing.T) {
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	l, err := Listen(roll, "127.0.0.1:0", Options{})
	require.NoError(t, err)
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)

	ping := []byte("PING " + string(bytes.Repeat([]byte("x"), 400)) + "\r\n")
	sent := make(chan error, 1)
	go func() {
		_, err := client.Write(bytes.Repeat(ping, 2500))
		sent <- err
	}()
	_, err = io.CopyN(io.Discard, client, 2500*int64(len("$400\r\n\r\n")+400))
	require.NoError(t, err)
	require.NoError(t, <-sent)
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.open))
	l.mu.Unlock()
	require.Len(t, all, 1)
	c := all[0]
	require.NoError(t, l.Close())
	require.LessOrEqual(t, len(c.buf), 2*strangerBuffer)
	require.LessOrEqual(t, cap(c.out), 4*strangerBuffer)
	require.NoError(t, client.Close())
	require.NoError(t, roll.Close())
	require.NoError(t, engine.Close())
}

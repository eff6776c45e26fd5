package testport

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAPortThatAnotherProcessHasIsNotTouched holds that a server can be started again on
// its port at any moment, whatever others reserve meanwhile.
func TestAPortThatAnotherProcessHasIsNotTouched(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: a port of another process: ports can only be kept on Linux")
	}
	port, err := Reserve()
	require.NoError(t, err)
	kept.mu.Lock()
	lock := kept.locks[port]
	delete(kept.locks, port) // as in another process, which holds the lock
	kept.mu.Unlock()
	defer giveBack(lock)

	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = reserve(func() int { return port })
			}
		}
	}()
	for range 500 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	close(stop)
	<-done
	_, err = reserve(func() int { return port })
	require.ErrorIs(t, err, errNone)
}

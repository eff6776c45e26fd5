package testport_test

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/internal/testport"
)

func TestAPortIsReservedOnceAndCanBeListenedAtAgainAndAgain(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := testport.Reserve()
		require.NoError(t, err)
		require.False(t, seen[port], "port %d was reserved before", port)
		seen[port] = true
		require.Less(t, port+testport.BusOffset, 32_768, "the system chooses from higher ports")
		for range 2 {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
	}
}

package sqltest_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rollcall/rollcall/internal/sqltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPostgres(t *testing.T) { outlives(t, sqltest.StartPostgres(t)) }
func TestMariaDB(t *testing.T)  { outlives(t, sqltest.StartMariaDB(t)) }

// outlives checks that what was committed outlives every way to go down, and
// that a server that is down does not answer.
func outlives(t *testing.T, s *sqltest.Server) {
	name, err := s.Create(t.Context())
	require.NoError(t, err)
	const insert = "INSERT INTO t VALUES (1)"
	require.NoError(t, s.Exec(t.Context(), name, "CREATE TABLE t (n INT PRIMARY KEY)", insert))
	for n, down := range []func() error{s.Stop, s.Kill, s.Kill} {
		require.NoError(t, down())
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		if err == nil {
			conn.Close()
		}
		require.Error(t, err, "it answers after the end %d", n)
		require.NoError(t, s.Restart(t.Context()))
		require.Error(t, s.Exec(t.Context(), name, insert), "the row is gone after the end %d", n)
		require.NoError(t, s.Exec(t.Context(), name, "DELETE FROM t", insert))
	}
}

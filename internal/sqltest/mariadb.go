package sqltest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// StartMariaDB starts a MariaDB server for a test and ends it with it.
func StartMariaDB(tb testing.TB) *Server {
	tb.Helper()
	s, err := MariaDB(tb.Context())
	return cleanup(tb, s, err)
}

// MariaDB starts a MariaDB server, whose user rollcall may do everything. The
// caller closes it.
func MariaDB(ctx context.Context) (*Server, error) {
	return start(ctx, &brand{
		name:     "mariadb",
		scheme:   "mysql",
		driver:   "mysql",
		users:    []string{"mysql"},
		create:   createMariaDB,
		serve:    serveMariaDB,
		source:   sourceMariaDB,
		graceful: syscall.SIGTERM,
	})
}

func createMariaDB(ctx context.Context, dir string) (*exec.Cmd, error) {
	install, err := find("mariadb-install-db", "/usr/sbin")
	if err != nil {
		return nil, err
	}
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(Password)
	first := "CREATE USER IF NOT EXISTS rollcall@'%' IDENTIFIED BY '" + quoted + "';\n" +
		"GRANT ALL ON *.* TO rollcall@'%' WITH GRANT OPTION;\n"
	if err := os.WriteFile(filepath.Join(dir, "first.sql"), []byte(first), 0o644); err != nil { //nolint:gosec // of a server for tests
		return nil, err
	}
	cmd := exec.CommandContext(ctx, install, "--no-defaults", "--datadir="+filepath.Join(dir, "data"),
		"--auth-root-authentication-method=normal", "--skip-test-db")
	cmd.Env = alone(dir)
	return cmd, nil
}

// alone is an environment with a directory for temporary files that no other
// server has: each removes what it finds there when it starts.
func alone(dir string) []string { return append(os.Environ(), "TMPDIR="+dir) }

func serveMariaDB(ctx context.Context, dir, port string) (*exec.Cmd, error) {
	mariadbd, err := find("mariadbd", "/usr/sbin", "/usr/libexec")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, mariadbd, "--no-defaults", "--datadir="+filepath.Join(dir, "data"),
		"--bind-address=127.0.0.1", "--port="+port, "--skip-name-resolve",
		"--socket="+filepath.Join(dir, "socket"), "--pid-file="+filepath.Join(dir, "pid"),
		"--init-file="+filepath.Join(dir, "first.sql"),
		"--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2",
		// Without waiting for the disk a killed server loses nothing: only the machine's end would.
		"--loose-innodb-flush-method=nosync", "--loose-innodb-doublewrite=0", "--loose-sync-frm=0", "--max-connections=200")
	cmd.Env = alone(dir)
	return cmd, nil
}

func sourceMariaDB(port, database string) string {
	config := mysql.NewConfig()
	config.User, config.Passwd = "rollcall", Password
	config.Net, config.Addr, config.DBName = "tcp", "127.0.0.1:"+port, database
	config.Logger = &mysql.NopLogger{} // it is asked before it answers
	return config.FormatDSN()
}

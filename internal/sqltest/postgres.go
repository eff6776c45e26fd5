package sqltest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// StartPostgres starts a PostgreSQL server for a test and ends it with it.
func StartPostgres(tb testing.TB) *Server {
	tb.Helper()
	s, err := Postgres(tb.Context())
	return cleanup(tb, s, err)
}

// Postgres starts a PostgreSQL server, whose user rollcall may do everything. The
// caller closes it.
func Postgres(ctx context.Context) (*Server, error) {
	return start(ctx, &brand{
		name:     "postgres",
		scheme:   "postgres",
		driver:   "pgx",
		users:    []string{"postgres"},
		create:   createPostgres,
		serve:    servePostgres,
		source:   sourcePostgres,
		graceful: syscall.SIGINT, // ends connections; SIGTERM would wait for them
	})
}

func createPostgres(ctx context.Context, dir string) (*exec.Cmd, error) {
	initdb, err := findPostgres("initdb")
	if err != nil {
		return nil, err
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(Password), 0o644); err != nil { //nolint:gosec // of a server for tests
		return nil, err
	}
	return exec.CommandContext(ctx, initdb, "-D", filepath.Join(dir, "data"), "--no-sync", "--no-instructions",
		"--username=rollcall", "--pwfile="+password, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"), nil
}

func servePostgres(ctx context.Context, dir, port string) (*exec.Cmd, error) {
	postgres, err := findPostgres("postgres")
	if err != nil {
		return nil, err
	}
	// Without fsync a killed server loses nothing: only the machine's end would.
	return exec.CommandContext(ctx, postgres, "-D", filepath.Join(dir, "data"), "-p", port, "-h", "127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200"), nil
}

func sourcePostgres(port, database string) string {
	if database == "" {
		database = "postgres"
	}
	return fmt.Sprintf("postgres://%s@127.0.0.1:%s/%s", url.UserPassword("rollcall", Password), port, database)
}

// findPostgres also looks where Debian has it, newest version first.
func findPostgres(program string) (string, error) {
	places, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is right
	slices.Reverse(places)
	return find(program, places...)
}

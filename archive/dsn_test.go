package archive

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestOpenRefusesWhatItCannotRead(t *testing.T) {
	for _, dsn := range []string{
		"", "archive.db", "file:archive.db", "redis://h/0", "sqlite", "sqlite:", "sqlite:?_pragma=x", "sqlite::memory:",
		"sqlite://archive.db", "sqlite:a.db?mode=ro", "sqlite:a.db?_pragma=%zz",
		"sqlite:a.db?_pragma=synchronous(OFF)", "sqlite:a.db?_pragma=cache_size(1);ATTACH", "sqlite:a.db?_pragma=cache_size(1)x",
		"postgres:x", "postgres://u:p@h:port/db", "postgres://u:p@h/db?sslmode=perhaps", "postgres://u:p@h/db?connect_timeout=x",
		"mysql:x", "mysql:///db", "mysql://u:p@h", "mysql://u:p@h/", "mysql://u:p@h/a/b", "mysql://u:p@h/db?tls=perhaps",
		"mysql://u:p@h/db?timeout=long", "mysql://u:p@h:x/db", "u:p@tcp(h:1)/db",
	} {
		_, err := Open(t.Context(), dsn, Options{})
		requireCode(t, rollcall.CodeInvalidArgument, err)
		require.Contains(t, err.Error(), "archive.dsn", "%q", dsn)
	}
}

func TestErrorsNeverHoldThePassword(t *testing.T) {
	const secret = "hunter2"
	for _, password := range []string{secret, "%zz" + secret, "/" + secret, "@" + secret, ":" + secret, "#" + secret, "?" + secret, " " + secret, "[" + secret, "\x7f" + secret} {
		for _, form := range []string{
			"postgres://u:PW@127.0.0.1:1/db", "postgres://u:PW@127.0.0.1:x/db", "postgres://u:PW@127.0.0.1:1/db?sslmode=x",
			"postgres://u:PW@", "postgres://u@127.0.0.1:1/db?password=PW&sslmode=x", "postgres://u@127.0.0.1:1/db?password=PW",
			"postgres:u:PW@h", "mysql://u:PW@127.0.0.1:1/db", "mysql://u:PW@127.0.0.1:x/db", "mysql://u:PW@127.0.0.1:1/db?tls=x",
			"mysql://u:PW@127.0.0.1:1/db?timeout=PW", "mysql://u:PW@", "mysql:u:PW@h", "u:PW@tcp(127.0.0.1:1)/db", "pg://u:PW@h/db",
		} {
			dsn := strings.ReplaceAll(form, "PW", password)
			_, err := Open(t.Context(), dsn, Options{Timeout: time.Second})
			require.Error(t, err, "%q", dsn)
			require.NotContains(t, err.Error(), secret, "%q", dsn)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"archive.timeout":   {Timeout: -1},
		"archive.max_conns": {MaxConns: 101},
	} {
		_, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "a.db"), o)
		requireCode(t, rollcall.CodeInvalidArgument, err)
		require.Contains(t, err.Error(), field)
	}
}

func TestSQLiteKeepsItsPromises(t *testing.T) {
	path := filepath.Join(t.TempDir(), "archive.db")
	db, err := Open(t.Context(), "sqlite:"+path+"?_pragma=cache_size(-1234)&_pragma=wal_autocheckpoint(77)", Options{})
	require.NoError(t, err)
	defer db.Close()
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "secure_delete": "1", "busy_timeout": "30000", "cache_size": "-1234", "wal_autocheckpoint": "77",
	} {
		var got string
		require.NoError(t, db.sql.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestMySQLTakesTheDriversSettings(t *testing.T) {
	u, err := url.Parse("mysql://us%40er:p%2Fw@[::1]/?tls=true&readTimeout=3s&parseTime=false&multiStatements=true&allowAllFiles=true")
	require.NoError(t, err)
	config, err := mysqlConfig(u, "data")
	require.NoError(t, err)
	require.Equal(t, "::1", config.TLS.ServerName)
	text := config.FormatDSN()
	require.Contains(t, text, "us@er:p/w@tcp([::1]:3306)/data?")
	for _, want := range []string{"tls=true", "readTimeout=3s", "parseTime=true", "clientFoundRows=true", "timeout=10s"} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "multiStatements=true")
	require.NotContains(t, text, "allowAllFiles=true")
}

package archive

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/rollcall/rollcall"
)

// source is where the database is, and how to speak to it.
type source struct {
	dialect   *dialect
	connector driver.Connector
	path      string // of SQLite's file
}

// dialTimeout bounds how long connecting takes.
const dialTimeout = 10 * time.Second

// parse reads a data source name. What it says about a bad one never holds the
// password, so it quotes nothing and hands on no error of a parser that does.
func parse(dsn string, o *Options) (source, error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		return parseSQLite(rest, o)
	case "postgres", "postgresql":
		return parsePostgres(dsn)
	case "mysql":
		return parseMySQL(dsn)
	case "":
		return source{}, invalid("is required")
	default:
		return source{}, invalid("must begin with sqlite:, postgres:// or mysql://")
	}
}

func invalid(format string, args ...any) error {
	return rollcall.Invalid("archive.dsn", format, args...)
}

// parseSQLite reads what follows "sqlite:", a path and perhaps ?_pragma=….
func parseSQLite(rest string, o *Options) (source, error) {
	path, query, _ := strings.Cut(rest, "?")
	switch {
	case path == "":
		return source{}, invalid("names no file: sqlite:PATH")
	case strings.HasPrefix(path, ":memory:"):
		return source{}, invalid("must name a file: an archive in memory keeps nothing")
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return source{}, invalid("must be sqlite:PATH, without // before the path")
	}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return source{}, invalid("holds settings behind ? that cannot be read")
	}
	allowed := regexp.MustCompile(`^(cache_size|journal_size_limit|mmap_size|wal_autocheckpoint)\(-?[0-9]+\)$`)
	for name, values := range settings {
		if name != "_pragma" || slices.ContainsFunc(values, func(v string) bool { return !allowed.MatchString(v) }) {
			return source{}, invalid("may hold no settings for SQLite but _pragma=NAME(NUMBER)," +
				" where NAME is cache_size, journal_size_limit, mmap_size or wal_autocheckpoint")
		}
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return source{}, &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "the archive's directory cannot be found", Err: err}
	}
	// A commit that was acknowledged is on disk, and what is deleted is zeroed.
	settings.Set("_journal_mode", "WAL")
	settings.Set("_synchronous", "FULL")
	if o.unsynced {
		settings.Set("_synchronous", "OFF")
	}
	settings.Add("_pragma", "secure_delete(ON)")
	settings.Set("_busy_timeout", fmt.Sprint(o.Timeout.Milliseconds()))
	settings.Set("_txlock", "immediate")
	file := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: settings.Encode()}
	connector, err := sqlite.NewConnector(file.String())
	if err != nil {
		return source{}, invalid("holds settings behind ? that SQLite does not accept")
	}
	return source{dialect: sqliteDialect(), connector: connector, path: path}, nil
}

// parseURL reads a URL. A password with special characters as they are would be
// taken for something else, and shown: any @ or # but those of a URL is refused.
func parseURL(dsn, form string) (*url.URL, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Opaque != "" || u.Fragment != "" || strings.Count(dsn, "@") > 1 ||
		u.User == nil && strings.Contains(dsn, "@") {
		return nil, invalid("is no URL of the form %s (special characters of the password are written as %%XX)", form)
	}
	return u, nil
}

func parsePostgres(dsn string) (source, error) {
	u, err := parseURL(dsn, "postgres://user:password@host:port/database")
	if err != nil {
		return source{}, err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		if detail := harmless(errors.Unwrap(err), u); detail != "" {
			return source{}, invalid("is not accepted by PostgreSQL's driver: %s", detail)
		}
		return source{}, invalid("is not accepted by PostgreSQL's driver")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	config.RuntimeParams["client_encoding"] = "UTF8"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "rollcall"
	}
	return source{dialect: postgresDialect(), connector: stdlib.GetConnector(*config)}, nil
}

// harmless returns an error's text unless the password is in it.
func harmless(err error, u *url.URL) string {
	if err == nil {
		return ""
	}
	secrets := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if password, set := u.User.Password(); set {
		secrets = append(secrets, password, u.User.String())
	}
	for _, secret := range secrets {
		if secret != "" && strings.Contains(err.Error(), secret) {
			return ""
		}
	}
	return err.Error()
}

func parseMySQL(dsn string) (source, error) {
	u, err := parseURL(dsn, "mysql://user:password@host:port/database")
	if err != nil {
		return source{}, err
	}
	database := strings.TrimPrefix(u.Path, "/")
	switch {
	case u.Hostname() == "":
		return source{}, invalid("names no host: mysql://user:password@host:port/database")
	case database == "" || strings.Contains(database, "/"):
		return source{}, invalid("names no database: mysql://user:password@host:port/database")
	}
	config, err := mysqlConfig(u, database)
	if err != nil {
		return source{}, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return source{}, invalid("is not accepted by MySQL's driver")
	}
	return source{dialect: mysqlDialect(), connector: connector}, nil
}

// mysqlConfig writes a URL as the driver's own configuration.
func mysqlConfig(u *url.URL, database string) (*mysql.Config, error) {
	// The driver reads the settings without ever seeing the password.
	config, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		if detail := harmless(err, u); detail != "" {
			return nil, invalid("is not accepted by MySQL's driver: %s", detail)
		}
		return nil, invalid("is not accepted by MySQL's driver")
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, database
	if u.Port() == "" {
		config.Addr = strings.TrimSuffix(u.Host, ":") + ":3306"
	}
	config.ParseTime, config.Loc, config.ClientFoundRows = true, time.UTC, true
	config.MultiStatements, config.AllowAllFiles = false, false
	config.Logger = &mysql.NopLogger{}
	if config.Timeout == 0 {
		config.Timeout = dialTimeout
	}
	if config.TLS != nil && !config.TLS.InsecureSkipVerify {
		config.TLS.ServerName = u.Hostname()
	}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	// Whatever the server's mode, nothing is cut to fit and quotes mean the same.
	config.Params["sql_mode"] = "'TRADITIONAL'"
	return config, nil
}

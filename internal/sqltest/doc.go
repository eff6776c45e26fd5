// Package sqltest starts real database servers for tests: PostgreSQL and
// MariaDB, on free ports of the loopback address, with their data in temporary
// directories. Tests run as root start them as an unprivileged user, since the
// servers refuse root. A server dies with the test's process at the latest.
package sqltest

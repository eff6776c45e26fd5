// Package archive keeps login days in a SQL database: SQLite, PostgreSQL, MySQL
// or MariaDB. There is one row per user, kind and month, with a map of its days
// that plain SQL can read:
//
//	SELECT user_id, month FROM rollcall_login_days
//	WHERE kind = 'user' AND month = 202602 AND days & 1 <> 0  -- there on the 1st
//
// Bit 0 of days is the first of the month. User ids are compared as bytes; MySQL
// keeps them as VARBINARY, which CONVERT(user_id USING utf8mb4) shows as text.
//
// A [DB] reads, and erases users. What moves days is reserved to one process at
// a time, the holder of the [Lease]; each of its writes is refused once another
// process has taken the lease, however late it arrives.
//
// Errors of the database are *rollcall.Error with CodeUnavailable.
package archive

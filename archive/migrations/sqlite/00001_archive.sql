-- +goose Up
-- Not IF NOT EXISTS: of two servers that start at once, one must fail here and
-- look again.
CREATE TABLE rollcall_login_days (
    user_id    TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    month      INTEGER NOT NULL, -- yyyymm
    days       INTEGER NOT NULL, -- bit 0 is the first of the month
    updated_at TEXT    NOT NULL, -- UTC
    PRIMARY KEY (kind, month, user_id)
) WITHOUT ROWID;

CREATE INDEX rollcall_login_days_user ON rollcall_login_days (user_id);

CREATE TABLE rollcall_archive_runs (
    id           INTEGER NOT NULL PRIMARY KEY,
    started_at   TEXT    NOT NULL,
    finished_at  TEXT,
    state        TEXT    NOT NULL, -- running, completed or failed
    rows_written INTEGER NOT NULL,
    days_offloaded INTEGER NOT NULL,
    position     TEXT    NOT NULL, -- the runner's own words
    error        TEXT    NOT NULL,
    runner       TEXT    NOT NULL,
    term         INTEGER NOT NULL  -- of the lease it runs under
);

CREATE TABLE rollcall_archive_lease (
    name       TEXT    NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL, -- '' for nobody
    holder     TEXT    NOT NULL, -- which process, by a number it drew; '' unknown
    term       INTEGER NOT NULL, -- counts who held it
    writes     INTEGER NOT NULL, -- counts what was done; its row is the lock
    expires_at TEXT    NOT NULL
) WITHOUT ROWID;

INSERT INTO rollcall_archive_lease (name, owner, holder, term, writes, expires_at)
VALUES ('runner', '', '', 0, 0, '1970-01-01 00:00:00.000');

CREATE TABLE rollcall_offloaded (
    kind        TEXT    NOT NULL,
    day         INTEGER NOT NULL, -- yyyymmdd
    users       INTEGER NOT NULL,
    offloaded_at TEXT    NOT NULL,
    run_id      INTEGER NOT NULL,
    PRIMARY KEY (kind, day)
) WITHOUT ROWID;

-- +goose Up
-- MySQL commits each statement by itself, so that after a crash in between all
-- of them run again: each must allow for that.
CREATE TABLE IF NOT EXISTS rollcall_login_days (
    user_id    VARBINARY(128) NOT NULL, -- UTF-8
    kind       VARCHAR(32)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    month      INT            NOT NULL, -- yyyymm
    days       INT            NOT NULL, -- bit 0 is the first of the month
    updated_at DATETIME(6)    NOT NULL, -- UTC
    PRIMARY KEY (kind, month, user_id),
    KEY rollcall_login_days_user (user_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS rollcall_archive_runs (
    id           BIGINT         NOT NULL PRIMARY KEY,
    started_at   DATETIME(6)    NOT NULL,
    finished_at  DATETIME(6)    NULL,
    state        VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- running, completed or failed
    rows_written BIGINT         NOT NULL,
    days_offloaded BIGINT         NOT NULL,
    position     VARBINARY(1024) NOT NULL, -- the runner's own words
    error        VARBINARY(1024) NOT NULL,
    runner       VARBINARY(128) NOT NULL,
    term         BIGINT         NOT NULL  -- of the lease it runs under
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS rollcall_archive_lease (
    name       VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    owner      VARBINARY(128) NOT NULL, -- '' for nobody
    holder     VARBINARY(32)  NOT NULL, -- which process, by a number it drew; '' unknown
    term       BIGINT         NOT NULL, -- counts who held it
    writes     BIGINT         NOT NULL, -- counts what was done; its row is the lock
    expires_at DATETIME(6)    NOT NULL
) ENGINE = InnoDB;

INSERT IGNORE INTO rollcall_archive_lease (name, owner, holder, term, writes, expires_at)
VALUES ('runner', '', '', 0, 0, '1970-01-01 00:00:00');

CREATE TABLE IF NOT EXISTS rollcall_offloaded (
    kind        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    day         INT         NOT NULL, -- yyyymmdd
    users       BIGINT      NOT NULL,
    offloaded_at DATETIME(6) NOT NULL,
    run_id      BIGINT      NOT NULL,
    PRIMARY KEY (kind, day)
) ENGINE = InnoDB;

-- +goose Up
CREATE TABLE rollcall_login_days (
    user_id    text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    month      integer          NOT NULL, -- yyyymm
    days       integer          NOT NULL, -- bit 0 is the first of the month
    updated_at timestamptz      NOT NULL,
    PRIMARY KEY (kind, month, user_id)
);

CREATE INDEX rollcall_login_days_user ON rollcall_login_days (user_id);

CREATE TABLE rollcall_archive_runs (
    id           bigint      NOT NULL PRIMARY KEY,
    started_at   timestamptz NOT NULL,
    finished_at  timestamptz,
    state        text        NOT NULL, -- running, completed or failed
    rows_written bigint      NOT NULL,
    days_offloaded bigint      NOT NULL,
    position     text        NOT NULL, -- the runner's own words
    error        text        NOT NULL,
    runner       text        NOT NULL,
    term         bigint      NOT NULL  -- of the lease it runs under
);

CREATE TABLE rollcall_archive_lease (
    name       text        NOT NULL PRIMARY KEY,
    owner      text        NOT NULL, -- '' for nobody
    holder     text        NOT NULL, -- which process, by a number it drew; '' unknown
    term       bigint      NOT NULL, -- counts who held it
    writes     bigint      NOT NULL, -- counts what was done; its row is the lock
    expires_at timestamptz NOT NULL
);

INSERT INTO rollcall_archive_lease (name, owner, holder, term, writes, expires_at)
VALUES ('runner', '', '', 0, 0, '1970-01-01 00:00:00+00');

CREATE TABLE rollcall_offloaded (
    kind        text COLLATE "C" NOT NULL,
    day         integer          NOT NULL, -- yyyymmdd
    users       bigint           NOT NULL,
    offloaded_at timestamptz      NOT NULL,
    run_id      bigint           NOT NULL,
    PRIMARY KEY (kind, day)
);

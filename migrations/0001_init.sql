-- +goose Up

-- Each opening of the folder by a process is one owner. The id is the fence: a row of runs can only
-- be appended to by the owner that it names.
CREATE TABLE owners (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    started   INTEGER NOT NULL,           -- unix milliseconds, as all times here
    recovered INTEGER,                    -- since when no live run has a dead owner
    ended     INTEGER,                    -- a clean close
    commits   INTEGER NOT NULL DEFAULT 0  -- the number of the last transaction that left no arrival: tells what a failed COMMIT did
) STRICT;

-- An append leaves its run's row as it is: a live run's head and bytes are those of its segments, and
-- what has arrived since is in arrivals. The wide columns are in calls.
CREATE TABLE runs (
    run       INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL UNIQUE CHECK (length(id) = 26),
    caller    TEXT    NOT NULL,
    owner     INTEGER NOT NULL REFERENCES owners (id),
    state     TEXT    NOT NULL CHECK (state IN ('idle', 'streaming', 'completed', 'interrupted', 'cancelled', 'failed', 'released')),
    outcome   TEXT    NOT NULL DEFAULT '' CHECK (outcome IN ('', 'completed', 'interrupted', 'cancelled', 'failed')),
    reason    TEXT    NOT NULL DEFAULT '',
    head      INTEGER NOT NULL DEFAULT 0 CHECK (head >= 0),
    bytes     INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    ttl       INTEGER NOT NULL CHECK (ttl >= 0),
    created   INTEGER NOT NULL,
    committed INTEGER,
    ended     INTEGER,
    released  INTEGER,
    swept     INTEGER,                    -- when the last of its chunks was deleted
    CHECK ((outcome = '') = (state IN ('idle', 'streaming'))),
    CHECK (outcome IN ('', state) OR state = 'released'),
    CHECK ((ended IS NULL) = (outcome = '')),
    CHECK ((released IS NULL) = (state <> 'released')),
    CHECK (swept IS NULL OR released IS NOT NULL),
    CHECK (outcome <> 'completed' OR reason = '')
) STRICT;

CREATE INDEX runs_newest ON runs (created, id);
CREATE INDEX runs_of_caller ON runs (caller, created, id);
CREATE INDEX runs_live ON runs (owner) WHERE ended IS NULL;
CREATE INDEX runs_expiry ON runs (ended + ttl, run) WHERE ended IS NOT NULL AND released IS NULL;
CREATE INDEX runs_unswept ON runs (run) WHERE released IS NOT NULL AND swept IS NULL;
CREATE INDEX runs_swept ON runs (created) WHERE swept IS NOT NULL;

-- The same table as buffer.State.CanBecome.
-- +goose StatementBegin
CREATE TRIGGER runs_transition BEFORE UPDATE OF state ON runs
WHEN (OLD.state, NEW.state) NOT IN (VALUES
    ('idle', 'idle'), ('idle', 'streaming'), ('idle', 'completed'), ('idle', 'interrupted'), ('idle', 'failed'),
    ('streaming', 'streaming'), ('streaming', 'completed'), ('streaming', 'interrupted'), ('streaming', 'cancelled'),
    ('completed', 'released'), ('interrupted', 'released'), ('cancelled', 'released'), ('failed', 'released'))
BEGIN
    SELECT RAISE(ABORT, 'impossible transition of a run');
END;
-- +goose StatementEnd

-- What was asked, and what was answered besides the chunks.
CREATE TABLE calls (
    run           INTEGER PRIMARY KEY REFERENCES runs (run),
    key           TEXT    NOT NULL,
    body_hash     TEXT    NOT NULL,
    retry_of      TEXT    NOT NULL CHECK (length(retry_of) IN (0, 26)),
    method        TEXT    NOT NULL,
    path          TEXT    NOT NULL,
    provider      TEXT    NOT NULL,
    route         TEXT    NOT NULL,
    dialect       TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    stream        INTEGER NOT NULL CHECK (stream IN (0, 1)),
    kind          TEXT    NOT NULL,
    operation     TEXT    NOT NULL,
    turn          TEXT    NOT NULL,       -- the agent's own id of the turn, where its kind of agent sends one
    claimed       INTEGER NOT NULL DEFAULT 0, -- the highest count of an SDK's retry that took the run over
    replays       INTEGER NOT NULL DEFAULT 0, -- repeats that were served from the log after the end
    attaches      INTEGER NOT NULL DEFAULT 0, -- and before it
    tags          TEXT    NOT NULL CHECK (json_type(tags) = 'object'),
    cancel_after  INTEGER,                -- milliseconds after the last reader left; NULL keeps the drain going
    budget_attempts INTEGER NOT NULL,
    budget_elapsed  INTEGER NOT NULL,     -- milliseconds
    budget_cost     REAL    NOT NULL,     -- US dollars
    budget_spent    INTEGER NOT NULL,
    budget_since    INTEGER,
    notes         TEXT    NOT NULL DEFAULT '[]' CHECK (json_type(notes) = 'array'),
    status        INTEGER NOT NULL DEFAULT 0,
    header        TEXT    CHECK (header IS NULL OR json_type(header) = 'object'),
    framing       TEXT    NOT NULL DEFAULT '',
    provider_id   TEXT    NOT NULL DEFAULT '',
    partial       BLOB,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    usage         TEXT                    -- the provider's own object
) STRICT;

CREATE INDEX calls_key ON calls (key);
CREATE INDEX calls_body ON calls (body_hash);
CREATE INDEX calls_provider_id ON calls (provider_id);

-- The chunks of a run, many in a row: data is those from position pos on, one after the other, sizes
-- the JSON array of their lengths, start the byte offset of the first within its run.
CREATE TABLE segments (
    id    INTEGER PRIMARY KEY,
    run   INTEGER NOT NULL REFERENCES runs (run),
    pos   INTEGER NOT NULL CHECK (pos >= 0),
    start INTEGER NOT NULL CHECK (start >= 0),
    sizes TEXT    NOT NULL,
    data  BLOB    NOT NULL,
    UNIQUE (run, pos)
) STRICT;

-- What live runs have committed since their last segment, a row for each commit and run, in the order
-- of arrival and without an index, so that a commit for many runs writes few pages. A row is over when
-- its run has ended, or has a head beyond it: then a segment holds it, and it is deleted some time.
CREATE TABLE arrivals (
    id    INTEGER PRIMARY KEY,
    run   INTEGER NOT NULL,
    pos   INTEGER NOT NULL,
    start INTEGER NOT NULL,
    sizes TEXT    NOT NULL,
    data  BLOB    NOT NULL
) STRICT;

-- The ledger: one row for each physical send, committed before the send.
CREATE TABLE attempts (
    run            INTEGER NOT NULL REFERENCES runs (run),
    n              INTEGER NOT NULL CHECK (n >= 1),
    route          TEXT    NOT NULL,
    model          TEXT    NOT NULL,
    sent           INTEGER NOT NULL,
    ended          INTEGER,               -- NULL while open
    status         INTEGER NOT NULL,
    request_id     TEXT    NOT NULL,
    class          TEXT    NOT NULL,
    sent_state     TEXT    NOT NULL,
    action         TEXT    NOT NULL,
    why            TEXT    NOT NULL,
    hint           INTEGER NOT NULL,      -- milliseconds
    first_byte     INTEGER NOT NULL,      -- milliseconds from the send to the answer's head; 0 where none came
    billed         TEXT    NOT NULL CHECK (billed IN ('yes', 'no', 'unknown')),
    reused_conn    INTEGER NOT NULL CHECK (reused_conn IN (0, 1)),
    request_bytes  INTEGER NOT NULL,
    preamble_bytes INTEGER NOT NULL,
    content_bytes  INTEGER NOT NULL,
    input_tokens   INTEGER,
    output_tokens  INTEGER,
    usage          TEXT,
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- The one current run of a caller's key.
CREATE TABLE keys (
    caller TEXT    NOT NULL,
    key    TEXT    NOT NULL CHECK (key <> ''),
    run    INTEGER NOT NULL UNIQUE REFERENCES runs (run),
    PRIMARY KEY (caller, key)
) STRICT, WITHOUT ROWID;

-- Where each run's chunks are.
CREATE VIEW pieces AS
SELECT run, pos, start, json_array_length(sizes) AS chunks, length(data) AS bytes, sizes, data FROM segments
UNION ALL
SELECT a.run, a.pos, a.start, json_array_length(a.sizes), length(a.data), a.sizes, a.data FROM arrivals a
JOIN runs r ON r.run = a.run WHERE r.ended IS NULL AND a.pos >= r.head;

-- For people with a sqlite3 shell: SELECT data FROM log WHERE run = '01…' ORDER BY position.
CREATE VIEW log AS
SELECT r.id AS run, p.pos + s.key AS position,
    substr(p.data, 1 + sum(s.value) OVER (PARTITION BY r.id, p.pos ORDER BY s.key) - s.value, s.value) AS data
FROM runs r JOIN pieces p ON p.run = r.run, json_each(p.sizes) s;

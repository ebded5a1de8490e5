-- +goose Up

-- An encrypted run's own key, wrapped by the named key of the configuration, and what of its call is
-- encrypted with it. The key goes before the chunks: a run without it cannot be read by anybody.
CREATE TABLE ciphers (
    run     INTEGER PRIMARY KEY REFERENCES runs (run),
    key     TEXT    NOT NULL,             -- the name of the key that wraps it
    wrapped BLOB,                         -- NULL once destroyed
    header  BLOB,
    partial BLOB
) STRICT;

CREATE INDEX ciphers_key ON ciphers (key) WHERE wrapped IS NOT NULL;

-- Nonce and tag of data that is encrypted; NULL where it is in the clear. Data has the same length either way.
ALTER TABLE segments ADD COLUMN cipher BLOB CHECK (cipher IS NULL OR length(cipher) = 28);
ALTER TABLE arrivals ADD COLUMN cipher BLOB CHECK (cipher IS NULL OR length(cipher) = 28);

DROP VIEW log;
DROP VIEW pieces;

-- Where each run's chunks are.
CREATE VIEW pieces AS
SELECT run, pos, start, json_array_length(sizes) AS chunks, length(data) AS bytes, sizes, data, cipher FROM segments
UNION ALL
SELECT a.run, a.pos, a.start, json_array_length(a.sizes), length(a.data), a.sizes, a.data, a.cipher FROM arrivals a
JOIN runs r ON r.run = a.run WHERE r.ended IS NULL AND a.pos >= r.head;

-- For people with a sqlite3 shell: SELECT data FROM log WHERE run = '01…' ORDER BY position. Of an encrypted
-- run data is NULL, and encrypted names the key without which nobody can read it.
CREATE VIEW log AS
SELECT r.id AS run, p.pos + s.key AS position,
    iif(p.cipher IS NULL, substr(p.data, 1 + sum(s.value) OVER (PARTITION BY r.id, p.pos ORDER BY s.key) - s.value, s.value), NULL) AS data,
    iif(p.cipher IS NULL, NULL, c.key) AS encrypted
FROM runs r JOIN pieces p ON p.run = r.run LEFT JOIN ciphers c ON c.run = r.run, json_each(p.sizes) s;

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// fullCheckBytes is the size up to which a file is checked with its indexes; that takes seconds for
// each gigabyte.
const fullCheckBytes = 1 << 30

// soundPieces is the view pieces for a file that may be damaged: sizes that are no list are none.
const soundPieces = `(SELECT run, pos, start, bytes, sizes, json_array_length(sizes) AS chunks, cipher FROM (
	SELECT run, pos, start, length(data) AS bytes, iif(json_valid(sizes), sizes, '[]') AS sizes, cipher FROM segments
	UNION ALL SELECT a.run, a.pos, a.start, length(a.data), iif(json_valid(a.sizes), a.sizes, '[]'), a.cipher FROM arrivals a
		JOIN runs r ON r.run = a.run WHERE r.ended IS NULL AND a.pos >= r.head))`

// rules are the stored invariants. Each query gives the runs that break one, and how.
var rules = []string{
	// The sizes of a piece are those of its chunks.
	`SELECT r.id, 'has ' || p.bytes || ' bytes from position ' || p.pos || ' on, but sizes of ' || p.sum
		FROM (SELECT run, pos, bytes, (SELECT coalesce(sum(value), 0) FROM json_each(sizes)) AS sum FROM ` + soundPieces + `) p
		JOIN runs r ON r.run = p.run WHERE p.bytes <> p.sum`,
	// Pieces follow each other without a gap. What is being swept may lack its beginning.
	`SELECT r.id, 'has chunks from position ' || pos || ' on, at byte ' || start || ', but should from ' || due || ', at byte ' || byte FROM (
			SELECT run, pos, start, lag(pos + chunks, 1, 0) OVER w AS due, lag(start + bytes, 1, 0) OVER w AS byte,
				row_number() OVER w AS n FROM ` + soundPieces + ` WINDOW w AS (PARTITION BY run ORDER BY pos)) p
		JOIN runs r ON r.run = p.run WHERE (pos <> due OR start <> byte) AND NOT (n = 1 AND r.released IS NOT NULL)`,
	// A run that has ended, or a segment has been written of, has its head there.
	`SELECT r.id, 'has head ' || r.head || ' and ' || r.bytes || ' bytes, but its segments end at ' || coalesce(s.head, 0) || ' and ' || coalesce(s.bytes, 0)
		FROM runs r LEFT JOIN (SELECT run, max(pos + iif(json_valid(sizes), json_array_length(sizes), 0)) AS head, max(start + length(data)) AS bytes FROM segments GROUP BY run) s
			ON s.run = r.run WHERE r.swept IS NULL AND (coalesce(s.head, 0) <> r.head OR coalesce(s.bytes, 0) <> r.bytes)`,
	`SELECT r.id, 'is swept, but has ' || count(*) || ' segments'
		FROM runs r JOIN segments s ON s.run = r.run WHERE r.swept IS NOT NULL GROUP BY r.run`,
	`SELECT id, 'is ' || state || ' without a time of its end or an outcome'
		FROM runs WHERE state NOT IN ('idle', 'streaming') AND (ended IS NULL OR outcome = '')`,
	`SELECT id, 'is ' || state || ', but has ended' FROM runs WHERE state IN ('idle', 'streaming') AND (ended IS NOT NULL OR outcome <> '')`,
	`SELECT id, 'is completed for the reason ' || reason FROM runs WHERE outcome = 'completed' AND reason <> ''`,
	// A later owner recovers the runs of those that are dead before it serves, and says that they have ended.
	`SELECT r.id, 'is ' || state || ', but its owner ' || owner || ' is dead' FROM runs r JOIN owners o ON o.id = r.owner
		WHERE r.ended IS NULL AND o.ended <= (SELECT max(recovered) FROM owners)`,
	`SELECT r.id, 'has no call' FROM runs r LEFT JOIN calls c ON c.run = r.run WHERE c.run IS NULL`,
	`SELECT r.id, 'is named by a key of ' || k.caller || ' that is not its own'
		FROM keys k JOIN runs r ON r.run = k.run JOIN calls c ON c.run = r.run WHERE k.caller <> r.caller OR k.key <> c.key`,
	`SELECT r.id, 'has a key that names no run'
		FROM runs r JOIN calls c ON c.run = r.run LEFT JOIN keys k ON k.caller = r.caller AND k.key = c.key
		WHERE c.key <> '' AND k.run IS NULL AND r.id NOT IN (SELECT retry_of FROM calls)`,
	`SELECT r.id, 'has ended, but its attempt ' || a.n || ' is open'
		FROM attempts a JOIN runs r ON r.run = a.run WHERE a.ended IS NULL AND r.ended IS NOT NULL`,
	`SELECT id, 'has chunks, but no attempt was sent'
		FROM runs r WHERE (head > 0 OR state = 'streaming') AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.run = r.run)`,
	// What is encrypted has its data key, until it is destroyed, and nothing in the clear beside it.
	`SELECT DISTINCT r.id, iif(c.run IS NULL, 'has chunks that are encrypted, but no data key', 'is encrypted, but has chunks that are not')
		FROM ` + soundPieces + ` p JOIN runs r ON r.run = p.run LEFT JOIN ciphers c ON c.run = p.run WHERE (p.cipher IS NULL) <> (c.run IS NULL)`,
	`SELECT r.id, 'is encrypted and not released, but has no data key' FROM runs r JOIN ciphers c ON c.run = r.run
		WHERE r.released IS NULL AND coalesce(length(c.wrapped), 0) = 0`,
	`SELECT r.id, 'is swept, but has its data key' FROM runs r JOIN ciphers c ON c.run = r.run WHERE r.swept IS NOT NULL AND c.wrapped IS NOT NULL`,
}

// Check verifies the stored invariants of the log in dir, of a running process or a stopped one, in
// one snapshot, and that the keys open what they have encrypted, byte for byte; runs of other keys are checked
// for the rest. It returns a line for each fault, and creates and changes nothing.
func Check(ctx context.Context, dir string, keys ...Key) ([]string, error) {
	ring, err := newKeyring(keys)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	file := filepath.Join(dir, fileName)
	db, err := openReadOnly(file)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	defer db.Close() // it was only read from
	have, want, err := versions(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	if have > want {
		return nil, fmt.Errorf("check: %w", ErrNewer)
	}
	if have < want {
		return nil, fmt.Errorf("check: the schema is %d, and becomes %d when the log is next opened", have, want)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	defer tx.Rollback() // it has only read
	return check(ctx, tx, file, ring)
}

func check(ctx context.Context, tx *sql.Tx, file string, ring *keyring) ([]string, error) {
	faults, err := checkFile(ctx, tx, file)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	for _, rule := range rules {
		broken, err := lines(ctx, tx, rule, func(rows *sql.Rows) (string, error) {
			var id, what string
			err := rows.Scan(&id, &what)
			return "run " + id + " " + what, err
		})
		if err != nil && len(faults) == 0 {
			return nil, fmt.Errorf("check: %w", err)
		}
		faults = append(faults, broken...) // where the file is damaged, as far as it can be read
	}
	hidden, err := checkEncrypted(ctx, tx, ring)
	if err != nil && len(faults) == 0 {
		return nil, fmt.Errorf("check: %w", err)
	}
	faults = append(faults, hidden...)
	if len(faults) > 0 {
		faults = append(faults, unreadable(ctx, tx)...)
	}
	return faults, nil
}

// unreadable names the runs whose rows are on a damaged page, as far as there is a list of runs.
func unreadable(ctx context.Context, tx *sql.Tx) (faults []string) {
	ids := map[int64]string{}
	_, err := lines(ctx, tx, "SELECT run, id FROM runs", func(rows *sql.Rows) (string, error) {
		var row int64
		var id string
		err := rows.Scan(&row, &id)
		ids[row] = id
		return "", err
	})
	if err != nil {
		faults = append(faults, "file: the list of runs cannot be read: "+err.Error())
	}
	for _, row := range slices.Sorted(maps.Keys(ids)) {
		var n sql.NullInt64
		err := tx.QueryRowContext(ctx, "SELECT sum(length(sizes) + length(hex(substr(data, -1)))) FROM segments WHERE run = ?", row).Scan(&n)
		if err == nil {
			err = tx.QueryRowContext(ctx, "SELECT count(*) FROM calls WHERE run = ? AND header IS NOT ''", row).Scan(&n)
		}
		if err != nil {
			faults = append(faults, "run "+ids[row]+" cannot be read: "+err.Error())
		}
	}
	return faults
}

// checkFile has SQLite look for damage. CHECK constraints are not among it: SQLite leaves them out of a
// schema that it may not write to.
func checkFile(ctx context.Context, tx *sql.Tx, file string) ([]string, error) {
	pragma := "PRAGMA integrity_check"
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Size() > fullCheckBytes {
		pragma = "PRAGMA quick_check"
	}
	damage, err := lines(ctx, tx, pragma, func(rows *sql.Rows) (line string, err error) {
		err = rows.Scan(&line)
		return "file: " + line, err
	})
	if len(damage) == 1 && damage[0] == "file: ok" {
		damage = nil
	}
	strays, err2 := lines(ctx, tx, "PRAGMA foreign_key_check", func(rows *sql.Rows) (string, error) {
		var table, parent string
		var row sql.NullInt64
		var key int
		err := rows.Scan(&table, &row, &parent, &key)
		return fmt.Sprintf("file: row %d of %s names a row of %s that is not there", row.Int64, table, parent), err
	})
	return append(damage, strays...), errors.Join(err, err2)
}

func lines(ctx context.Context, tx *sql.Tx, query string, line func(*sql.Rows) (string, error)) (all []string, err error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // Err below says whether all came
	for rows.Next() {
		l, err := line(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

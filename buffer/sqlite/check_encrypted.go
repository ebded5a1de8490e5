package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/oklog/ulid/v2"
)

const (
	selectEncrypted = ` r.id, x.key, x.wrapped, p.pos, p.start, p.sizes, p.data, p.cipher FROM ciphers x JOIN runs r ON r.run = x.run `
	// The order has each data key unwrapped once.
	encryptedSegments = `SELECT` + selectEncrypted + `JOIN segments p ON p.run = x.run WHERE x.wrapped IS NOT NULL ORDER BY x.run, p.pos`
	encryptedArrivals = `SELECT` + selectEncrypted + `JOIN arrivals p ON p.run = x.run
		WHERE x.wrapped IS NOT NULL AND r.ended IS NULL AND p.pos >= r.head ORDER BY x.run, p.id`
)

var encryptedRuns = runColumns + `WHERE x.wrapped IS NOT NULL ORDER BY r.run`

// checkEncrypted decrypts all that the keys open, and tells what does not come out.
func checkEncrypted(ctx context.Context, tx *sql.Tx, ring *keyring) (faults []string, err error) {
	if ring.active == "" {
		return nil, nil
	}
	for query, line := range map[string]func(*sql.Rows) (string, error){
		encryptedRuns: ring.checkRun, encryptedSegments: ring.pieceChecker(), encryptedArrivals: ring.pieceChecker(),
	} {
		all, e := lines(ctx, tx, query, line)
		err = errors.Join(err, e)
		for _, l := range all {
			if l != "" {
				faults = append(faults, l)
			}
		}
	}
	return faults, err
}

// checkRun looks at a run's data key and at what it hides of the call.
func (ring *keyring) checkRun(rows *sql.Rows) (string, error) {
	var row runRow
	if err := rows.Scan(row.dest()...); err != nil {
		return "", err
	}
	if _, err := row.open(ring); err != nil {
		return err.Error(), nil
	}
	if err := row.key.err; err != nil && !errors.Is(err, ErrKey) {
		return "run " + row.id + ": " + err.Error(), nil
	}
	return "", nil
}

// pieceChecker looks at the chunks of one run after the other.
func (ring *keyring) pieceChecker() func(*sql.Rows) (string, error) {
	var last string
	var key *dataKey
	return func(rows *sql.Rows) (string, error) {
		var text, name string
		var wrapped []byte
		var p piece
		if err := rows.Scan(&text, &name, &wrapped, &p.pos, &p.start, &p.sizes, &p.data, &p.cipher); err != nil {
			return "", err
		}
		if text != last {
			id, err := ulid.ParseStrict(text)
			if err != nil {
				return "", err
			}
			last, key = text, ring.unwrap(id, name, wrapped)
		}
		if key.err != nil { // checkRun tells
			return "", nil
		}
		if _, err := p.decrypt(key); err != nil {
			return "run " + text + " " + err.Error(), nil
		}
		return "", nil
	}
}

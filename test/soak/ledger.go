package main

import (
	"context"
	"database/sql"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver
)

// stored is what is in the log, as the sqlite3 shell would tell it while the service runs.
type stored struct {
	states   map[string]int // runs
	attempts int
	chunks   int
}

// openLog opens the log of a service that runs.
func openLog(dir string) (*sql.DB, error) {
	file := url.URL{Scheme: "file", OmitHost: true, Path: filepath.Join(dir, "spool.db"), RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
	return sql.Open("sqlite", file.String())
}

func look(ctx context.Context, db *sql.DB) (s stored, err error) {
	s.states = map[string]int{}
	rows, err := db.QueryContext(ctx, "SELECT state, count(*) FROM runs GROUP BY state")
	if err != nil {
		return s, err
	}
	defer rows.Close() // Err below says whether all came
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			return s, err
		}
		s.states[state] = n
	}
	if err := rows.Err(); err != nil {
		return s, err
	}
	return s, db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM attempts), (SELECT count(*) FROM segments) + (SELECT count(*) FROM arrivals WHERE length(data) > 0)").
		Scan(&s.attempts, &s.chunks)
}

// runs is how many there are in all.
func (s stored) runs() (n int) {
	for _, m := range s.states {
		n += m
	}
	return n
}

// quiet says that nothing is live, kept or read.
func (s stored) quiet() bool { return s.chunks == 0 && s.runs() == s.states["released"] }

// inUse is how many bytes of the log's file hold something.
func inUse(ctx context.Context, db *sql.DB) (n float64, err error) {
	return n, db.QueryRowContext(ctx, "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&n)
}

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
)

// conn is one connection that one goroutine uses, with the statements it has prepared. Its calls
// take no context: a transaction serves many callers, and none of them may end it.
type conn struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	hot   map[string]driver.StmtExecContext // the same, without the bookkeeping of database/sql
}

func openConn(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &conn{db: db, conn: c, stmts: map[string]*sql.Stmt{}, hot: map[string]driver.StmtExecContext{}}, nil
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	s, err := c.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	c.stmts[query] = s
	return s, nil
}

// exec returns how many rows it changed.
func (c *conn) exec(query string, args ...any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := s.Exec(args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// execHot is exec for what each commit runs: there database/sql costs as much as the statement.
func (c *conn) execHot(query string, args []driver.NamedValue) error {
	return c.conn.Raw(func(dc any) error {
		ctx := context.Background()
		s := c.hot[query]
		if s == nil {
			stmt, err := dc.(driver.ConnPrepareContext).PrepareContext(ctx, query)
			if err != nil {
				return fmt.Errorf("prepare: %w", err)
			}
			s = stmt.(driver.StmtExecContext)
			c.hot[query] = s
		}
		_, err := s.ExecContext(ctx, args)
		return err
	})
}

// once runs a statement that no other will be like.
func (c *conn) once(query string) error {
	_, err := c.conn.ExecContext(context.Background(), query)
	return err
}

// scan reads the first row into dest, and reports whether there was one.
func (c *conn) scan(query string, args []any, dest ...any) (bool, error) {
	s, err := c.prepare(query)
	if err != nil {
		return false, err
	}
	err = s.QueryRow(args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each reads all rows: next scans one of them.
func (c *conn) each(query string, args []any, next func(*sql.Rows) error) error {
	s, err := c.prepare(query)
	if err != nil {
		return err
	}
	rows, err := s.Query(args...)
	if err != nil {
		return err
	}
	defer rows.Close() // Err below says whether all came
	for rows.Next() {
		if err := next(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	for _, s := range c.hot {
		errs = append(errs, s.(driver.Stmt).Close())
	}
	return errors.Join(append(errs, c.conn.Close(), c.db.Close())...)
}
